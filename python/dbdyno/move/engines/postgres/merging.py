"""Update and merge through a table of changes: only rows that differ are written, which saves WAL and dead rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql

from dbdyno.base.errors import MoveError
from dbdyno.move.nouns import with_noun

StatementRunner = Callable[[sql.Composable, Callable[[sql.Composable], sql.Composed]], int]
"""Function that runs a statement over the rows of a table, at once or by bisection; returns how many it affected.

The second argument builds the statement for a condition on the table's rows (alias `s`).
"""


@dataclass(frozen=True)
class MergeCounts:
    """Numbers of rows by what the merge did with them."""

    new: int = 0
    changed: int = 0
    same: int = 0
    absent: int = 0
    null_keys: int = 0


def merge(
    conn: psycopg.Connection[Any],
    placed: sql.Composable | None,
    stage: sql.Composable,
    table: sql.Composable,
    columns: Sequence[Any],
    key: Sequence[str],
    *,
    adds: bool,
    staged: int,
    run: StatementRunner,
    rejected: Callable[[], int],
) -> MergeCounts:
    """Update the table's rows from the staged ones, and add new ones if `adds`; must run inside a transaction.

    Args:
        conn: The session that writes.
        placed: The rows with the table's types and their positions, if bad rows are rejected; else None.
        stage: The staging table.
        table: The target table.
        columns: The columns that are written.
        key: The columns that identify a row; a key that occurs twice is refused.
        adds: True adds rows whose key is not in the table.
        staged: Number of staged rows.
        run: Runs a statement over the rows.
        rejected: Returns the number of rows rejected so far.

    Raises:
        MoveError: There is no key, a key occurs twice, or the row counts do not add up.
        psycopg.Error: The server reports an error.
    """
    if not key:
        raise MoveError(
            "the modes update and merge need a key",
            where="--key",
            next_step="name the columns of the key with --key id or --key a,b",
        )
    others = [one for one in columns if one.name not in key]
    names = {one.name: sql.Identifier(one.name) for one in columns}
    on = sql.SQL(" and ").join(sql.SQL("t.{0} = s.{0}").format(names[name]) for name in key)
    conn.execute(sql.SQL("lock table {} in share row exclusive mode").format(table))
    values = sql.SQL(", ").join(sql.SQL("{} as {}").format(one.value("s"), names[one.name]) for one in columns)
    typed = placed or sql.SQL("(select {} from {} s)").format(values, stage)
    staged -= rejected()
    no_nulls = sql.SQL(" and ").join(sql.SQL("s.{} is not null").format(names[name]) for name in key)
    # Compared as text: json, xml and points have no equality operator, and 1.0 must differ from 1.00.
    differs = sql.SQL(" or ").join(
        sql.SQL("s.{0}::text is distinct from t.{0}::text").format(names[one.name]) for one in others
    )
    first = sql.Identifier(key[0])
    text = sql.SQL(
        "create temp table dbdyno_changes on commit drop as select s.*, t.{} is null as dbdyno_new"
        " from {} s left join {} t on {} where {} and (t.{} is null or {})"
    )
    conn.execute(text.format(first, typed, table, on, no_nulls, first, differs if others else sql.SQL("false")))
    _refuse_doubles(conn, typed, [names[name] for name in key], no_nulls)
    row = conn.execute(
        sql.SQL(
            "select (select count(*) from {} s where not ({})), (select count(*) from dbdyno_changes where dbdyno_new),"
            " (select count(*) from dbdyno_changes where not dbdyno_new)"
        ).format(typed, no_nulls)
    ).fetchone()
    nulls, new, differing = row or (0, 0, 0)
    begun, made = rejected(), sql.Identifier("dbdyno_changes")
    changed = run(made, _update(table, [names[one.name] for one in others], on)) if others else 0
    refused = rejected() - begun
    added = 0
    if adds:
        listed = sql.SQL(", ").join(names.values())
        text = sql.SQL(
            "insert into {} ({}) overriding system value select {} from dbdyno_changes s where s.dbdyno_new and {}"
        )
        added = run(made, lambda rows: text.format(table, listed, listed, rows))
    if changed != differing - refused or (adds and added != new - (rejected() - begun - refused)):
        raise MoveError(
            f"{differing:,} rows differ from the table's and {changed:,} were changed; "
            f"{new:,} rows are new and {added:,} were added",
            next_step="check the table's triggers, rules and keys (the key may not be unique); nothing was changed",
        )
    conn.execute("drop table dbdyno_changes")  # the next table in the same transaction creates its own
    return MergeCounts(added, changed, staged - nulls - new - differing, 0 if adds else new, nulls)


def _update(
    table: sql.Composable, identifiers: Sequence[sql.Identifier], on: sql.Composable
) -> Callable[[sql.Composable], sql.Composed]:
    sets = sql.SQL(", ").join(sql.SQL("{0} = s.{0}").format(name) for name in identifiers)
    text = sql.SQL("update {} t set {} from dbdyno_changes s where {} and not s.dbdyno_new and {}")
    return lambda rows: text.format(table, sets, on, rows)


def _refuse_doubles(
    conn: psycopg.Connection[Any], typed: sql.Composable, key: Sequence[sql.Identifier], no_nulls: sql.Composable
) -> None:
    listed = sql.SQL(", ").join(sql.SQL("s.{}").format(name) for name in key)
    text = sql.SQL("select count(*) from (select 1 from {} s where {} group by {} having count(*) > 1) d")
    row = conn.execute(text.format(typed, no_nulls, listed)).fetchone()
    if row and row[0]:
        are = "is" if row[0] == 1 else "are"
        raise MoveError(
            f"{with_noun(row[0], 'key')} {are} in the files more than once, so it is not clear which row to use",
            where="--key",
            next_step="name a key that is unique in the files; nothing was changed",
        )
