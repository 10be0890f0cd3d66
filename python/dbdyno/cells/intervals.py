"""A recording as intervals: the change of every counter between rounds, and the value of every gauge at each round.

A round is used once every cell that answers has collected again: if queries are faster than the cells collect, rounds
are merged, so that no interval is empty for a cell. If a cell has no new data while another one has collected twice,
the round is used without it. A missing difference (a restart, a cell that did not answer) is NaN, and counted in
`lost`.
"""

from __future__ import annotations

import functools
import itertools
import math
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from dbdyno.cells.catalogue import metric
from dbdyno.cells.collection import Collection
from dbdyno.cells.diff import changes_between
from dbdyno.cells.rates import NOT_REFRESHED, RESET, Change

Key = tuple[str, str, str]
"""Key of a counter or gauge: metric, cell, object."""

MISSING = "missing"
PATIENCE = 2
"""Number of collections of another cell after which a cell without new data is no longer waited for."""


@dataclass
class Intervals:
    """Intervals of a recording.

    `deltas` and `seconds` have one value per interval (NaN if there is none), `levels` have one value per round that is
    used; `lost` counts intervals by (cell, reason).
    """

    cells: list[str]
    count: int
    rounds: int
    first_ns: int
    last_ns: int
    deltas: dict[Key, list[float]] = field(default_factory=dict)
    seconds: dict[Key, list[float]] = field(default_factory=dict)
    levels: dict[Key, list[float]] = field(default_factory=dict)
    units: dict[str, str] = field(default_factory=dict)
    lost: Counter[tuple[str, str]] = field(default_factory=Counter)

    @functools.cached_property
    def counters(self) -> dict[str, dict[str, list[str]]]:
        """Return, for each counter and cell, the objects that have this counter."""
        found: dict[str, dict[str, list[str]]] = {}
        for name, cell, item in self.deltas:
            found.setdefault(name, {}).setdefault(cell, []).append(item)
        return found

    def only(self, cells: Sequence[str]) -> Intervals:
        """Return the intervals of only these cells."""
        parts = [
            {key: row for key, row in part.items() if key[1] in cells}
            for part in (self.deltas, self.seconds, self.levels)
        ]
        lost = Counter({entry: n for entry, n in self.lost.items() if entry[0] in cells})
        return replace(self, cells=list(cells), deltas=parts[0], seconds=parts[1], levels=parts[2], lost=lost)

    @property
    def mean_s(self) -> float:
        """Return the mean length of an interval in seconds, according to the cells' own clocks."""
        known = [s for row in self.seconds.values() for s in row if not math.isnan(s)]
        return math.fsum(known) / len(known) if known else math.nan


def intervals_of(rounds: Sequence[Collection]) -> Intervals:
    """Return the intervals of a recording's rounds, which must be in order of time."""
    kept = refreshed_rounds(rounds)
    cells = list(dict.fromkeys(c.host.name for one in rounds for c in one.columns))
    # The median over cells, so that a single wrong clock has no effect.
    first_ns, last_ns = (statistics.median_low(_times(one).values()) for one in (kept[0], kept[-1]))
    made = Intervals(sorted(cells), len(kept) - 1, len(rounds), first_ns, last_ns)
    for at, one in enumerate(kept):
        for reading in one.readings:
            if metric(reading.name).kind == "gauge":
                made.units.setdefault(reading.name, reading.unit)
                key = (reading.name, reading.cell, reading.object)
                made.levels.setdefault(key, [math.nan] * len(kept))[at] = reading.value
    for at, (before, after) in enumerate(itertools.pairwise(kept)):
        found = changes_between(before, after)
        for change in found:
            _put(made, at, change)
        made.lost.update((cell, why) for cell, why in _lost_cells(made.cells, found).items())
    return made


def refreshed_rounds(rounds: Sequence[Collection]) -> list[Collection]:
    """Return the rounds that are used: each has new data from all cells, or several new collections of one cell."""
    kept = [rounds[0]]
    since: dict[str, set[int]] = {}
    for one in rounds[1:]:
        base, now = _times(kept[-1]), _times(one)
        for cell, at in now.items():
            if at != base.get(cell):
                since.setdefault(cell, set()).add(at)
        waited = any(len(times) > PATIENCE for times in since.values())
        if waited or all(cell in since for cell in now):
            kept.append(one)
            since = {}
    return kept


def _times(collection: Collection) -> dict[str, int]:
    """Return when each cell collected, or when it was queried if it reported no time, in ns since 1970."""
    return {
        c.host.name: max((r.at_ns for r in c.readings if r.at_ns is not None), default=c.asked_ns)
        for c in collection.columns
        if c.readings
    }


def _put(intervals: Intervals, at: int, change: Change) -> None:
    key = (change.name, change.cell, change.object)
    if key not in intervals.deltas:
        intervals.deltas[key] = [math.nan] * intervals.count
        intervals.seconds[key] = [math.nan] * intervals.count
        intervals.units.setdefault(change.name, change.unit)
    if change.delta is not None and change.seconds:
        intervals.deltas[key][at] = change.delta
        intervals.seconds[key][at] = change.seconds


def _lost_cells(cells: Sequence[str], changes: Sequence[Change]) -> dict[str, str]:
    """Return the cells without a valid difference of any counter in this interval, with the reason."""
    whys: dict[str, str] = dict.fromkeys(cells, MISSING)
    for change in changes:
        if change.delta is not None:
            whys.pop(change.cell, None)
        elif change.cell in whys and change.verdict in (RESET, NOT_REFRESHED):
            whys[change.cell] = change.verdict
    return whys
