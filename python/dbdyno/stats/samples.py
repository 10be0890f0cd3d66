"""Samples in the forms that the tests accept: whole numbers in rising order, or distinct values with counts.

Latencies are whole nanoseconds with many ties, so millions of values shrink to far fewer counts, and every rank
statistic is computed exactly in one pass over them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dbdyno.base.errors import StatsError

Integers = NDArray[np.integer[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class Counts:
    """Distinct values in rising order, and the number of occurrences of each (same length, counts > 0)."""

    values: Integers
    counts: Integers

    @property
    def total(self) -> int:
        """Return the number of values, repeats included."""
        return int(self.counts.sum())


Sample = Integers | Counts


def counts_of(sample: Sample) -> Counts:
    """Return the counts of a sorted array; a `Counts` is returned unchanged.

    Raises:
        StatsError: The array is empty, not one-dimensional, or not in rising order.
    """
    if isinstance(sample, Counts):
        if sample.total == 0:
            raise StatsError("the sample has no values", next_step="check that the arm ran")
        return sample
    values = np.asarray(sample)
    if values.ndim != 1 or values.size == 0:
        raise StatsError("the sample has no values", next_step="check that the arm ran")
    new = np.empty(values.size, dtype=bool)
    new[0] = True
    np.not_equal(values[1:], values[:-1], out=new[1:])
    starts = np.flatnonzero(new)
    distinct = values[starts]
    if np.any(distinct[1:] < distinct[:-1]):
        raise StatsError("the values are not in rising order", next_step="sort the values first")
    return Counts(distinct, np.diff(starts, append=values.size))


@dataclass(frozen=True, slots=True)
class Moments:
    """Count, mean and standard deviation (denominator n - 1; NaN below two values)."""

    count: int
    mean: float
    sd: float


def moments(values: NDArray[Any]) -> Moments:
    """Return the moments of an array of numbers, computed in two passes.

    The corrected two-pass form (Chan, Golub and LeVeque 1983) loses no digits if the spread is small compared with the
    mean.

    Raises:
        StatsError: The array is empty.
    """
    floats = np.asarray(values, dtype=np.float64)
    if floats.size == 0:
        raise StatsError("there are no values to take the mean of", next_step="check that the arm ran")
    n = floats.size
    mean = float(floats.mean())
    mean += float((floats - mean).mean())
    if n < 2:
        return Moments(n, mean, float("nan"))
    apart = floats - mean
    m2 = float(np.dot(apart, apart)) - float(apart.sum()) ** 2 / n
    return Moments(n, mean, float(np.sqrt(max(m2, 0.0) / (n - 1))))


def autocorrelation(values: NDArray[Any], lag: int = 1) -> float:
    """Return the sample autocorrelation at a lag, in the form that NIST certifies; NaN if it is not defined.

    It is sum (y[t] - mean)(y[t+lag] - mean) / sum (y[t] - mean)^2.
    """
    floats = np.asarray(values, dtype=np.float64)
    if lag < 0 or lag >= floats.size:
        return float("nan")
    apart = floats - floats.mean()
    apart -= apart.mean()
    whole = float(np.dot(apart, apart))
    if whole <= 0.0:
        return float("nan")
    return float(np.dot(apart[: floats.size - lag], apart[lag:])) / whole
