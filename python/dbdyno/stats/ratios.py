"""Rates, latencies and shares from counters, each with its error, as ratios of two sums over rounds.

A rate is the growth of a counter divided by seconds, a latency the growth of a time divided by the growth of its
requests, a share the growth of a part divided by that of its whole. All are sums over rounds (clusters), divided:

    R = (d1 + ... + dn) / (s1 + ... + sn)

so that R over a whole recording depends only on its first and last collection, whatever the length of the rounds. Its
error comes from the residuals d - R s (the ratio estimator, Cochran, Sampling Techniques, 1977, 6.4): events within a
round may depend on each other in any way. Autocorrelated rounds widen it as in `blocks.independence`. There are two
more corrections for counters that seldom change:

- Events: a number of events N is known no better than its Poisson error, 1 / sqrt(N) of it; a share R no better than
  sqrt((1 - R) / N).
- Degrees of freedom: rounds count as far as they contribute to the sum, (sum d)^2 / sum d^2 (Kish 1965), so that one
  burst in a long recording decides nothing.

Two ratios are compared on the log scale with Welch's t. If a single round contributes one side's sum, there is no
interval, and p is that of the plain difference with one degree of freedom. If one side never changed, there is no
ratio. If both sides were alike, the k rounds that changed (divided by their inflation) would all be on the other side
with a probability of at most share^k, where share is that side's share of the rounds; p is twice that.

Limits: the rounds need the same kind of load. A load that drifts through only one of the recordings produces
differences that are real, but not the change that is looked for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dbdyno.base.errors import StatsError
from dbdyno.stats.blocks import independence
from dbdyno.stats.distributions import t_cdf, t_quantile
from dbdyno.stats.means import RatioEstimate

ROUNDS_LEAST = 6
"""Smallest number of rounds from which the autocorrelation of neighbouring rounds can be estimated."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """A ratio of two sums over rounds.

    Attributes:
        value: The ratio; NaN if the sum of the denominator is not above 0.
        above: Sum of the numerator.
        below: Sum of the denominator.
        rounds: Number of known rounds.
        moved: Number of rounds in which the numerator grew.
        error: Relative standard error of the ratio; NaN with fewer than two rounds or at a ratio of 0.
        effective: Effective number of rounds behind the error.
        inflation: Number of rounds worth one independent round.
        by_round: The ratio of each round whose denominator is above 0.
    """

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
        """Return the interval of the ratio, computed on the log scale; None if there is none."""
        df = self.effective - 1
        if math.isnan(self.error) or df < 1:
            return None
        half = min(t_quantile(df, 0.5 + level / 2) * self.error, 700.0)
        return self.value * math.exp(-half), self.value * math.exp(half)


@dataclass(frozen=True)
class RatioComparison(RatioEstimate):
    """Comparison of two ratios, other over base.

    Attributes:
        base: The ratio of the base.
        other: The other ratio.
        larger: Probability that a round of other has the larger value.
    """

    base: Ratio
    other: Ratio
    larger: float


def ratio_of(above: ArrayLike, below: ArrayLike, *, events: bool = False, share: bool = False) -> Ratio:
    """Return the ratio of the sums of `above` and `below`; rounds in which one is NaN are left out.

    Args:
        above: Numerator of each round, in time order.
        below: Denominator of each round.
        events: True if `above` counts events.
        share: True if `above` counts some of the events that `below` counts.

    Raises:
        StatsError: The lengths differ.
    """
    d, s = (np.asarray(values, dtype=np.float64) for values in (above, below))
    if d.ndim != 1 or d.shape != s.shape:
        raise StatsError(
            f"{d.size} and {s.size} values cannot be paired by round",
            next_step="give one numerator and one denominator for each round",
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
    if inflation > 1.0:  # as in `unpaired`: the sample variance of an autocorrelated series is biased low
        variance *= (n - 1) / max(n - inflation, 1.0)
    error2 = variance / top**2
    if events or share:
        error2 = max(error2, (1.0 - min(value, 1.0) if share else 1.0) / top)
    carried = top**2 / float(d @ d)
    effective = min(carried, float(n)) / inflation
    return Ratio(value, top, bottom, n, moved, math.sqrt(error2), effective, inflation, by_round)


def compare_ratios(base: Ratio, other: Ratio, *, level: float = 0.95) -> RatioComparison:
    """Compare ratio `other` with `base`; p is NaN if a side has fewer than `ROUNDS_LEAST` rounds."""
    larger = _larger(base.by_round, other.by_round)
    nothing = (math.nan, math.nan, math.nan)
    enough = min(base.rounds, other.rounds) >= ROUNDS_LEAST
    if math.isnan(base.value) or math.isnan(other.value):
        return RatioComparison(*nothing, math.nan, base, other, larger)
    if base.above <= 0 or other.above <= 0:
        p = _one_sided(base, other) if enough else math.nan
        return RatioComparison(*nothing, p, base, other, larger)
    ratio = other.value / base.value
    errors = base.error**2, other.error**2
    error = math.sqrt(sum(errors))
    df = _df(base, other)
    if not enough or math.isnan(error):
        return RatioComparison(ratio, math.nan, math.nan, math.nan, base, other, larger)
    if df < 1:
        p = _of_difference(base, other)
        return RatioComparison(ratio, math.nan, math.nan, p, base, other, larger)
    log = math.log(ratio)
    half = min(t_quantile(df, 0.5 + level / 2) * error, 700.0)
    p = 2.0 * t_cdf(df, -abs(log) / error) if error > 0 else float(log == 0)
    return RatioComparison(ratio, math.exp(log - half), math.exp(log + half), min(p, 1.0), base, other, larger)


def _df(base: Ratio, other: Ratio) -> float:
    """Return Welch and Satterthwaite's degrees of freedom; NaN if an error is unknown, 0 if a side has no spread."""
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
    """Return p of the plain difference, with one degree of freedom; NaN if neither side has any spread.

    It is used if a single round contributes a side's sum: a steady rate compared with one that almost ceased still
    differs. A single read has no spread and says nothing about the next.
    """
    error = math.hypot(base.error * base.value, other.error * other.value)
    if error <= 0:
        return math.nan
    return 2.0 * t_cdf(1, -abs(other.value - base.value) / error)


def _one_sided(base: Ratio, other: Ratio) -> float:
    """Return p if one side never changed; NaN if neither did."""
    moving, still = (base, other) if other.above <= 0 else (other, base)
    if not moving.moved:
        return math.nan
    share = moving.rounds / (moving.rounds + still.rounds)
    return float(min(2.0 * share ** (moving.moved / moving.inflation), 1.0))


def _larger(base: tuple[float, ...], other: tuple[float, ...]) -> float:
    """Return the share of pairs in which the round of other is larger, ties counted as one half (Mann and Whitney)."""
    if not base or not other:
        return math.nan
    ordered = np.sort(np.asarray(base))
    values = np.asarray(other)
    below = np.searchsorted(ordered, values, "left").sum()
    upto = np.searchsorted(ordered, values, "right").sum()
    return float(below + upto) / (2 * len(base) * len(other))
