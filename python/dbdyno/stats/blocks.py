"""Comparison of two arms block by block: the estimate, its interval, and the decision.

The unit of inference is the block, not the wait, because waits within a block depend on each other. Each block gives
one number per arm; the logarithm of their ratio is one observation.

The stated level holds even if the machine drifts: the order of the arms is randomised in each block, so without a true
difference the sign of each block's log ratio is an independent coin toss. However the noise changes from block to
block, the log ratios are then uncorrelated with mean zero. A true difference that changes slowly does correlate them;
the interval then describes the mean difference over the blocks of this run, and the gate `independent_blocks` says so.
If the order was not randomised (two runs one after the other), `independence` widens the interval.

The decision on one metric (`decide_metric`), with margin = [1 / (1 + threshold), 1 + threshold]:

1. If the whole interval is within the margin: "same", no difference larger than the threshold, even if a small one is
   significant (the words say so). This is the same as two one-sided tests (Schuirmann 1987), each at half of 1 - level.
2. Else, if q is at most 1 - level: "faster" or "slower". If the interval overlaps the margin, the words add "perhaps by
   less than the threshold".
3. Else: "unclear", with the number of blocks that would decide, as an interval.

Cases 1 and 2 become "provisional" if there are too few blocks to rule out chance alone (see `least_blocks`).

The margin is symmetric on the log scale, so that exchanging base and arm gives the mirrored answer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TypedDict, Unpack, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dbdyno.base.errors import StatsError
from dbdyno.stats import least_blocks, power
from dbdyno.stats.comparison import BlockComparison, ComparisonRow, Decision
from dbdyno.stats.distributions import t_cdf, t_quantile
from dbdyno.stats.metrics import Metric
from dbdyno.stats.samples import autocorrelation
from dbdyno.stats.wording import describe, is_within

#: Smallest number of blocks for a bootstrap interval; fewer blocks have too few distinct resamples.
BOOTSTRAP_BLOCKS_MIN = 6

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Independence:
    """Dependence of successive blocks: lag-1 autocorrelation, and the number of blocks worth one independent block."""

    lag1: float
    inflation: float


def independence(log_ratios: Floats, *, randomised: bool = True) -> Independence:
    """Return the lag-1 autocorrelation and variance inflation of the mean of an AR(1) series.

    The inflation is (1 + r) / (1 - r) (Bayley and Hammersley 1946).

    r is the lag-1 autocorrelation with its bias removed, r + (1 + 3 r) / n (Marriott and Pope 1954), at most 0.9. The
    inflation is 1 if the order was randomised (see the module docstring), below 6 blocks (too few for an estimate), and
    if the raw autocorrelation is at most the -1 / n that independent blocks give. Otherwise it is at most n / 2.

    False alarms of the 5 % test in 4,000 simulated runs of AR(1) log ratios whose order was not randomised, at
    autocorrelation 0 / 0.2 / 0.4 / 0.6:

    - no correction, any number of blocks: 5 / 10 / 19 / 33 %;
    - corrected whenever positive: 20 blocks 3.6 / 5 / 6 / 9 %, 40 blocks 4 / 5 / 6.5 / 7 %.
    """
    n = log_ratios.size
    lag1 = autocorrelation(log_ratios)
    if randomised or n < BOOTSTRAP_BLOCKS_MIN or math.isnan(lag1) or lag1 <= -1 / n:
        return Independence(lag1, 1.0)
    r = min(lag1 + (1 + 3 * lag1) / n, 0.9)
    return Independence(lag1, min(max((1 + r) / (1 - r), 1.0), n / 2))


def _usable(base: ArrayLike, other: ArrayLike) -> tuple[Floats, Floats, int]:
    """Return the values of the blocks in which both arms gave a positive number, and the number of other blocks.

    Raises:
        StatsError: The arms differ in the number of values.
    """
    a = np.asarray(base, dtype=np.float64)
    b = np.asarray(other, dtype=np.float64)
    if a.ndim != 1 or a.shape != b.shape:
        raise StatsError(
            f"the arms have different numbers of block values: {a.size} and {b.size}",
            next_step="give one value per block and arm, NaN where a block has none",
        )
    good = np.isfinite(a) & np.isfinite(b) & (a > 0) & (b > 0)
    return a[good], b[good], int(a.size - good.sum())


@dataclass(frozen=True, slots=True)
class _Estimate:
    """Mean log ratio with its spread, standard error, half width of the interval, p, and effective number of blocks."""

    mean: float
    sd: float
    error: float
    half: float
    p: float
    effective: float
    depends: Independence


def _estimate(log_ratios: Floats, level: float, randomised: bool) -> _Estimate:
    """Estimate the mean log ratio by Student's t, with the effective number of blocks as the sample size."""
    n = log_ratios.size
    if n < 2:
        mean = float(log_ratios[0]) if n else math.nan
        nothing = Independence(math.nan, 1.0)
        return _Estimate(mean, math.nan, math.nan, math.nan, math.nan, float(n), nothing)
    mean = float(log_ratios.mean())
    depends = independence(log_ratios, randomised=randomised)
    f = depends.inflation
    sd = unbiased_sd(log_ratios, f)
    error = sd * math.sqrt(f / n)
    df = max(n / f - 1, 1.0)
    half = t_quantile(df, 0.5 + level / 2) * error
    return _Estimate(mean, sd, error, half, two_sided_p(mean, error, df), n / f, depends)


def compare_blocks(
    base: ArrayLike,
    other: ArrayLike,
    *,
    higher_is_better: bool,
    level: float = 0.95,
    threshold: float = 0.02,
    randomised: bool = True,
    resamples: int = 9999,
    seed: int = 0,
    metric: str = "",
    label: str = "",
    unit: str = "",
) -> BlockComparison:
    """Compare two arms on one metric, block by block, by Student's t on the log ratios.

    `base` and `other` hold one value per block in time order; a block with a value that is NaN or not positive is left
    out. `randomised` means that the order of the arms was random in each block (see `independence`). Below 100
    `resamples` there is no bootstrap. With fewer than two usable blocks all results are NaN and the decision is
    "unclear".

    Raises:
        StatsError: The lengths differ, `level` is not between 0.5 and 1, or `threshold` is not above 0.
    """
    check_ranges(level, threshold)
    a, b, missing = _usable(base, other)
    log_ratios = np.log(b) - np.log(a)
    e = _estimate(log_ratios, level, randomised)
    boot = _bootstrap_t(log_ratios, e.mean, e.error, level=level, resamples=resamples, seed=seed)
    f = e.depends.inflation
    tell = power.blocks_to_tell(e.sd, e.effective, threshold, level=level, inflation=f)
    comparison = BlockComparison(
        metric=metric,
        label=label or metric,
        unit=unit,
        higher_is_better=higher_is_better,
        base_value=_geometric(a),
        value=_geometric(b),
        ratio=ratio_of_log(e.mean),
        low=ratio_of_log(e.mean - e.half),
        high=ratio_of_log(e.mean + e.half),
        boot_low=ratio_of_log(boot[0]),
        boot_high=ratio_of_log(boot[1]),
        level=level,
        threshold=threshold,
        p=e.p,
        sd_log=e.sd,
        standard_error=e.error,
        blocks=a.size,
        blocks_missing=missing,
        lag1=e.depends.lag1,
        inflation=f,
        effective_blocks=e.effective,
        least_p=least_blocks.least_p_paired(e.effective),
        blocks_least=math.ceil(least_blocks.least_paired_blocks(level) * f - 1e-9),
        smallest_visible=power.smallest_visible(e.effective, e.error, level=level),
        blocks_needed=power.blocks_needed(e.sd, threshold, level=level, inflation=f),
        tell_low=tell.low,
        tell_high=tell.high,
    )
    return decide_metric(comparison, e.p)


class ComparisonOptions(TypedDict, total=False):
    """Options of `compare_blocks` that do not depend on the metric."""

    level: float
    threshold: float
    randomised: bool
    resamples: int
    seed: int


def compare_metric(
    metric: Metric,
    base: ArrayLike,
    other: ArrayLike,
    **options: Unpack[ComparisonOptions],
) -> BlockComparison:
    """Compare two arms as `compare_blocks` does, with the names and the direction of `metric`.

    Raises:
        StatsError: As in `compare_blocks`.
    """
    return compare_blocks(
        base,
        other,
        higher_is_better=metric.higher_is_better,
        metric=metric.name,
        label=metric.label,
        unit=metric.unit,
        **options,
    )


def check_ranges(level: float, threshold: float) -> None:
    """Raise an error unless `level` is between 0.5 and 1, and `threshold` above 0.

    Raises:
        StatsError: One is outside its range.
    """
    if not 0.5 < level < 1.0 or not threshold > 0.0:
        raise StatsError(
            f"level {level} and threshold {threshold} are outside their ranges",
            next_step="give a level between 0.5 and 1 and a threshold above 0",
        )


def decide_metric(c: BlockComparison, q: float) -> BlockComparison:
    """Return the comparison with `q`, the decision and the words set by the rules in the module docstring."""
    decision: Decision = "unclear"
    if c.blocks >= 2:
        if is_within(c):
            decision = "same"
        elif q <= (1.0 - c.level) * (1 + 1e-12):
            decision = "faster" if (c.ratio > 1.0) == c.higher_is_better else "slower"
        if decision != "unclear" and not least_blocks.is_reachable(c.least_p, c.level):
            decision = "provisional"
    decided = replace(c, q=q, decision=decision)
    return replace(decided, words=describe(decided))


ROW = tuple(ComparisonRow.__annotations__)
"""Names of the fields of a comparison that an analysis keeps."""


def row_of(c: BlockComparison) -> ComparisonRow:
    """Return the fields of a comparison that an analysis keeps, as a dictionary."""
    return cast("ComparisonRow", {name: getattr(c, name) for name in ROW})


def _geometric(values: Floats) -> float:
    return math.exp(float(np.log(values).mean())) if values.size else math.nan


def unbiased_sd(logs: Floats, inflation: float) -> float:
    """Return the standard deviation; the variance of an AR(1) sample is biased low: E s^2 = var (n - f) / (n - 1)."""
    sd, n = float(logs.std(ddof=1)), logs.size
    return sd * math.sqrt((n - 1) / max(n - inflation, 1.0)) if inflation > 1.0 else sd


def ratio_of_log(log_ratio: float) -> float:
    """Return exp of a log ratio, kept in the range of a float; NaN stays."""
    return math.exp(min(max(log_ratio, -700.0), 700.0)) if not math.isnan(log_ratio) else math.nan


def two_sided_p(mean: float, error: float, df: float) -> float:
    """Return the two-sided p of a mean or a difference; 1 (equal) or 0 (different) if the blocks do not vary at all."""
    if math.isnan(mean) or math.isnan(error):
        return math.nan
    if error <= 0.0:
        return 1.0 if mean == 0.0 else 0.0
    return min(2.0 * t_cdf(df, -abs(mean) / error), 1.0)


def _bootstrap_t(
    log_ratios: Floats, mean: float, error: float, *, level: float, resamples: int, seed: int
) -> tuple[float, float]:
    """Return the bootstrap-t interval of the mean log ratio (Efron and Tibshirani 1993, section 12.5), or NaN.

    Blocks are drawn with replacement; resamples without variation are left out. `error` includes the variance
    inflation.
    """
    n = log_ratios.size
    if n < BOOTSTRAP_BLOCKS_MIN or resamples < 100 or not error > 0.0:
        return math.nan, math.nan
    rng = np.random.default_rng(seed)
    ts = []
    for start in range(0, resamples, max(1, 2_000_000 // n)):  # at most 16 MB at a time
        size = min(max(1, 2_000_000 // n), resamples - start)
        drawn = log_ratios[rng.integers(0, n, (size, n))]
        spread = drawn.std(axis=1, ddof=1) / math.sqrt(n)
        varied = spread > 0
        ts.append((drawn.mean(axis=1)[varied] - mean) / spread[varied])
    tail = (1 - level) / 2
    t_low, t_high = np.quantile(np.concatenate(ts), [tail, 1 - tail])
    return mean - float(t_high) * error, mean - float(t_low) * error
