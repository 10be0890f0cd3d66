"""Rates, latencies and shares of counters, each with its error: the ratio of two sums over rounds.

A rate is what a counter grew by over the seconds, a latency the growth of a time over the growth of
its requests, a share that of a part over its whole. All are sums over rounds (clusters), divided:

    R = (d1 + ... + dn) / (s1 + ... + sn)

so that R over a whole recording is what its first and its last collection give, however long the
rounds were. Its error comes from the residuals d - R s (the ratio estimator's, Cochran, Sampling
Techniques, 1977, 6.4): events inside a round may depend on each other in any way. Rounds that
resemble the next widen it as in `blocks.independence`. Two more guards, for counters that seldom
move:

- Events: a number of events N is not known better than by its Poisson error, 1 / sqrt(N) of it;
  of a share R, sqrt((1 - R) / N).
- Degrees of freedom: rounds count as far as they carry the sum, (sum d)^2 / sum d^2 (Kish 1965),
  so that one burst in a long recording decides nothing.

Two ratios are compared on the log scale with Welch's t. Where one round carries a side's sum, there
is no interval, and p is that of the plain difference with one degree of freedom. Where one side
never moved there is no ratio; were both alike, the k rounds that moved (divided by their inflation)
would all be on the other side with a chance of at most share^k, its share of the rounds; twice that
is p.

Limits: needs rounds of one kind of load. A load that drifts through one recording and not the other
makes differences that are real, yet not the change that is being looked for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dbdyno.base.errors import StatsError
from dbdyno.stats.blocks import independence

ROUNDS_LEAST = 6
"""Below this nothing can be said of how far neighbouring rounds resemble each other."""
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Ratio:
    """A ratio of sums. `value` is NaN where the sum below is 0; `error` is relative to it (NaN with
    fewer than two rounds or at 0); `moved` counts the rounds in which the sum above grew;
    `effective` the rounds behind the error; `inflation` rounds that are worth one."""

    value: float
    above: float
    below: float
    rounds: int
    moved: int
    error: float
    effective: float
    inflation: float
    by_round: tuple[float, ...] = ()

    def interval(self, level: float = 0.95) -> tuple[float, float] | None:
        """The interval of the value, on the log scale; None where it has none."""
        from scipy import special

        df = self.effective - 1
        if math.isnan(self.error) or df < 1:
            return None
        half = min(float(special.stdtrit(df, 0.5 + level / 2)) * self.error, 700.0)
        return self.value * math.exp(-half), self.value * math.exp(half)


@dataclass(frozen=True, slots=True)
class RatioComparison:
    """Two ratios, other over base: `ratio` with its interval (NaN where one is 0), p (NaN where
    nothing can be said), and `larger`, the chance that a round of other has the larger value."""

    base: Ratio
    other: Ratio
    ratio: float
    low: float
    high: float
    p: float
    larger: float


def ratio_of(above: ArrayLike, below: ArrayLike, *, events: bool = False, share: bool = False) -> Ratio:
    """The ratio of the sums of `above` and `below`, one value of each per round, in order of time;
    rounds where one is not known (NaN) are left out. `events`: `above` counts events; `share`: they
    are some of those that `below` counts.

    Raises `StatsError` for unequal lengths.
    """
    d, s = (np.asarray(values, dtype=np.float64) for values in (above, below))
    if d.ndim != 1 or d.shape != s.shape:
        raise StatsError(
            f"{d.size} and {s.size} values are no rounds",
            next_step="give one value above and one below per round",
        )
    known = np.isfinite(d) & np.isfinite(s)
    d, s = d[known], s[known]
    top, bottom, n = float(d.sum()), float(s.sum()), int(d.size)
    moved = int((d > 0).sum())
    if bottom <= 0:
        return Ratio(math.nan, top, bottom, n, moved, math.nan, math.nan, 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        by_round = tuple(float(v) for v in (d / s)[s > 0])
    value = top / bottom
    if n < 2 or top <= 0:
        inflation = 1.0
        return Ratio(value, top, bottom, n, moved, math.nan, math.nan, inflation, by_round)
    residuals = d - value * s
    inflation = independence(residuals, randomised=False).inflation
    variance = n / (n - 1) * float(residuals @ residuals) * inflation
    if inflation > 1.0:  # as in `unpaired`: a series that repeats itself shows too little spread
        variance *= (n - 1) / max(n - inflation, 1.0)
    error2 = variance / top**2
    if events or share:
        error2 = max(error2, (1.0 - min(value, 1.0) if share else 1.0) / top)
    carried = top**2 / float(d @ d)
    effective = min(carried, float(n)) / inflation
    return Ratio(value, top, bottom, n, moved, math.sqrt(error2), effective, inflation, by_round)


def compare_ratios(base: Ratio, other: Ratio, *, level: float = 0.95) -> RatioComparison:
    """`other` against `base`. With fewer than `ROUNDS_LEAST` rounds on a side p is NaN."""
    from scipy import special

    larger = _larger(base.by_round, other.by_round)
    nothing = (math.nan, math.nan, math.nan)
    enough = min(base.rounds, other.rounds) >= ROUNDS_LEAST
    if math.isnan(base.value) or math.isnan(other.value):
        return RatioComparison(base, other, *nothing, math.nan, larger)
    if base.above <= 0 or other.above <= 0:
        p = _one_sided(base, other) if enough else math.nan
        return RatioComparison(base, other, *nothing, p, larger)
    ratio = other.value / base.value
    errors = base.error**2, other.error**2
    error = math.sqrt(sum(errors))
    df = _df(base, other)
    if not enough or math.isnan(error):
        return RatioComparison(base, other, ratio, math.nan, math.nan, math.nan, larger)
    if df < 1:
        p = _of_difference(base, other)
        return RatioComparison(base, other, ratio, math.nan, math.nan, p, larger)
    log = math.log(ratio)
    half = min(float(special.stdtrit(df, 0.5 + level / 2)) * error, 700.0)
    p = 2.0 * float(special.stdtr(df, -abs(log) / error)) if error > 0 else float(log == 0)
    return RatioComparison(base, other, ratio, math.exp(log - half), math.exp(log + half), min(p, 1.0), larger)


def _df(base: Ratio, other: Ratio) -> float:
    """Welch and Satterthwaite's degrees of freedom."""
    sides = (base, other)
    if any(math.isnan(side.error) for side in sides):
        return math.nan
    total = sum(side.error**2 for side in sides)
    if total <= 0:
        return min(side.effective for side in sides) - 1
    if any(side.effective <= 1 and side.error > 0 for side in sides):
        return 0.0
    below = sum((s.error**2 / total) ** 2 / (s.effective - 1) for s in sides if s.error > 0)
    return float(1.0 / below)


def _of_difference(base: Ratio, other: Ratio) -> float:
    """p of the difference itself, with one degree of freedom: what is left to say where one round
    carries a side's sum. A steady rate against one that all but ceased still differs. NaN where
    neither side has any spread: a single read has none, and says nothing of the next."""
    from scipy import special

    error = math.hypot(base.error * base.value, other.error * other.value)
    if error <= 0:
        return math.nan
    return 2.0 * float(special.stdtr(1, -abs(other.value - base.value) / error))


def _one_sided(base: Ratio, other: Ratio) -> float:
    """p where a side never moved; NaN where neither did."""
    moving, still = (base, other) if other.above <= 0 else (other, base)
    if not moving.moved:
        return math.nan
    share = moving.rounds / (moving.rounds + still.rounds)
    return float(min(2.0 * share ** (moving.moved / moving.inflation), 1.0))


def _larger(base: tuple[float, ...], other: tuple[float, ...]) -> float:
    """The share of pairs in which other's round is the larger, ties one half (Mann and Whitney)."""
    if not base or not other:
        return math.nan
    ordered = np.sort(np.asarray(base))
    values = np.asarray(other)
    below = np.searchsorted(ordered, values, "left").sum()
    upto = np.searchsorted(ordered, values, "right").sum()
    return float(below + upto) / (2 * len(base) * len(other))
