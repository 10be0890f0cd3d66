"""Corrections of execution times: for a longer network path to one side, and for waits for a processor here."""

from __future__ import annotations

import statistics
import time

from dbdyno.rehearse.side import Side
from dbdyno.snapshot.wording import duration_text

ROUND_TRIPS = 100
"""Number of empty queries sent to each side."""
_NOTED_SHARE = 0.1
LEAST_NS, LEAST_SHARE = 50_000, 0.5
"""Minimum difference of the round trips [ns], and as a share of the shorter one, for which times are corrected."""


def subtract_distance(old: Side, new: Side) -> str:
    """Measure both round trips, subtract the difference on the farther side, and return a sentence about it.

    The sentence is empty if both servers are equally far away. The tenth percentile of many round trips is used,
    because other programs on the machine make some of them longer, and none shorter.

    Raises:
        TargetError: A server does not answer.
    """
    if _place(old) == _place(new):
        return ""
    times: tuple[list[int], list[int]] = ([], [])
    for _ in range(ROUND_TRIPS):
        for side, seen in zip((old, new), times, strict=True):
            begun = time.perf_counter_ns()
            side.ping()
            seen.append(time.perf_counter_ns() - begun)
    quick = [statistics.quantiles(seen, n=10)[0] for seen in times]
    difference = quick[1] - quick[0]
    if abs(difference) < max(LEAST_NS, LEAST_SHARE * min(quick)):
        return ""
    farther = new if difference > 0 else old
    farther.farther_ns = round(abs(difference))
    return (
        f"A round trip to the old server takes {duration_text(quick[0] / 1e6)}, to the new one"
        f" {duration_text(quick[1] / 1e6)}: the times"
        f" of the {farther.name} server are reduced by the difference."
    )


def _place(side: Side) -> tuple[str | None, ...]:
    known = side.server.libpq_parameters()
    return tuple(known.get(name) for name in ("host", "hostaddr", "port"))


def subtract_waits(old: Side, new: Side) -> None:
    """Subtract waits for a processor on both sides, if they can be measured on both.

    Raises:
        TargetError: A server does not answer.
    """
    known = [side.subtract_waits() for side in (old, new)]
    if not all(known):
        old.without_waits = new.without_waits = False


def waits_note(old: Side, new: Side) -> str:
    """Describe the subtracted waits in a sentence; empty if they were short."""
    elapsed, waited = (sum(side.waits[at] for side in (old, new)) for at in (0, 1))
    if waited <= _NOTED_SHARE * elapsed:
        return ""
    share = f"{100 * waited / elapsed:.0f} %"
    return f"The machine was busy: client and servers waited {share} of the time for a processor; it is subtracted."
