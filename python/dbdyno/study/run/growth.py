"""Growth of slices and turns after the warm-up, which shows how long a transaction takes.

If a slice is shorter than a transaction, each session still runs one transaction in it: the run takes many times as
long as planned, and sessions that have finished wait for the last one. With 5 or more transactions per session
(`OPERATIONS_MIN` explains why), both losses are about a tenth. Slices and turns grow to at most 10 s; if that is still
too short, a gate reports it. In an open loop transactions do not follow each other, so a slice must be long enough for
5 arrivals.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dbdyno.bench.protocol import RunLayout
from dbdyno.study.plan.schedule import grow_timing


def operation_ns(ready: RunLayout, report: Mapping[str, Any]) -> list[float]:
    """Return the duration of a transaction of each arm in a block [ns]; 0 if the arm has a rate, or if unknown."""
    found = [0.0] * len(ready.plan.arms)
    for arm in report["arms"]:
        if arm["transactions"] and not ready.plan.rate_of(ready.plan.arms[arm["arm"]]):
            found[arm["arm"]] = arm["busy_ns"] / arm["transactions"]
    return found


def needed_ns(ready: RunLayout, each_ns: list[float]) -> float:
    """Return the slice length [ns] that is sufficient for enough transactions."""
    from dbdyno.stats.gates import OPERATIONS_MIN

    rates = [ready.plan.rate_of(arm) for arm in ready.plan.arms]
    gaps = [1e9 / rate if rate else one for rate, one in zip(rates, each_ns, strict=True)]
    return OPERATIONS_MIN * max(gaps)


def lengthen_turns(ready: RunLayout, report: dict[str, object]) -> RunLayout:
    """Return the prepared plan with slices or turns that are long enough according to a warm-up block's report."""
    return ready.with_timing(grow_timing(ready.timing, needed_ns(ready, operation_ns(ready, report))))


def describe(before: RunLayout, after: RunLayout, report: dict[str, object], next_block: int) -> str:
    """Return a sentence on which lengths grew, why, and how long the remaining blocks take."""
    from dbdyno.stats.wording import duration

    each_ns = operation_ns(after, report)
    what, old, new = (
        ("slices", before.timing.slice_ns, after.timing.slice_ns)
        if after.timing.in_slices
        else ("turns", before.timing.turn_ns, after.timing.turn_ns)
    )
    reason = f"a transaction takes {duration(max(each_ns))}" if any(each_ns) else "arrivals are rare"
    left = after.seconds(each_ns, next_block)
    return (
        f"{reason}: {what} of {duration(new or 0)} instead of {duration(old or 0)}, so that each has enough "
        f"operations; about {_clock(left)} left"
    )


def _clock(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
