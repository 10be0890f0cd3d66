"""Recent history of a server for a small chart: active sessions over the last day of its snapshots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dbdyno.snapshot.reading.series import series, thin_out
from dbdyno.snapshot.store.folder import Snapshot, Store

POINTS = 96
"""Number of points in a small chart: one per quarter of an hour in a day."""
MEASURES = ("aas", "qps", "tps")
"""Metrics for the chart; the first known one is drawn."""


@dataclass(frozen=True)
class RecentActivity:
    """A metric over the last day: its name, its label, and its values (None where unknown)."""

    name: str
    label: str
    values: list[float | None]


def snapshots_around(snapshots: Sequence[Snapshot], low_us: int, high_us: int) -> list[Snapshot]:
    """Return the snapshots around a time span: the last one not after `low_us` to the first not before `high_us`."""
    low_ns, high_ns, newest = low_us * 1000 + 999, high_us * 1000, len(snapshots) - 1
    first = next((at for at in range(newest, -1, -1) if snapshots[at].at_ns <= low_ns), 0)
    last = next((at for at in range(first, newest) if snapshots[at].at_ns >= high_ns), newest)
    chain = list(snapshots[first : max(last, first + 1) + 1])
    return chain if len(chain) < 2 else [_opened(chain[0]), *chain[1:-1], _opened(chain[-1])]


def _opened(snapshot: Snapshot) -> Snapshot:
    """Return a snapshot of the index with its complete manifest, which a report needs for both ends."""
    return Store(snapshot.store).open(snapshot.number)


def recent_activity(store: Store, snapshots: Sequence[Snapshot], seconds: int = 86400) -> RecentActivity | None:
    """Return the active sessions in the last day before the last snapshot, or None with fewer than two snapshots."""
    if len(snapshots) < 2:
        return None
    last_us = snapshots[-1].at_ns // 1000
    chain = snapshots_around(snapshots, last_us - seconds * 10**6, last_us)
    found = thin_out(series(store, chain), POINTS)
    known = {one.name: one for one in found.metrics}
    name = next((one for one in MEASURES if one in known and any(found.values[one])), None)
    if name is None:
        return None
    return RecentActivity(name, known[name].label, found.values[name])
