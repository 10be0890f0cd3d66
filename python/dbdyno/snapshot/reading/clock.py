"""The time between two snapshots, whatever the server's clock did in the meantime.

Each snapshot has two times: the server's, which people read, and one from a clock of the machine that took it, which
never steps (it counts from the machine's start, including sleep). Between snapshots that one machine took since one
start, durations come from the second; the first only says when. If the two disagree, the server's clock was set: that
is a finding, and no reason to doubt the rates.

Limits: across machines, or across a restart of the machine, only the server's clock is available.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from dbdyno.snapshot.engines.view import Verdict

if TYPE_CHECKING:
    from dbdyno.snapshot.store.folder import Snapshot

STEPPED = "clock stepped"
LEAST_NS = 2_000_000_000
"""Largest step in nanoseconds that is indistinguishable from the time that reading takes."""

SHARE = 0.002
"""Largest relative error of a clock that is slewed or inaccurate but not set (NTP slews by 0.05 %)."""

_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def clock_stamp() -> dict[str, object]:
    """Return this machine's current time, for a snapshot's facts; empty if the machine's boot cannot be identified."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return {}
    return {"clock": {"boot": boot, "since_boot_ns": time.clock_gettime_ns(_CLOCK)}}


def elapsed_ns(first: Snapshot, last: Snapshot) -> int:
    """Return the time between two snapshots in ns, by the server's clock if no better clock is known."""
    steady = _steady_ns(first, last)
    return last.at_ns - first.at_ns if steady is None else steady


def clock_verdict(chain: Sequence[Snapshot]) -> Verdict | None:
    """Return a verdict if the server's clock was set between two of these snapshots, or None."""
    for first, last in pairwise(chain):
        steady = _steady_ns(first, last)
        if steady is None:
            continue
        step_ns = last.at_ns - first.at_ns - steady
        if abs(step_ns) > LEAST_NS + SHARE * abs(steady):
            how = "forward" if step_ns > 0 else "back"
            why = (
                f"the server's clock was set {how} by {_span(abs(step_ns))} between snapshots {first.number}"
                f" and {last.number}; durations and rates here come from a monotonic clock"
            )
            return Verdict(STEPPED, why, last.at_ns // 1000)
    return None


def _steady_ns(first: Snapshot, last: Snapshot) -> int | None:
    old, new = first.steady_clock, last.steady_clock
    if old is None or new is None or old[0] != new[0]:
        return None
    return new[1] - old[1]


def _span(ns: int) -> str:
    seconds = ns / 1e9
    if seconds < 120:
        return f"{seconds:.3g} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"
