"""Steady state of a repeated write load, by the rule of SNIA's Solid State Storage Performance Test.

The last five rounds are steady if their highest and lowest value differ by at most 20 % of their mean, and the least
squares line through them rises or falls by at most 10 % of the mean from the first to the last.

    >>> steadiness([100, 90, 70, 69, 71, 70, 70]).steady
    True
    >>> steadiness([100, 90, 80, 70, 60]).steady
    False
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

WINDOW, RANGE_MOST, SLOPE_MOST = 5, 0.20, 0.10


@dataclass(frozen=True, slots=True)
class Steadiness:
    """The last rounds: their range and the rise of their line (signed), both as shares of their mean."""

    range: float
    rise: float
    steady: bool


def steadiness(values: Sequence[float]) -> Steadiness | None:
    """Return the steadiness of the last `WINDOW` values; None if there are fewer or their mean is not above 0."""
    last = [float(value) for value in values[-WINDOW:]]
    mean = sum(last) / len(last) if last else 0.0
    if len(last) < WINDOW or mean <= 0:
        return None
    middle = (WINDOW - 1) / 2
    across = sum((at - middle) ** 2 for at in range(WINDOW))
    slope = sum((at - middle) * value for at, value in enumerate(last)) / across
    wide, rise = (max(last) - min(last)) / mean, slope * (WINDOW - 1) / mean
    return Steadiness(wide, rise, wide <= RANGE_MOST and abs(rise) <= SLOPE_MOST)


def steady_after(values: Sequence[float]) -> int | None:
    """Return the number of rounds after which the last five were steady for the first time, or None if never."""
    for count in range(WINDOW, len(values) + 1):
        found = steadiness(values[:count])
        if found is not None and found.steady:
            return count
    return None
