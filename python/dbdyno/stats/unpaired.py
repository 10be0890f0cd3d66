"""Comparison of two independent sets of blocks, such as the sessions of two traces.

`compare_blocks` pairs the arms block by block. If there are no pairs, each block's value is one observation of its set,
and the sets are compared by Welch's t on the logarithms (Welch 1947): the sets may differ in number of blocks and in
spread. The result is the same `BlockComparison`, so that words, decisions and control of the false discovery rate are
the same.

Blocks in time order (slices of one trace) are autocorrelated; `in_order` widens each set's standard error by the
inflation of `blocks.independence`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dbdyno.base.errors import StatsError
from dbdyno.stats import least_blocks, power
from dbdyno.stats.blocks import check_ranges, decide_metric, independence, ratio_of_log, two_sided_p, unbiased_sd
from dbdyno.stats.comparison import BlockComparison
from dbdyno.stats.distributions import t_quantile


@dataclass(frozen=True, slots=True)
class _Side:
    """One set on the log scale: the number of values, mean, spread, squared standard error and effective number."""

    n: int
    missing: int
    mean: float
    sd: float
    error2: float
    effective: float
    lag1: float
    inflation: float


def compare_unpaired(
    base: ArrayLike,
    other: ArrayLike,
    *,
    higher_is_better: bool,
    level: float = 0.95,
    threshold: float = 0.02,
    in_order: bool = False,
    sd_least: float = 0.0,
    metric: str = "",
    label: str = "",
    unit: str = "",
) -> BlockComparison:
    """Compare two independent sets of blocks on one metric.

    `base` and `other` hold one positive value per block and may differ in length; NaN and values not above 0 are left
    out. `blocks` of the result is the smaller number of usable blocks, `effective_blocks` the degrees of freedom plus
    one. `sd_least` is the least spread of the logs: coarse values (ten or eleven events in a slice) may not vary at
    all, which would make any difference significant. There is no bootstrap interval. With fewer than two usable blocks
    in a set all results are NaN and the decision is "unclear".

    Raises:
        StatsError: `level` is not between 0.5 and 1, or `threshold` is not above 0.
    """
    check_ranges(level, threshold)
    a, b = _side(base, in_order, sd_least), _side(other, in_order, sd_least)
    difference = b.mean - a.mean
    error = math.sqrt(a.error2 + b.error2)
    df = _welch_df(a, b)
    half = t_quantile(df, 0.5 + level / 2) * error if df > 0 else math.nan
    spread = math.sqrt(a.sd**2 + b.sd**2)
    inflation = max(a.inflation, b.inflation)
    tell = power.blocks_to_tell(spread, df + 1, threshold, level=level, inflation=inflation)
    comparison = BlockComparison(
        metric=metric,
        label=label or metric,
        unit=unit,
        higher_is_better=higher_is_better,
        base_value=ratio_of_log(a.mean),
        value=ratio_of_log(b.mean),
        ratio=ratio_of_log(difference),
        low=ratio_of_log(difference - half),
        high=ratio_of_log(difference + half),
        level=level,
        threshold=threshold,
        p=two_sided_p(difference, error, df),
        sd_log=spread,
        standard_error=error,
        blocks=min(a.n, b.n),
        blocks_missing=a.missing + b.missing,
        lag1=max(a.lag1, b.lag1, key=lambda r: -1.0 if math.isnan(r) else abs(r)),
        inflation=inflation,
        effective_blocks=df + 1,
        least_p=least_blocks.least_p_unpaired(_zero_if_nan(a.effective), _zero_if_nan(b.effective)),
        blocks_least=math.ceil(least_blocks.least_unpaired_blocks(level) * inflation - 1e-9),
        smallest_visible=power.smallest_visible(df + 1, error, level=level),
        blocks_needed=power.blocks_needed(spread, threshold, level=level, inflation=inflation),
        tell_low=tell.low,
        tell_high=tell.high,
    )
    return decide_metric(comparison, comparison.p)


def _side(values: ArrayLike, in_order: bool, sd_least: float) -> _Side:
    given = np.asarray(values, dtype=np.float64)
    if given.ndim != 1:
        raise StatsError("the values of the blocks must be a flat list", next_step="give one value for each block")
    good = given[np.isfinite(given) & (given > 0)]
    logs: NDArray[np.float64] = np.log(good)
    n, missing = int(logs.size), int(given.size - logs.size)
    if n < 2:
        mean = float(logs[0]) if n else math.nan
        return _Side(n, missing, mean, math.nan, math.nan, math.nan, math.nan, 1.0)
    depends = independence(logs, randomised=not in_order)
    f = depends.inflation
    sd = max(unbiased_sd(logs, f), sd_least)
    return _Side(
        n,
        missing,
        mean=float(logs.mean()),
        sd=sd,
        error2=sd**2 * f / n,
        effective=n / f,
        lag1=depends.lag1,
        inflation=f,
    )


def _welch_df(a: _Side, b: _Side) -> float:
    """Return Welch and Satterthwaite's degrees of freedom from effective blocks, at least 1.

    The result is NaN if a set has fewer than two blocks.
    """
    if math.isnan(a.error2) or math.isnan(b.error2):
        return math.nan
    total = a.error2 + b.error2
    if total <= 0:
        return float(a.n + b.n - 2)
    below = sum(s.error2**2 / max(s.effective - 1, 1.0) for s in (a, b))
    return max(total**2 / below, 1.0)


def _zero_if_nan(number: float) -> float:
    return 0.0 if math.isnan(number) else number
