"""Detection of values that the table stores differently from the loaded ones.

Assignment rounds silently: a numeric to its column's digits, a double to a real, a timestamp to a date. Such values are
counted, with an example.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg
from psycopg import sql

from dbdyno.base.errors import MoveError
from dbdyno.move.loading.request import Column, RoundedColumn

WIDER_TYPES = {
    ("smallint", "integer"),
    ("smallint", "bigint"),
    ("integer", "bigint"),
    ("real", "double precision"),
    ("oid", "bigint"),
}
"""Pairs of types of which the second holds every value of the first."""
SQL_TYPE_NAMES = {"timestamptz": "timestamp with time zone", "timestamp": "timestamp without time zone"}
TEXT_LIMITS = ("character varying", "numeric", "timestamp", "time", "interval")
"""Types whose length or precision rounds or cuts a value that is read from text; other types raise an error."""


OWN_ROWS_SQL = "where age(t.xmin) <= 0"
"""SQL condition for rows written by this transaction and its savepoints (their age() is not above 0)."""


def rounded_columns(
    conn: psycopg.Connection[Any], stage: sql.Composable, columns: Sequence[Column]
) -> tuple[list[RoundedColumn], list[str]]:
    """Return the columns with values that are stored differently, and the columns that cannot be compared.

    Must be called inside a transaction.
    """
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
            found.append(RoundedColumn(column.name, column.declared, *row))
    return found, not_compared


def may_differ(column: Column) -> bool:
    """Return True if assignment to the column may round a value."""
    if column.came == column.declared:
        return False
    staged = column.staged
    limits = column.declared != column.becomes
    if staged == "text":
        return limits and column.becomes.startswith(TEXT_LIMITS)
    base = staged.split("(")[0]
    base = (
        SQL_TYPE_NAMES.get(base, base).replace("time", "time without time zone")
        if base == "time"
        else SQL_TYPE_NAMES.get(base, base)
    )
    if base == column.becomes:
        return limits and staged != column.declared
    return (base, column.becomes) not in WIDER_TYPES and column.becomes != "text"


def refuse_differing_rows(
    conn: psycopg.Connection[Any],
    stage: sql.Composable,
    table: sql.Composable,
    columns: Sequence[Column],
    key: Sequence[str],
    *,
    all_rows: bool,
    adds: bool,
) -> None:
    """Compare the table with the staged rows, by key or, without a key, by count and sum of row hashes.

    Args:
        conn: The session whose transaction wrote the rows; it has not committed yet.
        stage: The staging table.
        table: The target table.
        columns: The columns that are written.
        key: The columns that identify a row; may be empty.
        all_rows: Without a key, compare all rows of the table and not only those of this transaction.
        adds: True if rows with new keys were added, so that a key missing in the table is an error.

    Raises:
        MoveError: The rows differ; the transaction must not be committed then.
    """
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
        differing = f"{row[0]:,} rows of the table differ" if row and row[0] else None
    else:
        ours = sql.SQL("") if all_rows else sql.SQL(OWN_ROWS_SQL)
        sums = sql.SQL("select count(*), sum(hashtextextended(row({})::text, 0)::numeric) from {} {} {}")
        left = conn.execute(sums.format(sql.SQL(", ").join(came), stage, sql.SQL("s"), sql.SQL(""))).fetchone()
        right = conn.execute(sums.format(sql.SQL(", ").join(stands), table, sql.SQL("t"), ours)).fetchone()
        differing = None if left == right else f"{left[0] if left else 0:,} rows were sent, and the table's rows differ"
    if differing is not None:
        raise MoveError(
            f"{differing} from the sent rows; the table was not changed",
            next_step="check for a trigger or a narrower type that alters values, or leave --verify target out "
            "to see what is rounded",
        )


def _plain(column: Column, value: sql.Composable) -> sql.Composable:
    """Return the value cast to text; a char loses its padding."""
    return sql.SQL("({}){}::text").format(value, sql.SQL("::bpchar" if column.becomes == "bpchar" else ""))


def _cast_back(column: Column) -> sql.Composable:
    name = sql.SQL("t.{}").format(sql.Identifier(column.name))
    if column.staged == "text":
        return name
    return sql.SQL("{}::{}").format(name, sql.SQL(column.staged))
