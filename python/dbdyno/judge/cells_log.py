"""Comparison of the flash log in two recordings: races won by flash, outliers prevented, reasons for bypasses.

The interval of a share is over rounds: writes of one round depend on each other, so the round is the observation.
Wilson's interval is shown beside it, which assumes independent writes; if it is narrower, the writes were not
independent.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypedDict

from dbdyno.base.sections import Table
from dbdyno.cells.diff import share_interval
from dbdyno.cells.page import Section
from dbdyno.judge.cells_parts import DIFFERENT, as_dict, section, table
from dbdyno.judge.cells_rates import SKIP, Row


def log_section(rows: Sequence[Row], names: tuple[str, str]) -> list[Section]:
    """Return the sections with the shares of the flash log and of the flash cache; none if there are no counters."""
    shares = [row for row in rows if row.measure == "share"]
    log = [row for row in shares if row.name != "cache_hits" and row.decision != "none in either"]
    cache = [row for row in shares if row.name == "cache_hits"]
    made = []
    if log:
        made.append(
            section(
                "flash_log",
                "Flash log",
                [
                    table("What happened, all cells", "what:text first second", _counts(rows)),
                    _intervals(log, names),
                    _changes(log),
                ],
                about="by rounds: each interval between collections is one observation; independent: Wilson's, "
                "assuming independent writes. A dash: too few intervals contain the events, or they drift, so the "
                "share has no interval",
                notes=_identity(rows),
            )
        )
    if cache:
        made.append(section("flash_cache", "Flash cache", [_intervals(cache, names), _changes(cache)]))
    return made


def log_sentences(rows: Sequence[Row], names: tuple[str, str]) -> list[str]:
    """Return sentences on the flash log: the load, how often flash was first, and the prevented outliers."""
    found = {row.name: row for row in rows if not row.cell}
    told = []
    load = found.get("FL_RQ_W") or found.get("FL_IO_W")
    if load is not None and load.a.above and load.b.above:
        told.append(
            f"Redo writes per second, all cells: {load.a.value:,.1f} in {names[0]},"
            f" {load.b.value:,.1f} in {names[1]}: {_decision_words(load)}."
        )
    share = found.get("flash_first")
    if share is not None and share.a.below > 0 and share.b.below > 0:
        told.append(
            f"Flash was first in {100 * share.a.value:.2f} % of {share.a.below:,.0f} redo writes in"
            f" {names[0]}, in {100 * share.b.value:.2f} % of {share.b.below:,.0f} in {names[1]}:"
            f" {_decision_words(share)}."
        )
        prevented = found.get("prevented")
        if prevented is not None:
            told.append(
                f"Outliers prevented: {prevented.a.above:,.0f} and {prevented.b.above:,.0f}:"
                f" {_decision_words(prevented)}."
            )
    return told


def _decision_words(row: Row) -> str:
    """Return the decision of a row in a few words."""
    if row.decision not in DIFFERENT:
        return {"same": "no difference that matters"}.get(row.decision, row.decision)
    if math.isnan(row.ratio):
        return row.decision
    factor = (row.low, row.ratio, row.high)
    low, ratio, high = (f"{100 * (value - 1):+.1f} %" for value in factor)
    return f"{row.decision}, {ratio} (95 % CI {low} to {high})"


def _counts(rows: Sequence[Row]) -> list[EventCounts]:
    """Return the number of flash log events in both recordings.

    The numbers are the sums from which the shares are computed, so that parts and wholes cover the same intervals.
    """
    found = {row.name: row for row in rows if not row.cell}
    told = []
    share, passed = found.get("flash_first"), found.get("passed_by")
    if passed is not None:
        told.append(_count("redo write requests", passed.a.below, passed.b.below))
    if share is not None:
        told += [
            _count("served by the flash log", share.a.below, share.b.below),
            _count("disk first", share.a.below - share.a.above, share.b.below - share.b.above),
            _count("flash first", share.a.above, share.b.above),
        ]
    for name, words in (
        ("prevented", "outliers prevented"),
        ("actual", "outliers not prevented"),
        ("passed_by", "bypassed the flash log"),
    ):
        row = found.get(name)
        if row is not None:
            told.append(_count(words, row.a.above, row.b.above))
    told += [
        _count(f"  {row.name.removeprefix(SKIP.lower())}", row.a.above, row.b.above)
        for name, row in found.items()
        if name.startswith(SKIP.lower()) and (row.a.above or row.b.above)
    ]
    return told


class EventCounts(TypedDict):
    """Number of occurrences of an event in each recording."""

    what: str
    first: int
    second: int


def _count(what: str, first: float, second: float) -> EventCounts:
    return {"what": what, "first": round(first), "second": round(second)}


def _intervals(rows: Sequence[Row], names: tuple[str, str]) -> Table:
    told = []
    for row in rows:
        for name, side in zip(names, (row.a, row.b), strict=True):
            if side.below <= 0:
                continue
            own = (side.interval() if side.value < 1 else None) or (None, None)
            wilson = share_interval(min(side.above, side.below), side.below)
            high = None if own[1] is None else min(own[1], 1.0)
            told.append(
                {
                    "share": row.label,
                    "recording": name,
                    "value": side.value,
                    "low": own[0],
                    "high": high,
                    "low_independent": wilson[0],
                    "high_independent": wilson[1],
                }
            )
    return table(
        "Shares with their 95 % intervals",
        "share:text recording:text value:ratio:share low:ratio:by_rounds_from high:ratio:to"
        " low_independent:ratio:independent_from high_independent:ratio:to",
        told,
    )


def _changes(rows: Sequence[Row]) -> Table:
    told = [{**as_dict(row), "share": row.label} for row in rows]
    return table(
        "Shares compared",
        "share:text decision:text ratio:change:change low:change:from high:change:to"
        " first:ratio second:ratio q:p second_larger:ratio:second_larger",
        told,
    )


def _identity(rows: Sequence[Row]) -> list[str]:
    """Return a note if disk first + flash first differs from the number of writes served."""
    found = {row.name: row for row in rows if not row.cell}
    parts = [found.get(name) for name in ("FL_IO_W", "FL_DISK_FIRST", "FL_FLASH_FIRST")]
    rates = [(row.a.value, row.b.value) for row in parts if row is not None]
    if len(rates) < 3 or all(
        math.isclose(served, disk + flash, rel_tol=1e-9, abs_tol=1e-12)
        for served, disk, flash in zip(*rates, strict=True)
    ):
        return []
    return ["disk first + flash first differs from FL_IO_W: the counters were read at different moments"]
