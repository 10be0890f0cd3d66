"""Comparison of two totals that consist of many kinds of parts, such as the elapsed times of two batches.

One run of a program gives one total, which says nothing about the spread of totals over runs. One run does show how
much the parts of each kind vary: the executions of one statement, the fetches of another, the round trips. The total is
therefore estimated as a stratified sum:

- Within each stratum the parts, in time order, are cut into batches of about equal size. The spread of the batch means,
  widened for their autocorrelation (`blocks.independence`), gives the standard error of the stratum's sum (batch means:
  Law and Kelton 2000, section 9.5.3).
- The variances of the strata add up. The number of parts is treated as a constant.
- The totals are compared by Welch's t on their difference, with Satterthwaite's degrees of freedom over all strata of
  both sides. The interval of their ratio is Fieller's (1954), which is consistent with that test.

The test does not use logarithms: on logarithms one long wait among sixty short parts would count as proof, although the
total then has an error as large as itself.

The interval therefore says where the ratio would be if the same parts were executed again under the same conditions. It
does not cover differences between runs. Parts that occurred only once count in the total but not in its error (see
`single_part`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dbdyno.stats import least_blocks, power
from dbdyno.stats.blocks import decide_metric, independence, two_sided_p
from dbdyno.stats.comparison import BlockComparison
from dbdyno.stats.distributions import t_quantile

Floats = NDArray[np.float64]
RATIO_LEAST = 1e-3
"""Intervals of a ratio are cut at this value and at its reciprocal."""


@dataclass(frozen=True, slots=True)
class Stratum:
    """Parts of one kind, cut into batches in time order: the sum and the number of parts of each batch."""

    sums: Floats
    sizes: Floats


@dataclass(frozen=True, slots=True)
class _Total:
    """A total with the variance of the sum, its degrees of freedom, and the largest inflation of its strata."""

    value: float
    variance: float
    df: float
    inflation: float


def single_part(strata: Sequence[Stratum]) -> float:
    """Return the part of a total whose spread is unknown: the sum of strata that have a single batch."""
    return sum(float(s.sums.sum()) for s in strata if s.sums.size < 2)


def compare_totals(
    base: Sequence[Stratum],
    other: Sequence[Stratum],
    *,
    scales: tuple[float, float] = (1.0, 1.0),
    level: float = 0.95,
    threshold: float = 0.02,
    metric: str = "",
    label: str = "",
    unit: str = "",
) -> BlockComparison:
    """Compare two totals, each multiplied by its scale; less is better.

    `blocks` of the result is the degrees of freedom plus one, rounded down, because that number of independent blocks
    would carry as much information. Below `least_blocks.least_paired_blocks` blocks a verdict is provisional. If
    nothing was repeated on one side, or a total is not above 0, the interval is NaN and the decision is "unclear".
    """
    a, b = _total(base), _total(other)
    known = min(a.value, b.value) > 0 and min(a.df, b.df) > 0
    totals = (a.value * scales[0], b.value * scales[1])
    variances = (a.variance * scales[0] ** 2, b.variance * scales[1] ** 2)
    df = _df(variances, (a.df, b.df)) if known else math.nan
    reach = t_quantile(df, 0.5 + level / 2) if known else math.nan
    ratio = totals[1] / totals[0] if known else math.nan
    low, high = fieller(totals, variances, reach) if known else (math.nan, math.nan)
    error = math.sqrt(sum(v / t**2 for v, t in zip(variances, totals, strict=True))) if known else math.nan
    p = two_sided_p(totals[1] - totals[0], math.sqrt(sum(variances)), df) if known else math.nan
    blocks = int(df + 1 + 1e-9) if known else 0
    spread = error * math.sqrt(df + 1) if known else math.nan
    comparison = BlockComparison(
        metric=metric,
        label=label or metric,
        unit=unit,
        higher_is_better=False,
        base_value=totals[0],
        value=totals[1],
        ratio=ratio,
        low=low,
        high=high,
        level=level,
        threshold=threshold,
        p=p,
        sd_log=spread,
        standard_error=error,
        blocks=blocks,
        inflation=max(a.inflation, b.inflation),
        effective_blocks=df + 1,
        least_p=least_blocks.least_p_paired(df + 1) if known else 1.0,
        blocks_least=least_blocks.least_paired_blocks(level),
        smallest_visible=power.smallest_visible(df + 1, error, level=level),
        blocks_needed=power.blocks_needed(spread, threshold, level=level) if known else None,
    )
    return decide_metric(comparison, p)


def _df(variances: tuple[float, float], own: tuple[float, float]) -> float:
    """Return Welch and Satterthwaite's degrees of freedom, at least 1; their sum if both variances are 0."""
    below = sum(v**2 / df for v, df in zip(variances, own, strict=True))
    return max(sum(variances) ** 2 / below, 1.0) if below > 0 else sum(own)


def fieller(totals: tuple[float, float], variances: tuple[float, float], reach: float) -> tuple[float, float]:
    """Return the range of ratios r for which totals[1] - r totals[0] is within `reach` standard errors of 0.

    The ends are cut at 0.001 and 1,000. If the base total may be 0, the range is 0.001 to 1,000.
    """
    first = totals[0] ** 2 - reach**2 * variances[0]
    last = totals[1] ** 2 - reach**2 * variances[1]
    middle = totals[0] * totals[1]
    if first <= 0:
        return RATIO_LEAST, 1 / RATIO_LEAST
    root = math.sqrt(max(middle**2 - first * last, 0.0))
    low, high = (middle - root) / first, (middle + root) / first
    return max(low, RATIO_LEAST), min(high, 1 / RATIO_LEAST)


def _total(strata: Sequence[Stratum]) -> _Total:
    value = sum(float(s.sums.sum()) for s in strata)
    variance, below, inflation, repeated = 0.0, 0.0, 1.0, 0
    for stratum in strata:
        count = stratum.sums.size
        if count < 2:
            continue
        means = stratum.sums / stratum.sizes
        f = independence(means, randomised=False).inflation
        spread = float(means.var(ddof=1)) * (count - 1) / max(count - f, 1.0)
        own = float(stratum.sizes.sum()) ** 2 * spread * f / count
        variance += own
        below += own**2 / max(count / f - 1, 1.0)
        inflation, repeated = max(inflation, f), repeated + count - 1
    df = variance**2 / below if below > 0 else float(repeated)
    return _Total(value, variance, df, inflation)
