"""Rules that find causes in access to a table: rows that take more space, values in TOAST, indirect scans.

An indirect scan is one that the statement's text does not show: a foreign key, a trigger or a function causes it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import cast

from dbdyno.snapshot.causes.change import LEAST_WORK, Cause, Change, Key, Pair
from dbdyno.snapshot.causes.postgres.reachable_tables import WRITE, access_path
from dbdyno.snapshot.wording import three_digits

LEAST_SCANS, LEAST_ROWS = 10.0, 100.0
"""Fewest additional sequential scans that are reported, and fewest rows per scan for which row sizes are compared."""
SCANS_PER_CALL = (0.5, 3.0)
"""Range of additional scans per call for which a statement may be their cause: about one, or a few."""
MORE_BLOCKS_FACTOR, SAME_ROWS_FACTOR = 1.5, 1.1


def indirect_statements(change: Change, key: Hashable, table: Pair) -> frozenset[Key]:
    """Return the statements that probably scan a table through a foreign key, trigger, view or function.

    Such statements do more work per call, do not name the table or only write to it, can reach it according to the
    catalog, and are called about as often as sequential scans of it were added. The result is empty if fewer than
    `LEAST_SCANS` sequential scans were added.
    """
    if (table.after.get("seq_scan", 0.0) - table.before.get("seq_scan", 0.0)) * change.after.seconds < LEAST_SCANS:
        return frozenset()
    naming = change.statements_of_table(table.name, slower=False)
    return frozenset(
        number
        for number, one in change.statements.items()
        if (number not in naming or WRITE.match(one.text))
        and one.is_heavier()
        and _as_often(one, table, looks_up=number in naming)
        and access_path(change, number, key) is not None
    )


def _as_often(pair: Pair, table: Pair, *, looks_up: bool) -> bool:
    """Return True if the number of additional sequential scans per call is within `SCANS_PER_CALL`.

    If `looks_up` is True (the statement itself looks up rows of the table), lookups per call must not have fallen.
    """
    per_call = {
        name: table.after.get(name, 0.0) / pair.after["calls"] - table.before.get(name, 0.0) / pair.before["calls"]
        for name in ("seq_scan", "idx_scan")
    }
    return SCANS_PER_CALL[0] <= per_call["seq_scan"] <= SCANS_PER_CALL[1] and (
        per_call["idx_scan"] > -SCANS_PER_CALL[0] or not looks_up
    )


def sparser_tables(change: Change) -> Iterator[Cause]:
    """Yield a cause for each table whose scans read more blocks for the same number of rows, few of which are dead.

    The reason is wider rows, or free space inside the table that was not returned.
    """
    toast = _toast(change)
    for key, table in change.tables.items():
        slow = change.heavier_statements_of_table(table.name)
        if not slow:
            continue
        calls, work = _of_statements(change, slow, "calls"), _of_statements(change, slow, "work")
        rows = [_rows_of_a_scan(side, count) for side, count in zip((table.before, table.after), calls, strict=True)]
        dead = table.after.get("n_dead_tup", 0.0) > 0.5 * max(table.after.get("n_live_tup", 0.0), 1.0)
        if dead or not all(rows) or rows[1] > SAME_ROWS_FACTOR * rows[0]:
            continue
        room = [blocks / count - (toast[end].get(key, 0.0) / count) for end, (blocks, count) in _per(work, calls)]
        if room[1] >= MORE_BLOCKS_FACTOR * room[0] > 0 and room[1] - room[0] >= LEAST_WORK:
            came = _columns_that_came(change, key)
            yield Cause(
                f"table {table.name} takes {three_digits(room[1] / room[0])} times the space for the same rows",
                f"blocks per call {' → '.join(map(three_digits, room))}, rows of a sequential scan"
                f" {' → '.join(f'{one:,.0f}' for one in rows)}"
                + (f"; columns that came: {', '.join(came)}" if came else ""),
                slow,
                weight=2.1,
            )


def _per(some: list[float], calls: list[float]) -> Iterator[tuple[int, tuple[float, float]]]:
    return enumerate(zip(some, calls, strict=True))


def _of_statements(change: Change, some: frozenset[Key], what: str) -> list[float]:
    """Return a rate per second, summed over these statements, before and after."""
    return [sum(getattr(change.statements[n], end).get(what, 0.0) for n in some) for end in ("before", "after")]


def _rows_of_a_scan(side: dict[str, float], calls: float) -> float:
    """Return the number of rows that a sequential scan reads, or 0 unless each call makes about one scan."""
    scans, rows = side.get("seq_scan", 0.0), side.get("seq_tup_read", 0.0)
    if not calls or not 0.7 * calls <= scans <= 1.5 * calls or rows < LEAST_ROWS * scans:
        return 0.0
    return rows / scans


def larger_values(change: Change) -> Iterator[Cause]:
    """Yield a cause for each table whose additional TOAST reads are at least half of a call's additional work."""
    toast = _toast(change)
    for key in toast[0].keys() & toast[1].keys() & change.tables.keys():
        table = change.tables[key]
        slow = change.heavier_statements_of_table(table.name)
        calls, work = _of_statements(change, slow, "calls"), _of_statements(change, slow, "work")
        if not all(calls):
            continue
        old, new = (toast[end][key] / count for end, count in enumerate(calls))
        if new - old >= max(LEAST_WORK, 0.5 * (work[1] / calls[1] - work[0] / calls[0])):
            yield Cause(
                f"more is read from the TOAST of {table.name}: its values are larger, or more are requested",
                f"TOAST blocks per call {three_digits(old)} → {three_digits(new)}",
                slow,
                weight=2.15,
            )


def _toast(change: Change) -> list[dict[Hashable, float]]:
    """Return the blocks of TOAST tables and their indexes requested per second, by (datid, relid), before and after."""
    view = "pg_statio_user_tables"
    if not change.is_in_both(view):
        return [{}, {}]
    asked = "toast_blks_read + toast_blks_hit + tidx_blks_read + tidx_blks_hit"
    sides: list[dict[Hashable, float]] = []
    for one in (change.before, change.after):
        rows = one.query(f"select datid, relid, coalesce({asked}, 0) as n from {view} where verdict = 'ok'", view)
        sides.append({(int(row["datid"]), int(row["relid"])): float(row["n"]) / one.seconds for row in rows})
    return sides


def _columns_that_came(change: Change, key: Hashable) -> list[str]:
    """Return the names of columns that a table has at the end but did not have at the beginning."""
    view = "pg_attribute"
    if not change.is_in_both(view):
        return []
    datid, relid = cast("tuple[int, int]", key)
    which = f"where datid = {int(datid)} and attrelid = {int(relid)}"
    before, after = change.before.ends(view)[0], change.after.ends(view)[1]
    rows = change.before.query(
        f"select attname from {after} {which} and attnum not in (select attnum from {before} {which}) order by attnum"
    )
    return [str(row["attname"]) for row in rows]


RULES = (sparser_tables, larger_values)
