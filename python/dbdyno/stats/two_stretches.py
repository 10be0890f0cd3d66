"""Difference of the means of two stretches of one series, each of a few values in time order.

Neighbouring values are autocorrelated, and eight values are too few to estimate by how much. The lag-1 autocorrelation
is therefore estimated from both stretches together, each around its own mean, and corrected for its bias, -(1 + 3 r) /
n per stretch (Marriott and Pope 1954). The variance of a mean is widened by (1 + r) / (1 - r), and the degrees of
freedom of Welch's t are divided by the same factor.

Limits: with 8 values per stretch, 10 of 100 intervals at 95 % miss the true value at an autocorrelation of 0.6, and 6
of 100 at 0.3 and less.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dbdyno.base.errors import StatsError
from dbdyno.stats.distributions import t_cdf, t_quantile
from dbdyno.stats.means import Estimate

Floats = NDArray[np.float64]
LARGEST_R = 0.8
LEAST_FREEDOM = 2.0


@dataclass(frozen=True)
class Difference(Estimate):
    """The difference of two means with the two-sided p, its standard error and degrees of freedom."""

    p: float
    error: float
    freedom: float


def difference(a: Floats, b: Floats, *, level: float = 0.95) -> Difference:
    """Return the mean of `b` minus the mean of `a`, with its interval.

    Raises:
        StatsError: A side has fewer than two values.
    """
    if min(a.size, b.size) < 2:
        raise StatsError(
            f"{a.size} and {b.size} values are too few to compare", next_step="give at least two values on each side"
        )
    squares = [float(side.var(ddof=1)) / side.size for side in (a, b)]
    value, error2 = float(b.mean() - a.mean()), sum(squares)
    if error2 == 0:
        return Difference(value, value, value, 1.0 if value == 0 else 0.0, 0.0, math.inf)
    welch = error2**2 / sum(square**2 / (side.size - 1) for square, side in zip(squares, (a, b), strict=True))
    count = a.size + b.size
    widened = _variance_factor(a, b)
    lost = (count - 2) / max(count - 2 * widened, 1.0)
    error = math.sqrt(error2 * widened * max(lost, 1.0))
    freedom = max(welch / widened, LEAST_FREEDOM)
    half = t_quantile(freedom, 0.5 + level / 2) * error
    p = min(2.0 * t_cdf(freedom, -abs(value) / error), 1.0)
    return Difference(value, value - half, value + half, p, error, freedom)


def _variance_factor(a: Floats, b: Floats) -> float:
    """Return the factor, at least 1, by which autocorrelation widens the variance of a mean."""
    apart = [side - side.mean() for side in (a, b)]
    whole = sum(float((side**2).sum()) for side in apart)
    if whole == 0:
        return 1.0
    lag1 = sum(float((side[1:] * side[:-1]).sum()) for side in apart) / whole
    r = lag1 + (1 + 3 * lag1) * 2 / (a.size + b.size)
    r = min(max(r, 0.0), LARGEST_R)
    return (1 + r) / (1 - r)
