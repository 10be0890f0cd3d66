"""The classical two-sample tests over all waits; they are shown beside the verdict and never decide it.

They assume that waits are independent, which waits of one session are not: on a server compared with itself, turn after
turn, Welch's test found a difference in 95 % of the cases and Mann-Whitney's in 100 %. Each result therefore carries a
note that says so. In every test the sign is that of other minus base.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dbdyno.base.errors import StatsError
from dbdyno.stats.distributions import kolmogorov_log10_p, normal_log10_p, t_log10_p, t_quantile
from dbdyno.stats.samples import Counts, Moments, Sample, counts_of, moments
from dbdyno.stats.wording import duration

NOTE = "assumes independent waits"
#: Largest product of the sample sizes for which the Kolmogorov-Smirnov p is computed exactly.
_KS_EXACT_PAIRS = 10_000
#: R's rule: the Mann-Whitney p is exact if both samples have fewer than 50 values and there are no ties.
_MWU_EXACT_BELOW = 50


INFINITE = "some values are infinite, or too large to be squared"


@dataclass(frozen=True, slots=True)
class ClassicalTest:
    """Result of a classical test over all waits.

    Attributes:
        test: Name of the test.
        statistic: Value of the test statistic.
        df: Degrees of freedom; None if the test has none.
        log10_p: log10 of the two-sided p.
        effect: The effect in words.
        effect_value: The effect as a number.
        low: Lower end of the interval of `effect_value`; NaN if the test gives none.
        high: Upper end of the interval of `effect_value`; NaN if the test gives none.
        note: Assumption of the test, which must be shown with the result.
    """

    test: str
    statistic: float
    df: float | None = None
    log10_p: float = math.nan
    effect: str = ""
    effect_value: float = math.nan
    low: float = math.nan
    high: float = math.nan
    note: str = NOTE

    @property
    def p(self) -> float:
        """Return the two-sided p; it is 0.0 below about 1e-308, where `log10_p` still has a value."""
        return float(10.0**self.log10_p)


def welch(base: Moments | NDArray[Any], other: Moments | NDArray[Any], *, level: float = 0.95) -> ClassicalTest:
    """Compare two means by Welch's t test (Welch 1947), from moments or from the values [ns].

    `effect_value`, `low` and `high` are the difference of the means, other minus base.

    Raises:
        StatsError: An arm has fewer than two values, neither arm varies, or values are infinite or too large to be
            squared.
    """
    a = base if isinstance(base, Moments) else moments(base)
    b = other if isinstance(other, Moments) else moments(other)
    if min(a.count, b.count) < 2:
        raise StatsError("the test needs at least two values in each group", next_step="run for a longer time")
    if not math.isfinite(a.mean + a.sd + b.mean + b.sd):
        raise StatsError(INFINITE, next_step="leave these values out with --where")
    per_a, per_b = a.sd**2 / a.count, b.sd**2 / b.count
    squared = per_a + per_b
    if not squared > 0.0:
        raise StatsError(
            "the values do not vary in either group",
            next_step="check the resolution of the clock",
        )
    df = squared**2 / (per_a**2 / (a.count - 1) + per_b**2 / (b.count - 1))
    error = math.sqrt(squared)
    difference = b.mean - a.mean
    half = t_quantile(df, 0.5 + level / 2) * error
    t = difference / error
    pooled = math.sqrt((a.sd**2 + b.sd**2) / 2)
    return ClassicalTest(
        test="Welch t",
        statistic=t,
        df=df,
        log10_p=t_log10_p(t, df),
        effect=f"mean difference {duration(difference)} (Cohen's d {difference / pooled:.3f})",
        effect_value=difference,
        low=difference - half,
        high=difference + half,
    )


def _union_counts(base: Counts, other: Counts) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the counts of both samples for each value of the union of their values."""
    values = np.union1d(base.values, other.values)
    counts = []
    for side in (base, other):
        spread = np.zeros(values.size, dtype=np.int64)
        spread[np.searchsorted(values, side.values)] = side.counts
        counts.append(spread)
    return counts[0], counts[1]


def mann_whitney(base: Sample, other: Sample, *, continuity: bool = True) -> ClassicalTest:
    """Compare two samples by Mann-Whitney's U: the number of pairs in which other is larger, ties counted as one half.

    p is exact if both samples have fewer than 50 values and there are no ties (as in R). Otherwise it comes from the
    normal approximation with the variance corrected for ties (Lehmann, Nonparametrics, 1.5) and, if `continuity` is
    set, with a continuity correction. `effect_value` is U divided by the number of pairs: the probability that a wait
    of other is longer than a wait of base.

    Raises:
        StatsError: A sample is empty or not sorted.
    """
    a, b = counts_of(base), counts_of(other)
    in_a, in_b = _union_counts(a, b)
    n, m = a.total, b.total
    # U is doubled so that it stays a whole number. Python integers are used if a product could exceed 2^63.
    pairs = 2 * (np.cumsum(in_a) - in_a) + in_a
    if n * m < 2**61:
        doubled = int(np.dot(in_b, pairs))
    else:
        doubled = sum(int(x) * int(y) for x, y in zip(in_b, pairs, strict=True))
    tied = (in_a + in_b).astype(np.float64)
    tie_term = float((tied**3 - tied).sum())
    return mann_whitney_of(doubled, n, m, tie_term, continuity=continuity)


def mann_whitney_of(doubled: int, n: int, m: int, tie_term: float, *, continuity: bool = True) -> ClassicalTest:
    """Return the result of `mann_whitney` from its summary statistics.

    Args:
        doubled: Twice the U of other against base.
        n: Number of values of base.
        m: Number of values of other.
        tie_term: Sum of t^3 - t over the groups of tied values.
        continuity: True to apply the continuity correction.
    """
    u = doubled / 2
    chance = u / (n * m)
    if tie_term == 0 and max(n, m) < _MWU_EXACT_BELOW:
        log10_p = _mwu_exact(doubled // 2, n, m)
    else:
        total = n + m
        variance = n * m / 12 * ((total + 1) - tie_term / (total * (total - 1)))
        apart = max(abs(u - n * m / 2) - (0.5 if continuity else 0.0), 0.0)
        log10_p = normal_log10_p(apart / math.sqrt(variance)) if variance > 0 else 0.0
    effect = f"a wait of the second arm is longer in {100 * chance:.1f} % of the pairs"
    return ClassicalTest("Mann-Whitney U", u, log10_p=log10_p, effect=effect, effect_value=chance)


def _mwu_exact(u: int, n: int, m: int) -> float:
    """Return log10 of the exact two-sided p of U without ties.

    The number of orders with each U is a coefficient of the Gaussian binomial (Mann and Whitney 1947), computed here as
    a product of polynomials in whole numbers.
    """
    tail = _mwu_tails(n, m)[min(u, n * m - u)]
    return min(math.log10(2 * tail) - math.log10(math.comb(n + m, n)), 0.0)


@lru_cache(maxsize=16)
def _mwu_tails(n: int, m: int) -> tuple[int, ...]:
    """Return the numbers of orders of n and m values whose U is at most 0, 1, 2 ..."""
    ways = [1] + [0] * (n * m)
    for i in range(1, n + 1):
        for k in range(n * m, m + i - 1, -1):
            ways[k] -= ways[k - m - i]
        for k in range(i, n * m + 1):
            ways[k] += ways[k - i]
    return tuple(accumulate(ways))


def kolmogorov_smirnov(base: Sample, other: Sample) -> ClassicalTest:
    """Compare two samples by Kolmogorov-Smirnov's D, the largest distance between their distribution functions.

    p is exact for the given ties (Schroer and Trenkler 1995) while the product of the sample sizes is at most 10,000;
    beyond that it comes from Kolmogorov's asymptotic series.

    Raises:
        StatsError: A sample is empty or not sorted.
    """
    a, b = counts_of(base), counts_of(other)
    in_a, in_b = _union_counts(a, b)
    n, m = a.total, b.total
    if n * m < 2**62:
        apart: Any = np.cumsum(in_a) * m - np.cumsum(in_b) * n
    else:
        apart = np.cumsum(in_a) / n * (n * m) - np.cumsum(in_b) / m * (n * m)
    largest = float(np.abs(apart).max())
    return kolmogorov_smirnov_of(round(largest), n, m, in_a + in_b)


def kolmogorov_smirnov_of(largest: int, n: int, m: int, tied: NDArray[np.int64] | None = None) -> ClassicalTest:
    """Return the result of `kolmogorov_smirnov` from D times n m.

    Args:
        largest: D times n m.
        n: Number of values of base.
        m: Number of values of other.
        tied: Number of occurrences of each distinct value in both samples together; needed only for an exact p.
    """
    d = largest / (n * m)
    if tied is not None and n * m <= _KS_EXACT_PAIRS:
        log10_p = _ks_exact(tied, n, m, largest)
    else:
        log10_p = kolmogorov_log10_p(d, n, m)
    effect = f"the distribution functions differ by at most {d:.4f}"
    return ClassicalTest("Kolmogorov-Smirnov D", d, log10_p=log10_p, effect=effect, effect_value=d)


def _ks_exact(tied: NDArray[np.int64], n: int, m: int, largest: int) -> float:
    """Return log10 P(D >= d) for the given ties.

    This is the share of the paths from (0, 0) to (n, m) that, at the end of any tied group, are at least `largest` / (n
    m) away from the diagonal.
    """
    if largest == 0:
        return 0.0
    ends = np.zeros(n + m + 1, dtype=bool)
    ends[np.cumsum(tied)] = True
    row: list[float] = []
    for i in range(n + 1):
        above, row = row, []
        for j in range(m + 1):
            if ends[i + j] and abs(i * m - j * n) >= largest:
                share = 1.0
            elif i + j == 0:
                share = 0.0
            else:
                before = above[j] * i if i else 0.0
                share = (before + (row[j - 1] * j if j else 0.0)) / (i + j)
            row.append(share)
    return math.log10(row[m]) if row[m] > 0 else -math.inf
