"""What a server did lately, for a small chart: active sessions over the last day of its snapshots."""

from __future__ import annotations

from dataclasses import dataclass

from dbdyno.snapshot.reading.series import series, thinned
from dbdyno.snapshot.store.folder import Snapshot, Store

POINTS = 96
"""Points of a small chart: a quarter of an hour each in a day."""
MEASURES = ("aas", "qps", "tps")
"""The metrics that may be drawn, the first that is known."""


@dataclass(frozen=True)
class Lately:
    """A metric over the last day: its name and label, and its values, None where not known."""

    name: str
    label: str
    values: list[float | None]


def within(snapshots: list[Snapshot], low_us: int, high_us: int) -> list[Snapshot]:
    """Return the snapshots of a stretch of time: the last one not after `low_us` to the first not before `high_us`."""
    first = max((at for at, one in enumerate(snapshots) if one.at_ns // 1000 <= low_us), default=0)
    last = next((at for at, one in enumerate(snapshots) if one.at_ns // 1000 >= high_us), len(snapshots) - 1)
    chain = snapshots[first : max(last, first + 1) + 1]
    return chain if len(chain) < 2 else [_opened(chain[0]), *chain[1:-1], _opened(chain[-1])]


def _opened(one: Snapshot) -> Snapshot:
    """Return a snapshot of the index with all that its manifest has, which a report needs of both ends."""
    return Store(one.store).open(one.number)


def lately(store: Store, snapshots: list[Snapshot], seconds: int = 86400) -> Lately | None:
    """Return the active sessions of the last day before the last snapshot, or None with fewer than two snapshots."""
    if len(snapshots) < 2:
        return None
    last_us = snapshots[-1].at_ns // 1000
    chain = within(snapshots, last_us - seconds * 10**6, last_us)
    found = thinned(series(store, chain), POINTS)
    known = {one.name: one for one in found.metrics}
    name = next((one for one in MEASURES if one in known and any(found.values[one])), None)
    if name is None:
        return None
    return Lately(name, known[name].label, found.values[name])
