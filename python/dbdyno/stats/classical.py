"""The classical two-sample tests over all waits: shown beside the verdict, never the verdict.

They assume that waits are independent. Waits of one session are not: on a server compared with
itself, turn after turn, Welch cried "different" in 95 % of the cases and Mann-Whitney in 100 %.
Each result therefore carries a note that says so. In every test the sign is that of other minus
base.
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
from dbdyno.stats import tails
from dbdyno.stats.samples import Counts, Moments, Sample, counts_of, moments
from dbdyno.stats.wording import duration

NOTE = "assumes independent waits"
#: Largest product of the sample sizes for which Kolmogorov-Smirnov's p is counted out.
_KS_EXACT_PAIRS = 10_000
#: R's rule for the exact Mann-Whitney p: both samples below 50, no ties.
_MWU_EXACT_BELOW = 50


INFINITE = "some values are infinite, or too large to be squared"


@dataclass(frozen=True, slots=True)
class ClassicalTest:
    """A test over all waits.

    `statistic` and `df` (None where the test has none), `log10_p` two-sided, `effect` in words
    with `effect_value` as a number and its interval `low`..`high` (NaN where the test gives none),
    and the `note` that must be shown with it.
    """

    test: str
    statistic: float
    df: float | None
    log10_p: float
    effect: str
    effect_value: float
    low: float = math.nan
    high: float = math.nan
    note: str = NOTE

    @property
    def p(self) -> float:
        """The two-sided p; 0.0 below about 1e-308, for which `log10_p` is there."""
        return float(10.0**self.log10_p)


def welch(base: Moments | NDArray[Any], other: Moments | NDArray[Any], *, level: float = 0.95) -> ClassicalTest:
    """Welch's t test on the means (Welch 1947), from moments or from the values [ns].

    `effect_value`, `low` and `high` are the difference of the means, other minus base.
    Raises `StatsError` below two values in an arm, or when neither arm varies.
    """
    from scipy import special

    a = base if isinstance(base, Moments) else moments(base)
    b = other if isinstance(other, Moments) else moments(other)
    if min(a.count, b.count) < 2:
        raise StatsError("it needs two values in each group", next_step="run longer")
    if not math.isfinite(a.mean + a.sd + b.mean + b.sd):
        raise StatsError(INFINITE, next_step="leave them out with --where")
    per_a, per_b = a.sd**2 / a.count, b.sd**2 / b.count
    squared = per_a + per_b
    if not squared > 0.0:
        raise StatsError(
            "neither group varies",
            next_step="look at the clock's resolution",
        )
    df = squared**2 / (per_a**2 / (a.count - 1) + per_b**2 / (b.count - 1))
    error = math.sqrt(squared)
    difference = b.mean - a.mean
    half = float(special.stdtrit(df, 0.5 + level / 2)) * error
    t = difference / error
    pooled = math.sqrt((a.sd**2 + b.sd**2) / 2)
    return ClassicalTest(
        test="Welch t",
        statistic=t,
        df=df,
        log10_p=tails.t_log10_p(t, df),
        effect=f"mean difference {duration(difference)} (Cohen's d {difference / pooled:.3f})",
        effect_value=difference,
        low=difference - half,
        high=difference + half,
    )


def _together(base: Counts, other: Counts) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Counts of both samples over the union of their values."""
    values = np.union1d(base.values, other.values)
    counts = []
    for side in (base, other):
        spread = np.zeros(values.size, dtype=np.int64)
        spread[np.searchsorted(values, side.values)] = side.counts
        counts.append(spread)
    return counts[0], counts[1]


def mann_whitney(base: Sample, other: Sample, *, continuity: bool = True) -> ClassicalTest:
    """Mann-Whitney's U of other against base: pairs in which other is the longer, ties one half.

    p exact below 50 values each without ties (as R), else by the normal approximation with the
    variance corrected for ties (Lehmann, Nonparametrics, 1.5) and, unless turned off, for
    continuity. `effect_value` is U over all pairs: the chance that a wait of other is longer than
    one of base. Raises `StatsError` when a sample is empty or unsorted.
    """
    a, b = counts_of(base), counts_of(other)
    in_a, in_b = _together(a, b)
    n, m = a.total, b.total
    # Doubled, so that it stays whole; Python integers where a product could pass 2^63.
    pairs = 2 * (np.cumsum(in_a) - in_a) + in_a
    if n * m < 2**61:
        doubled = int(np.dot(in_b, pairs))
    else:
        doubled = sum(int(x) * int(y) for x, y in zip(in_b, pairs, strict=True))
    tied = (in_a + in_b).astype(np.float64)
    tie_term = float((tied**3 - tied).sum())
    return mann_whitney_of(doubled, n, m, tie_term, continuity=continuity)


def mann_whitney_of(doubled: int, n: int, m: int, tie_term: float, *, continuity: bool = True) -> ClassicalTest:
    """`mann_whitney` from 2 U of other (`m` values) against base (`n` values) and the sum of
    t^3 - t over the tied groups."""
    u = doubled / 2
    chance = u / (n * m)
    if tie_term == 0 and max(n, m) < _MWU_EXACT_BELOW:
        log10_p = _mwu_exact(doubled // 2, n, m)
    else:
        total = n + m
        variance = n * m / 12 * ((total + 1) - tie_term / (total * (total - 1)))
        apart = max(abs(u - n * m / 2) - (0.5 if continuity else 0.0), 0.0)
        log10_p = tails.normal_log10_p(apart / math.sqrt(variance)) if variance > 0 else 0.0
    return ClassicalTest(
        test="Mann-Whitney U",
        statistic=u,
        df=None,
        log10_p=log10_p,
        effect=f"a wait of the second arm is the longer in {100 * chance:.1f} % of the pairs",
        effect_value=chance,
    )


def _mwu_exact(u: int, n: int, m: int) -> float:
    """log10 of the exact two-sided p without ties: the number of orders with each U is the
    Gaussian binomial coefficient (Mann and Whitney 1947), here as a product of polynomials in
    whole numbers."""
    tail = _mwu_tails(n, m)[min(u, n * m - u)]
    return min(math.log10(2 * tail) - math.log10(math.comb(n + m, n)), 0.0)


@lru_cache(maxsize=16)
def _mwu_tails(n: int, m: int) -> tuple[int, ...]:
    """How many orders of n and m values have a U of at most 0, 1, 2 ..."""
    ways = [1] + [0] * (n * m)
    for i in range(1, n + 1):
        for k in range(n * m, m + i - 1, -1):
            ways[k] -= ways[k - m - i]
        for k in range(i, n * m + 1):
            ways[k] += ways[k - i]
    return tuple(accumulate(ways))


def kolmogorov_smirnov(base: Sample, other: Sample) -> ClassicalTest:
    """Kolmogorov-Smirnov's D: the largest distance between the two distribution functions.

    p exact, given the ties (Schroer and Trenkler 1995), while the samples are small (product of
    the sizes to 10,000); Kolmogorov's asymptotic series beyond. Raises `StatsError` when a sample
    is empty or unsorted.
    """
    a, b = counts_of(base), counts_of(other)
    in_a, in_b = _together(a, b)
    n, m = a.total, b.total
    if n * m < 2**62:
        apart: Any = np.cumsum(in_a) * m - np.cumsum(in_b) * n
    else:
        apart = np.cumsum(in_a) / n * (n * m) - np.cumsum(in_b) / m * (n * m)
    largest = float(np.abs(apart).max())
    return kolmogorov_smirnov_of(round(largest), n, m, in_a + in_b)


def kolmogorov_smirnov_of(largest: int, n: int, m: int, tied: NDArray[np.int64] | None = None) -> ClassicalTest:
    """`kolmogorov_smirnov` from D times n m; `tied` says how often each distinct value occurs in
    both samples together, and is needed for an exact p only."""
    d = largest / (n * m)
    if tied is not None and n * m <= _KS_EXACT_PAIRS:
        log10_p = _ks_exact(tied, n, m, largest)
    else:
        log10_p = tails.kolmogorov_log10_p(d, n, m)
    return ClassicalTest(
        test="Kolmogorov-Smirnov D",
        statistic=d,
        df=None,
        log10_p=log10_p,
        effect=f"the distribution functions are at most {d:.4f} apart",
        effect_value=d,
    )


def _ks_exact(tied: NDArray[np.int64], n: int, m: int, largest: int) -> float:
    """log10 P(D >= d) given the ties: the share of the paths from (0, 0) to (n, m) that are
    anywhere, at the end of a tied group, at least `largest` / (n m) away from the diagonal."""
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
