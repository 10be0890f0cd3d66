"""Quantiles of sorted values, and the interval that independent values would give."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dbdyno.base.errors import StatsError
from dbdyno.stats.samples import Counts, Sample, counts_of

#: A quantile is given only when at least this many values are expected beyond it.
VALUES_BEYOND_MIN = 10


@dataclass(frozen=True, slots=True)
class QuantileInterval:
    """A quantile with its distribution-free interval (units of the values).

    `low` or `high` is NaN when too few values lie on that side to give a bound. The interval
    assumes independent values (`note` says so): on latencies of one session it is far too narrow.
    """

    q: float
    value: float
    low: float
    high: float
    level: float
    coverage: float
    count: int
    note: str = "assumes independent waits"


def supported(count: int, q: float) -> bool:
    """Whether `count` values reach far enough into the tail for quantile `q`: at least ten values
    are expected beyond it."""
    return count * min(q, 1.0 - q) >= VALUES_BEYOND_MIN * (1 - 1e-9)


def quantile(sample: Sample, q: float) -> float:
    """The type 7 quantile (Hyndman and Fan 1996; the default of R and numpy).

    `sample` is in rising order, or counts. Raises `StatsError` when it is empty or `q` is not
    within 0..1.
    """
    if not 0.0 <= q <= 1.0:
        raise StatsError(f"a quantile of {q}", next_step="ask for one between 0 and 1")
    if isinstance(sample, Counts):
        total = counts_of(sample).total
    else:
        total = len(sample)
        if total == 0:
            raise StatsError("a quantile of no values", next_step="check that the arm ran")
    h = (total - 1) * q
    below = min(math.floor(h), total - 1)
    low, high = _at(sample, below), _at(sample, min(below + 1, total - 1))
    return low + (h - below) * (high - low)


def _at(sample: Sample, rank: int) -> float:
    """The value at a 0-based rank."""
    if isinstance(sample, Counts):
        place = int(np.searchsorted(np.cumsum(sample.counts), rank, side="right"))
        return float(sample.values[place])
    return float(sample[rank])


def quantile_interval(sample: Sample, q: float, level: float = 0.95) -> QuantileInterval:
    """The interval between two order statistics: the number of values below the true quantile is
    binomial(n, q) (David and Nagaraja, Order Statistics, section 7.1). At most (1 - level)/2 lies
    beyond each end.

    Raises `StatsError` when the sample is empty, or `q` or `level` not strictly within 0..1.
    """
    if not (0.0 < q < 1.0 and 0.0 < level < 1.0):
        raise StatsError(
            f"an interval for quantile {q} at level {level}",
            next_step="give both strictly between 0 and 1",
        )
    from scipy import special

    value = quantile(sample, q)
    count = sample.total if isinstance(sample, Counts) else len(sample)
    low, high = interval_ranks(count, q, level)
    has_low, has_high = low >= 1, high <= count
    missed = (float(special.bdtr(low - 1, count, q)) if has_low else 0.0) + (
        float(special.bdtrc(high - 1, count, q)) if has_high else 0.0
    )
    return QuantileInterval(
        q=q,
        value=value,
        low=_at(sample, low - 1) if has_low else math.nan,
        high=_at(sample, high - 1) if has_high else math.nan,
        level=level,
        coverage=1.0 - missed,
        count=count,
    )


@lru_cache(maxsize=256)
def interval_ranks(count: int, q: float, level: float) -> tuple[int, int]:
    """The 1-based ranks between which quantile `q` of `count` values lies at `level`; 0 and `count` + 1 where they
    do not reach so far. The largest r with P(B < r) and the smallest s with P(B >= s) at most (1 - level) / 2."""
    from scipy import special

    tail = (1.0 - level) / 2.0
    ranks = range(1, count + 1)
    low = bisect_left(ranks, True, key=lambda rank: bool(special.bdtr(rank - 1, count, q) > tail))
    high = bisect_left(ranks, True, key=lambda rank: bool(special.bdtrc(rank - 1, count, q) <= tail))
    return low, high + 1
