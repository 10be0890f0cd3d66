"""Rates, latencies and gauges of the cells from round to round, beside their averages since the watch began.

A row is one quantity: a rate (a counter's increase divided by the seconds on the cell's clock), a latency (a time
divided by its requests), or the current value of a gauge. Each has the value of this round and the average since the
beginning, so that an unusual value stands out without knowledge of what is usual on these cells. The average is one sum
divided by another (increase / seconds, time / requests); for gauges it is the mean of the observed values.

Rows are ranked by meaning, never across units: errors first, then by how far a value is from its own average.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from dbdyno.cells.aggregate import combine
from dbdyno.cells.catalogue import metric, request_counters
from dbdyno.cells.collection import Collection
from dbdyno.cells.diff import changes_between
from dbdyno.cells.page import WatchedRow, WatchPage
from dbdyno.cells.rates import GONE, NEW, NOT_REFRESHED, RESET, Change

RATE, LATENCY, GAUGE = "rate", "latency", "gauge"
_PER_S = {"MB": "MB/s", "KB": "KB/s"}
Key = tuple[str, str, str, str]
"""Key of a row: kind, metric, cell, object."""
Row = WatchedRow


@dataclass
class RunningSums:
    """Sums since the watch began: numerator and denominator of each row."""

    sums: dict[Key, tuple[float, float]] = field(default_factory=dict)
    rounds: int = 0

    def row(self, key: Key, unit: str, above: float, below: float) -> Row:
        """Add a round's sums to those of earlier rounds, and return the row for the page."""
        old = self.sums.get(key, (0.0, 0.0))
        whole = self.sums[key] = (old[0] + above, old[1] + below)
        kind, name, cell, item = key
        return {
            "metric": name,
            "cell": cell,
            "object": item,
            "kind": kind,
            "now": above / below if below else None,
            "average": whole[0] / whole[1] if whole[1] else None,
            "unit": unit,
        }


def watch_page(since: RunningSums, before: Collection, after: Collection, *, by: str = "cell") -> WatchPage:
    """Return the page of a round: its rows in order of rank, and counters without a difference."""
    found = changes_between(before, after)
    since.rounds += 1
    rows = [*_rates(since, found, by), *_latencies(since, found, by), *_gauges(since, after, by)]
    return {
        "schema": 1,
        "kind": "cells",
        "page": "watch",
        "by": by,
        "rounds": since.rounds,
        "rows": rank_rows(rows),
        "without": [
            {"cell": c.cell, "metric": c.name, "object": c.object, "verdict": c.verdict}
            for c in found
            if c.verdict in (NOT_REFRESHED, RESET, NEW, GONE)
        ],
    }


def rank_rows(rows: Sequence[Row]) -> list[Row]:
    """Return the rows in order: errors that rose, then values by their distance from the average, then by name."""

    def rank(row: Row) -> tuple[int, float, str, str, str]:
        now, average = row["now"], row["average"]
        errors = metric(row["metric"]).counts_errors and bool(now)
        off = abs(math.log(now / average)) if now and average and now > 0 and average > 0 else 0.0
        return (0 if errors else 1, -round(off, 2), row["metric"], row["cell"], row["object"])

    return sorted((row for row in rows if row["now"] is not None), key=rank)


def _place_of(change: Change, by: str) -> tuple[str, str]:
    return (change.cell if by != "object" else "", change.object if by != "cell" else "")


def _rates(since: RunningSums, changes: Sequence[Change], by: str) -> Iterator[Row]:
    """Yield the increase per second of each counter that is not a time of requests; rates of cells add up."""
    sums: dict[tuple[str, str, str], float] = {}
    spans: dict[tuple[str, str, str], float] = {}
    for change in changes:
        if change.per_s is not None and not request_counters(f"{change.name}_RQ"):
            key = (change.name, *_place_of(change, by))
            sums[key] = sums.get(key, 0.0) + change.per_s
            spans[key] = max(spans.get(key, 0.0), change.seconds or 0.0)
    for (name, cell, item), per_s in sums.items():
        seconds = spans[name, cell, item]
        unit = _PER_S.get(metric(name).unit, "1/s")
        yield since.row((RATE, name, cell, item), unit, per_s * seconds, seconds)


def _latencies(since: RunningSums, changes: Sequence[Change], by: str) -> Iterator[Row]:
    """Yield the time per request of each latency, over the aggregated objects or cells."""
    ok = {(c.cell, c.object, c.name): c.delta for c in changes if c.delta is not None}
    sums: dict[tuple[str, str, str], tuple[float, float]] = {}
    for change in changes:
        counters = request_counters(f"{change.name}_RQ")
        requests = [ok.get((change.cell, change.object, name)) for name in counters]
        if change.delta is None or not counters or None in requests:
            continue
        key = (change.name, *_place_of(change, by))
        old = sums.get(key, (0.0, 0.0))
        sums[key] = (old[0] + change.delta, old[1] + math.fsum(one or 0.0 for one in requests))
    for (name, cell, item), (times, count) in sums.items():
        yield since.row((LATENCY, f"{name}_RQ", cell, item), metric(name).unit or "us", times, count)


def _gauges(since: RunningSums, after: Collection, by: str) -> Iterator[Row]:
    """Yield current gauge values: the sum where allowed, else the maximum."""
    levels = [reading for reading in after.readings if metric(reading.name).kind == "gauge"]
    for one in combine(levels, by):
        value = one.value if one.value is not None else one.high
        yield since.row((GAUGE, one.name, one.cell, one.object), one.unit, value, 1.0)
