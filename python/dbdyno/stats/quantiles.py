"""Quantiles of sorted values, with the interval that assumes independent values."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dbdyno.base.errors import StatsError
from dbdyno.stats.distributions import binomial_cdf, binomial_sf
from dbdyno.stats.samples import Counts, Sample, counts_of

#: Smallest number of values that must be expected beyond a quantile for it to be reported.
VALUES_BEYOND_MIN = 10


@dataclass(frozen=True, slots=True)
class Quantile:
    """A type 7 quantile with its order-statistic interval; NaN if too few values lie beyond it."""

    q: float
    value: float
    low: float
    high: float

    @property
    def name(self) -> str:
        """Return the quantile's name, such as `p99.9` for 0.999."""
        return f"p{self.q * 100:.10g}"


@dataclass(frozen=True, slots=True)
class QuantileInterval(Quantile):
    """A quantile with its distribution-free interval, in the units of the values.

    `low` or `high` is NaN if there are too few values on that side for a bound. The interval assumes independent
    values, as `note` says: for latencies of one session it is far too narrow.
    """

    level: float
    coverage: float
    count: int
    note: str = "assumes independent waits"


def is_supported(count: int, q: float) -> bool:
    """Return True if at least ten of `count` values are expected beyond quantile `q`."""
    return count * min(q, 1.0 - q) >= VALUES_BEYOND_MIN * (1 - 1e-9)


def quantile(sample: Sample, q: float) -> float:
    """Return the type 7 quantile (Hyndman and Fan 1996; the default of R and numpy).

    `sample` is an array in rising order, or a `Counts`.

    Raises:
        StatsError: The sample is empty, or `q` is not within 0..1.
    """
    if not 0.0 <= q <= 1.0:
        raise StatsError(f"{q} is not a quantile", next_step="choose a quantile between 0 and 1")
    if isinstance(sample, Counts):
        total = counts_of(sample).total
    else:
        total = len(sample)
        if total == 0:
            raise StatsError("a quantile needs values, found none", next_step="check that the arm ran")
    h = (total - 1) * q
    below = min(math.floor(h), total - 1)
    low, high = _value_at(sample, below), _value_at(sample, min(below + 1, total - 1))
    return low + (h - below) * (high - low)


def _value_at(sample: Sample, rank: int) -> float:
    """Return the value at a 0-based rank."""
    if isinstance(sample, Counts):
        place = int(np.searchsorted(np.cumsum(sample.counts), rank, side="right"))
        return float(sample.values[place])
    return float(sample[rank])


def quantile_interval(sample: Sample, q: float, level: float = 0.95) -> QuantileInterval:
    """Return a quantile with its interval between two order statistics.

    The number of values below the true quantile is binomial(n, q) (David and Nagaraja, Order Statistics, section 7.1).
    The probability beyond each end is at most (1 - level) / 2.

    Raises:
        StatsError: The sample is empty, or `q` or `level` is not strictly within 0..1.
    """
    if not (0.0 < q < 1.0 and 0.0 < level < 1.0):
        raise StatsError(
            f"there is no interval for quantile {q} at level {level}",
            next_step="choose a quantile and a level greater than 0 and less than 1",
        )
    value = quantile(sample, q)
    count = sample.total if isinstance(sample, Counts) else len(sample)
    low, high = interval_ranks(count, q, level)
    has_low, has_high = low >= 1, high <= count
    missed = (binomial_cdf(low - 1, count, q) if has_low else 0.0) + (
        binomial_sf(high - 1, count, q) if has_high else 0.0
    )
    return QuantileInterval(
        q=q,
        value=value,
        low=_value_at(sample, low - 1) if has_low else math.nan,
        high=_value_at(sample, high - 1) if has_high else math.nan,
        level=level,
        coverage=1.0 - missed,
        count=count,
    )


@lru_cache(maxsize=256)
def interval_ranks(count: int, q: float, level: float) -> tuple[int, int]:
    """Return the 1-based ranks between which quantile `q` of `count` values is with probability `level`.

    They are the largest r with P(B < r) and the smallest s with P(B >= s) at most (1 - level) / 2, with B
    binomial(count, q). If there is no such rank, they are 0 and `count` + 1.
    """
    tail = (1.0 - level) / 2.0
    ranks = range(1, count + 1)
    low = bisect_left(ranks, True, key=lambda rank: bool(binomial_cdf(rank - 1, count, q) > tail))
    high = bisect_left(ranks, True, key=lambda rank: bool(binomial_sf(rank - 1, count, q) <= tail))
    return low, high + 1
