"""Comparison of many pairs of samples at once: row i of `a` with row i of `b`.

These are the tests for one pair (`quantile_interval`, `mann_whitney`, `compare_unpaired` with `in_order`) as array
operations over all rows: a comparison of hundreds of objects over a day has a thousand pairs of a thousand values each.
All rows of an array have the same length.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dbdyno.base.errors import StatsError
from dbdyno.stats.blocks import BOOTSTRAP_BLOCKS_MIN
from dbdyno.stats.classical import mann_whitney_of
from dbdyno.stats.distributions import t_cdfs, t_quantiles
from dbdyno.stats.quantiles import interval_ranks

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Ratios:
    """For each row: the ratio b / a of the geometric means, its interval, and the two-sided p."""

    ratio: Floats
    low: Floats
    high: Floats
    p: Floats


@dataclass(frozen=True, slots=True)
class _Side:
    """For each row, on the log scale: the mean, its squared standard error, and the effective number of values."""

    mean: Floats
    error2: Floats
    effective: Floats


def medians(rows: Floats, level: float = 0.95) -> tuple[Floats, Floats, Floats]:
    """Return the median of each row with its order-statistic interval; an end beyond the values is NaN.

    Raises:
        StatsError: The array does not have two dimensions with values in each row.
    """
    _refuse(rows, 1)
    ordered = np.sort(rows, axis=1)
    count = rows.shape[1]
    low, high = interval_ranks(count, 0.5, level)
    missing = np.full(len(rows), np.nan)
    return (
        np.median(ordered, axis=1),
        ordered[:, low - 1] if low >= 1 else missing,
        ordered[:, high - 1] if high <= count else missing,
    )


def second_larger(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Return, for each row, the probability that a value of b is larger, and its p (Mann and Whitney).

    Ties count as one half.

    Raises:
        StatsError: An array does not have two dimensions with values in each row.
    """
    _refuse(a, 1)
    _refuse(b, 1)
    n, m = a.shape[1], b.shape[1]
    both = np.concatenate([np.sort(a, axis=1), np.sort(b, axis=1)], axis=1)
    order = np.argsort(both, axis=1, kind="stable")  # a merge, because two runs are sorted
    ordered = np.take_along_axis(both, order, axis=1)
    first = np.ones(both.shape, dtype=bool)
    first[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    groups = np.flatnonzero(first)  # of equal values, in all rows one after the other
    rows = np.searchsorted(groups, np.arange(len(both)) * (n + m))
    sizes = np.diff(groups, append=first.size)
    of_b = np.add.reduceat((order >= n).ravel(), groups, dtype=np.int64)
    doubled = np.add.reduceat(of_b * (2 * (groups % (n + m)) + sizes + 1), rows) - m * (m + 1)
    tied = sizes.astype(np.float64)
    terms = np.add.reduceat(tied**3 - tied, rows)
    found = [mann_whitney_of(int(u), n, m, float(term)) for u, term in zip(doubled, terms, strict=True)]
    return np.array([one.effect_value for one in found]), np.array([one.p for one in found])


def ratios(a: Floats, b: Floats, *, level: float = 0.95) -> Ratios:
    """Compare each row by Welch's t on the logarithms of positive values in time order, as `compare_unpaired` does.

    Raises:
        StatsError: An array does not have two dimensions with at least two values in each row.
    """
    _refuse(a, 2)
    _refuse(b, 2)
    one, other = _side(np.log(a)), _side(np.log(b))
    difference = other.mean - one.mean
    error2 = one.error2 + other.error2
    error = np.sqrt(error2)
    below = sum(side.error2**2 / np.maximum(side.effective - 1, 1.0) for side in (one, other))
    with np.errstate(divide="ignore", invalid="ignore"):
        df = np.where(error2 > 0, np.maximum(error2**2 / below, 1.0), a.shape[1] + b.shape[1] - 2.0)
        p = np.minimum(2.0 * t_cdfs(df, -np.abs(difference) / error), 1.0)
    p = np.where(error > 0, p, np.where(difference == 0.0, 1.0, 0.0))
    half = t_quantiles(df, 0.5 + level / 2) * error
    return Ratios(_exp(difference), _exp(difference - half), _exp(difference + half), p)


def _side(logs: Floats) -> _Side:
    n = logs.shape[1]
    inflation = _inflation(logs)
    sd = logs.std(axis=1, ddof=1)
    sd = np.where(inflation > 1.0, sd * np.sqrt((n - 1) / np.maximum(n - inflation, 1.0)), sd)
    return _Side(logs.mean(axis=1), sd**2 * inflation / n, n / inflation)


def _inflation(logs: Floats) -> Floats:
    """Return the variance inflation of each row, as `blocks.independence` computes it for values in time order."""
    n = logs.shape[1]
    if n < BOOTSTRAP_BLOCKS_MIN:
        return np.ones(len(logs))
    apart = logs - logs.mean(axis=1, keepdims=True)
    apart -= apart.mean(axis=1, keepdims=True)
    whole = np.einsum("ij,ij->i", apart, apart)
    with np.errstate(divide="ignore", invalid="ignore"):
        lag1 = np.where(whole > 0, np.einsum("ij,ij->i", apart[:, :-1], apart[:, 1:]) / whole, -1.0)
    r = np.minimum(lag1 + (1 + 3 * lag1) / n, 0.9)
    return np.where(lag1 <= -1 / n, 1.0, np.clip((1 + r) / (1 - r), 1.0, n / 2))


def _exp(value: Floats) -> Floats:
    return np.exp(np.clip(value, -700.0, 700.0))


def _refuse(rows: Floats, least: int) -> None:
    if rows.ndim != 2 or rows.shape[1] < least:
        raise StatsError(
            f"rows of shape {rows.shape} cannot be compared",
            next_step=f"give an array of two dimensions, with at least {least} values in each row",
        )
