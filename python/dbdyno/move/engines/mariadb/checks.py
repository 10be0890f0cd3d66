"""Check that a MariaDB table holds exactly the staged rows, inside the writing transaction and before its commit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dbdyno.base.errors import MoveError
from dbdyno.bench.mariadb.session import rows
from dbdyno.move.engines.mariadb.sql import quote_name
from dbdyno.move.engines.mariadb.target import Field, TargetTable
from dbdyno.move.loading.request import LoadRequest
from dbdyno.move.nouns import with_noun

KEYS_SQL = """
select index_name, column_name, nullable from information_schema.statistics
where table_schema = %s and table_name = %s and non_unique = 0 order by index_name = 'PRIMARY' desc, index_name
"""


def refuse_differing_rows(
    conn: Any, goal: TargetTable, stages: Sequence[str], load_request: LoadRequest, *, of_new: int, adds: bool
) -> None:
    """Refuse the load unless every staged row is in the target table with exactly the same values.

    Rows are matched by the key of `load_request`, else by a unique key of the table; without one, both sides are
    compared as multisets, which needs mode `replace`. In mode `replace` the table may hold no other rows.

    Args:
        conn: The session whose transaction wrote the rows; it has not committed yet.
        goal: The target table and its columns.
        stages: Quoted names of the staging tables.
        load_request: The mode and the key of the load.
        of_new: Number of rows that were added; in mode `replace`, the number of rows that the table must have.
        adds: True if rows with new keys were added, so that a key missing in the table is an error.

    Raises:
        MoveError: A row differs or is missing, the table has extra rows, or there is no unique key to match by.
    """
    given = goal.written_fields()
    keys = load_request.key or _unique(conn, goal, given)
    if not keys:
        if load_request.mode != "replace":
            raise MoveError(
                "the table has no unique key by which rows can be found",
                where="--verify target",
                next_step="add a unique key, use --mode replace, or leave --verify target out; nothing was changed",
            )
        _as_sets(conn, goal, stages, given)
        return
    on = " and ".join(f"t.{quote_name(one.name)} = {one.key()}" for one in given if one.name in keys)
    named = " and ".join(f"s.{quote_name(name)} is not null" for name in keys)
    same = " and ".join(f"{one.bytewise(f't.{quote_name(one.name)}')} <=> {one.bytewise(one.value())}" for one in given)
    first = quote_name(keys[0])
    joins = "left join" if adds or not load_request.key else "join"
    other = 0
    for stage in stages:
        text = f"select count(*) from {stage} s {joins} {goal.table} t on {on} where {named}"
        other += int(rows(conn, f"{text} and (t.{first} is null or not ({same}))")[0][0])
    if other:
        _refuse(other)
    if load_request.mode == "replace":
        there = int(rows(conn, f"select count(*) from {goal.table}")[0][0])
        if there != of_new:
            _refuse(abs(there - of_new))


def _unique(conn: Any, goal: TargetTable, fields: Sequence[Field]) -> Sequence[str]:
    """Return the columns of a unique key that has no nullable column and is fully loaded; empty if there is none."""
    names = {one.name for one in fields}
    found: dict[str, list[tuple[str, str]]] = {}
    for index, column, nullable in rows(conn, KEYS_SQL, [goal.schema, goal.name]):
        found.setdefault(index, []).append((column, nullable))
    for columns in found.values():
        if all(name in names and nullable != "YES" for name, nullable in columns):
            return [name for name, _ in columns]
    return ()


def _as_sets(conn: Any, goal: TargetTable, stages: Sequence[str], fields: Sequence[Field]) -> None:
    """Compare staged rows with the table's rows as multisets (a row may occur more than once)."""
    came = ", ".join(one.bytewise(one.value()) for one in fields)
    stands = ", ".join(one.bytewise(f"t.{quote_name(one.name)}") for one in fields)
    staged = " union all ".join(f"select {came} from {stage} s" for stage in stages)
    there = f"select {stands} from {goal.table} t"
    for one, other in ((f"({staged})", f"({there})"), (f"({there})", f"({staged})")):
        count = int(rows(conn, f"select count(*) from ({one} except all {other}) d")[0][0])
        if count:
            _refuse(count)


def _refuse(count: int) -> None:
    raise MoveError(
        f"{with_noun(count, 'row')} of the table would differ from the loaded rows:"
        " a trigger or a narrower type alters them",
        where="--verify target",
        next_step="check the table's triggers and types; the table was not changed",
    )
