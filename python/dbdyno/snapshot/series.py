"""An interval cut at the snapshots between its ends: one value of each metric per sub-interval.

The samples of a comparison, and the curves of a report. A sub-interval in which something was
reset, crashed or restarted has no value there, never a zero.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from dbdyno.snapshot.clock import elapsed_ns
from dbdyno.snapshot.interval import Interval
from dbdyno.snapshot.store import Snapshot, Store


@dataclass(frozen=True)
class Metric:
    """A metric of a sub-interval: `higher` says whether more is better, None where neither."""

    name: str
    label: str
    unit: str
    higher: bool | None = None


@dataclass
class Series:
    """Values of each metric per sub-interval, which ends at `at_us`: the first snapshot's time and what
    has passed since, so that a clock that steps moves no point."""

    metrics: list[Metric] = field(default_factory=list)
    at_us: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    values: dict[str, list[float | None]] = field(default_factory=dict)


def series(store: Store, chain: list[Snapshot]) -> Series:
    """The metrics between each snapshot and the next."""
    found = Series()
    for first, last in pairwise(chain):
        with Interval(store, first, last, [first, last]) as part:
            measured = part.engine.metrics(part)
        for metric, value in measured:
            if metric.name not in found.values:
                found.metrics.append(metric)
                found.values[metric.name] = [None] * len(found.at_us)
            found.values[metric.name].append(value)
        found.seconds.append(elapsed_ns(first, last) / 1e9)
        found.at_us.append((chain[0].at_ns + elapsed_ns(chain[0], last)) // 1000)
        for values in found.values.values():
            values.extend([None] * (len(found.at_us) - len(values)))
    return found


def figures(interval: Interval) -> dict[str, Any]:
    """`series` of a report: nothing where there are but two snapshots."""
    if len(interval.chain) <= 2:
        return {}
    found = series(interval.store, interval.chain)
    return {
        "series": {
            "at_us": found.at_us,
            "metrics": [
                {"name": m.name, "label": m.label, "unit": m.unit, "values": found.values[m.name]}
                for m in found.metrics
            ],
        }
    }
