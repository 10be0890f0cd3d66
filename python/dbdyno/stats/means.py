"""Mean of a few independent values, with its interval; estimates with intervals."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from dbdyno.stats.distributions import t_quantile


@dataclass(frozen=True)
class RatioEstimate:
    """A ratio of two values with its interval and its test; values are NaN if not known.

    Attributes:
        ratio: The new or second value divided by the old or first one.
        low: Lower end of the interval of `ratio`.
        high: Upper end of the interval of `ratio`.
        p: Two-sided p of no difference.
    """

    ratio: float
    low: float
    high: float
    p: float


@dataclass(frozen=True)
class Estimate:
    """An estimated value with the ends of its interval."""

    value: float
    low: float
    high: float


def mean_interval(values: Iterable[float], level: float) -> tuple[float, float, float]:
    """Return the mean and the low and high end of Student's t interval; values that are not finite are left out.

    All three are NaN without a value; both ends are NaN with one value.
    """
    known = [float(value) for value in values if math.isfinite(value)]
    if not known:
        return math.nan, math.nan, math.nan
    n = len(known)
    mean = math.fsum(known) / n
    if n < 2:
        return mean, math.nan, math.nan
    error = math.sqrt(math.fsum((value - mean) ** 2 for value in known) / (n - 1) / n)
    half = t_quantile(n - 1, 0.5 + level / 2) * error
    return mean, mean - half, mean + half
