"""New statements that scan a whole table for a few of its rows: a missing index explains their time."""

from __future__ import annotations

from collections.abc import Hashable
from typing import cast

from dbdyno.base.sql_text import literal
from dbdyno.snapshot.causes.change import Change, Key, Pair
from dbdyno.snapshot.engines.postgres.lookup_columns import has_aggregate, is_selective, lookup_columns
from dbdyno.snapshot.wording import three_digits

LEAST_ROWS = 1000.0
"""Fewest rows that a call must read by sequential scans for a missing index to explain its time."""
LARGEST_RESULT_SHARE = 0.01
"""Largest share of the rows read that a call may return for an index to be worthwhile."""
LEAST_SCANS, LEAST_BLOCK_SHARE = 0.5, 0.5
"""Fewest scans per call, and smallest share of the table's blocks per call; below these, other statements scan it."""
_NEEDED = ("pg_index", "pg_attribute", "pg_class")


def full_scan(change: Change, number: Key) -> tuple[str, str] | None:
    """Return in words how a new statement scans a whole table, and the evidence; None if no index could help.

    No index could help if it scans no whole table, or needs all rows of the table.
    """
    one = change.statements[number]
    calls = one.after.get("calls", 0.0)
    if not calls or not all(change.after.has(view) for view in _NEEDED):
        return None
    for key, table in change.tables.items():
        rows = table.growth("seq_tup_read") / calls
        if rows < LEAST_ROWS or table.growth("seq_scan") < LEAST_SCANS * calls:
            continue
        if number in change.statements_of_table(table.name, slower=False) and _reads(change, key, one):
            found = _wanted(change, key, one, rows)
            if found is not None:
                return f"reads {table.name} whole", found
    return None


def _reads(change: Change, key: Hashable, pair: Pair) -> bool:
    """Return True if a call requests at least half as many blocks as the table has."""
    datid, relid = cast("tuple[int, int]", key)
    source = change.after.ends("pg_class")[1]
    rows = change.after.query(f"select relpages from {source} where datid = {int(datid)} and oid = {int(relid)}")
    pages = float(rows[0]["relpages"] or 0) if rows else 0.0
    return pair.per_call("work")[1] >= LEAST_BLOCK_SHARE * pages


def _wanted(change: Change, key: Hashable, pair: Pair, rows: float) -> str | None:
    """Return in words why an index could help: the result is small, or a condition is selective; None if neither."""
    returned = pair.per_call("rows")[1]
    few = returned <= LARGEST_RESULT_SHARE * rows and not has_aggregate(pair.text)
    lacking = [name for name, selective in _without_index(change, key, lookup_columns(pair.text)) if few or selective]
    if not few and not lacking:
        return None
    words = f"{rows:,.0f} rows a call for {three_digits(returned)} of its result"
    return words + (f"; no index begins with {' or '.join(lacking)}" if lacking else "")


def _without_index(change: Change, key: Hashable, names: frozenset[str]) -> list[tuple[str, bool]]:
    """Return the columns among `names` that are not the first column of an index, each with True if it is selective.

    A column is selective if few rows have the same value, according to the planner's statistics.
    """
    if not names or "first_column" not in change.after.columns("pg_index"):
        return []
    datid, relid = cast("tuple[int, int]", key)
    table = f"datid = {int(datid)} and {{}} = {int(relid)}"
    indexes, columns = (change.after.ends(view)[1] for view in ("pg_index", "pg_attribute"))
    found = change.after.query(
        f"select attname as name from {columns} where {table.format('attrelid')}"
        f" and lower(attname) in ({', '.join(map(literal, sorted(names)))})"
        f" and attnum not in (select first_column from {indexes} where {table.format('relid')} and indisvalid)"
        " order by 1"
    )
    known = {}
    if change.after.has("pg_stats"):
        rows = change.after.query(f"from {change.after.ends('pg_stats')[1]} where {table.format('relid')}")
        known = {row["attname"]: is_selective(row["distinct_values"], row["commonest"]) for row in rows}
    return [(row["name"], known.get(row["name"], False)) for row in found]
