"""Time that a message takes to each side and back: the farther side's times are reduced by the difference."""

from __future__ import annotations

import statistics
import time

from dbdyno.rehearse.side import Side
from dbdyno.snapshot.wording import span

ROUND_TRIPS = 100
"""Number of empty queries sent to each side."""
LEAST_NS = 20_000
"""Difference of the round trips [ns] below which times are left as they are."""
SIGMAS = 4.0
"""Standard errors of the difference that it must exceed."""


def level_distance(old: Side, new: Side) -> str:
    """Measure the round trip to both sides, let the farther one subtract the difference, and return a sentence on it.

    The sentence is empty if both are equally far.

    Raises:
        TargetError: A server does not answer.
    """
    times: tuple[list[int], list[int]] = ([], [])
    for _ in range(ROUND_TRIPS):
        for side, seen in zip((old, new), times, strict=True):
            begun = time.perf_counter_ns()
            side.ping()
            seen.append(time.perf_counter_ns() - begun)
    middles = [statistics.median(seen) for seen in times]
    difference = middles[1] - middles[0]
    # 1.25 times the standard error of a mean is that of a median; quartiles are not disturbed by single long ones
    spread = sum((_spread(seen) * 1.25) ** 2 / ROUND_TRIPS for seen in times) ** 0.5
    if abs(difference) < max(LEAST_NS, SIGMAS * spread):
        return ""
    farther = new if difference > 0 else old
    farther.farther_ns = round(abs(difference))
    return (
        f"A round trip to the old server takes {span(middles[0] / 1e6)}, to the new one {span(middles[1] / 1e6)}: the"
        f" times of the {farther.name} server are reduced by the difference."
    )


def _spread(values: list[int]) -> float:
    low, _, high = statistics.quantiles(values, n=4)
    return (high - low) / 1.349
