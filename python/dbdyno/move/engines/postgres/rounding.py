"""Is what stands in the table what came? Assignment rounds without a word: a numeric to the digits of its column, a
double to a real, a timestamp to a date. Such values are counted, with an example.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg
from psycopg import sql

from dbdyno.base.errors import MoveError
from dbdyno.move.loading.request import Column, Rounded

WIDER = {
    ("smallint", "integer"),
    ("smallint", "bigint"),
    ("integer", "bigint"),
    ("real", "double precision"),
    ("oid", "bigint"),
}
"""Types that hold every value of another."""
NAMES = {"timestamptz": "timestamp with time zone", "timestamp": "timestamp without time zone"}
TEXT_LIMITS = ("character varying", "numeric", "timestamp", "time", "interval")
"""Of text read as another type: those whose limits round or cut it. The others raise."""


OURS = "where age(t.xmin) <= 0"
"""Rows of this transaction and its savepoints: age counts from the number of the transaction itself."""


def rounded(
    conn: psycopg.Connection[Any], stage: sql.Composable, columns: Sequence[Column]
) -> tuple[list[Rounded], list[str]]:
    """What is held otherwise, and the columns of which that cannot be told. Inside of a transaction."""
    found, not_compared = [], []
    for column in columns:
        if not may_differ(column):
            continue
        came = column.value("s")
        back = column.becomes if column.staged == "text" else column.staged
        stands = sql.SQL("({}::{})::{}").format(came, sql.SQL(column.declared), sql.SQL(back))
        text = sql.SQL(
            "select count(*) over (), left(({0})::text, 60), left(({1})::text, 60) from {2} s"
            " where {0} is distinct from {1} limit 1"
        )
        try:
            with conn.transaction():
                row = conn.execute(text.format(came, stands, stage)).fetchone()
        except (psycopg.errors.CannotCoerce, psycopg.errors.UndefinedFunction):
            not_compared.append(column.name)
            continue
        if row is not None:
            found.append(Rounded(column.name, column.declared, *row))
    return found, not_compared


def may_differ(column: Column) -> bool:
    """Whether assignment may round a value."""
    if column.came == column.declared:
        return False
    staged = column.staged
    limits = column.declared != column.becomes
    if staged == "text":
        return limits and column.becomes.startswith(TEXT_LIMITS)
    base = staged.split("(")[0]
    base = NAMES.get(base, base).replace("time", "time without time zone") if base == "time" else NAMES.get(base, base)
    if base == column.becomes:
        return limits and staged != column.declared
    return (base, column.becomes) not in WIDER and column.becomes != "text"


def refuse_other(
    conn: psycopg.Connection[Any],
    stage: sql.Composable,
    table: sql.Composable,
    columns: Sequence[Column],
    key: Sequence[str],
    *,
    all_rows: bool,
    adds: bool,
) -> None:
    """Compares what stands in the table now with what was staged: row by row by its key, or as sets of rows by a sum of
    hashes. Raises `MoveError` where it differs: the transaction is not committed then."""
    came = [_plain(one, one.value("s")) for one in columns]
    stands = [_plain(one, _cast_back(one)) for one in columns]
    if key:
        on = sql.SQL(" and ").join(
            sql.SQL("t.{} = {}").format(sql.Identifier(one.name), one.value("s")) for one in columns if one.name in key
        )
        no_nulls = sql.SQL(" and ").join(sql.SQL("s.{} is not null").format(sql.Identifier(name)) for name in key)
        differs = sql.SQL(" or ").join(
            sql.SQL("{} is distinct from {}").format(left, right) for left, right in zip(came, stands, strict=True)
        )
        text = sql.SQL("select count(*) from {} s {} join {} t on {} where {} and ({})")
        kind = sql.SQL("left" if adds else "inner")
        row = conn.execute(text.format(stage, kind, table, on, no_nulls, differs)).fetchone()
        differing = f"{row[0]:,} rows of the table are not" if row and row[0] else None
    else:
        ours = sql.SQL("") if all_rows else sql.SQL(OURS)
        sums = sql.SQL("select count(*), sum(hashtextextended(row({})::text, 0)::numeric) from {} {} {}")
        left = conn.execute(sums.format(sql.SQL(", ").join(came), stage, sql.SQL("s"), sql.SQL(""))).fetchone()
        right = conn.execute(sums.format(sql.SQL(", ").join(stands), table, sql.SQL("t"), ours)).fetchone()
        differing = None if left == right else f"{left[0] if left else 0:,} rows came, and the table's are not"
    if differing is not None:
        raise MoveError(
            f"{differing} what came; nothing of the table was changed",
            next_step="a trigger or a narrower type alters them; without --verify target the load says what is rounded",
        )


def _plain(column: Column, value: sql.Composable) -> sql.Composable:
    """As text; blanks that pad a char are none of its value."""
    return sql.SQL("({}){}::text").format(value, sql.SQL("::bpchar" if column.becomes == "bpchar" else ""))


def _cast_back(column: Column) -> sql.Composable:
    name = sql.SQL("t.{}").format(sql.Identifier(column.name))
    if column.staged == "text":
        return name
    return sql.SQL("{}::{}").format(name, sql.SQL(column.staged))
