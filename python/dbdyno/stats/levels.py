"""Comparison of the levels of a factor: the best level, the knee, and whether a higher level is ever worse.

The input is one number per block and level; differences are computed within blocks. All intervals of one curve hold
jointly at the requested level: with m pairs, each pair has Student's interval at 1 - (1 - level) / m (Bonferroni;
Miller, Simultaneous Statistical Inference, 1981, section 1.2).

The knee is the smallest level that no other beats by more than the threshold. `knee_low` is the first level that no
other certainly beats by more than the threshold. `knee_high` is the first level that certainly no other beats by more
than the threshold or, if there is none, the last level that may be the knee. The true knee is between them at the
requested level, because it is left out only if an interval is wrong.

If the base drifted (`at_s` is not None), a mean over the run may describe no part of it. An interval then covers the
intervals of the mean, and of the regression line through the differences at the start and at the end of the run.
Two levels are then called different, or alike, only if they are so from the start to the end. Both ends must agree, so
no further correction is needed (an intersection-union test; Berger, Technometrics 24, 1982).
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dbdyno.base.errors import StatsError
from dbdyno.stats.arrays import Floats
from dbdyno.stats.distributions import t_quantile
from dbdyno.stats.gates_in_time import trend
from dbdyno.stats.means import mean_interval

Course = Literal["flat", "rises", "falls", "peak", "dip", "unclear"]
"""Shape of the curve over the levels.

`flat`: all levels are alike within the threshold. `rises`, `falls`: over the whole range, with no step back by more
than the threshold. `peak`: certainly better in the middle than at both ends. `dip`: certainly worse. `unclear`: none of
these.
"""


@dataclass(frozen=True, slots=True, eq=False)
class Levels:
    """Comparison of the levels of one factor, on the log scale with larger values better.

    `mean[j, k]` is the mean difference of level `j` minus level `k`; `low[j, k]` and `high[j, k]` are the ends of its
    interval. `best`, `knee`, `knee_low` and `knee_high` are indexes of levels; `blocks` is the smallest number of
    blocks that a pair has in common.
    """

    means: Floats
    mean: Floats
    low: Floats
    high: Floats
    best: int
    knee: int
    knee_low: int
    knee_high: int
    course: Course
    blocks: int
    threshold: float
    level: float

    @property
    def pairs(self) -> int:
        """Return the number of pairs of levels, for which the confidence level holds jointly."""
        return self.means.size * (self.means.size - 1) // 2

    def share(self, at: int) -> float:
        """Return the value at a level as a share of the value at the best level."""
        return math.exp(float(self.means[at] - self.means[self.best]))

    def ratio_to(self, at: int, base: int) -> tuple[float, float, float]:
        """Return how many times better level `at` is than level `base`, with both ends of the interval."""
        found = (self.mean[at, base], self.low[at, base], self.high[at, base])
        ratio, low, high = (math.exp(min(float(one), 700.0)) for one in found)
        return ratio, low, high

    def blocks_to_tell(self, at: int, other: int) -> int | None:
        """Return the total number of blocks that shows level `at` to be better than `other` by more than the threshold.

        It does so in four of five runs if the levels differ by as much as observed. The result is None if they differ
        by less than the threshold, and at most `BLOCKS_MOST`.
        """
        from dbdyno.stats.power import BLOCKS_MOST, blocks_needed

        beyond = float(self.mean[at, other]) - math.log1p(self.threshold)
        if beyond <= 0:
            return None
        level = 1.0 - (1.0 - self.level) / self.pairs
        reach = t_quantile(self.blocks - 1, 0.5 + level / 2)
        spread = float(self.high[at, other] - self.mean[at, other]) / reach * math.sqrt(self.blocks)
        return blocks_needed(spread, math.expm1(beyond), level=level) or BLOCKS_MOST


def compare_levels(values: ArrayLike, *, threshold: float, level: float, at_s: ArrayLike | None = None) -> Levels:
    """Compare the levels of a factor.

    Args:
        values: Array of (blocks, levels) of numbers above 0, larger is better. NaN means that a block has no value; the
            block is left out of the pairs that need it.
        threshold: Smallest relative difference that matters.
        level: Joint confidence level of all intervals.
        at_s: Start of each block [s] if the base drifted, else None.

    Raises:
        StatsError: There are fewer than two levels, or a pair has fewer than two blocks in common (five with `at_s`).
    """
    given = np.asarray(values, dtype=np.float64)
    if given.ndim != 2 or given.shape[1] < 2:
        raise StatsError("a factor needs two levels or more", next_step="give the factor more levels")
    logs = np.log(np.where(given > 0, given, np.nan))
    count = logs.shape[1]
    shape = (count, count)
    mean, low, high = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    alpha, fewest = (1.0 - level) / (count * (count - 1) / 2), logs.shape[0]
    for j, k in itertools.combinations(range(count), 2):
        middle, least, most = _mean_difference(logs[:, k] - logs[:, j], alpha, at_s)
        mean[k, j], low[k, j], high[k, j] = middle, least, most
        mean[j, k], low[j, k], high[j, k] = -middle, -most, -least
        fewest = min(fewest, int(np.isfinite(logs[:, k] - logs[:, j]).sum()))
    means = _level_means(mean)
    limit = math.log1p(threshold)
    best = int(np.argmax(means))
    may_be = np.flatnonzero(low.max(axis=0) <= limit)
    # In column k: the difference of each other level minus level k.
    return Levels(
        means=means,
        mean=mean,
        low=low,
        high=high,
        best=best,
        knee=_first_true(mean.max(axis=0) <= limit, best),
        knee_low=int(may_be[0]),
        knee_high=_first_true(high.max(axis=0) <= limit, int(may_be[-1])),
        course=_course(low, high, limit),
        blocks=fewest,
        threshold=threshold,
        level=level,
    )


def _mean_difference(differences: Floats, alpha: float, at_s: ArrayLike | None) -> tuple[float, float, float]:
    """Return the mean of differences of logs over blocks, and its interval at 1 - `alpha`.

    With `at_s` the interval holds from the start to the end of the run.

    Raises:
        StatsError: There are fewer than two blocks (five with `at_s`).
    """
    mean, low, high = mean_interval(differences, 1.0 - alpha)
    if math.isnan(low):
        raise StatsError("two levels have fewer than two blocks in common", next_step="run more blocks")
    if at_s is None:
        return mean, low, high
    found = trend(differences, at_s)
    if found is None:
        raise StatsError("two levels have fewer than five blocks in common", next_step="run more blocks")
    least, most = found.span(1.0 - alpha)
    return mean, min(low, least), max(high, most)


def _level_means(mean: Floats) -> Floats:
    """Return the mean log of each level from its mean differences, so that blocks with gaps count where possible."""
    centred: Floats = mean.mean(axis=1)
    return centred


def _first_true(good: NDArray[np.bool_], otherwise: int) -> int:
    return int(np.argmax(good)) if good.any() else otherwise


def _course(low: Floats, high: Floats, limit: float) -> Course:
    last = low.shape[0] - 1
    if (high <= limit).all():
        return "flat"
    middle = range(1, last)
    if any(low[at, 0] > 0 and low[at, last] > 0 for at in middle):
        return "peak"
    if any(high[at, 0] < 0 and high[at, last] < 0 for at in middle):
        return "dip"
    steps_back = [low[at, later] > limit for at in range(last) for later in range(at + 1, last + 1)]
    steps_on = [low[later, at] > limit for at in range(last) for later in range(at + 1, last + 1)]
    if low[last, 0] > 0 and not any(steps_back):
        return "rises"
    if low[0, last] > 0 and not any(steps_on):
        return "falls"
    return "unclear"


@dataclass(frozen=True, slots=True)
class Interaction:
    """Difference of the effect of a second factor between the levels of a first factor.

    Attributes:
        base: Level of the second factor with which `to` is compared.
        to: Level of the second factor whose effect is measured.
        effects: How many times better `to` is than `base`, for each level of the first factor.
        least: Level of the first factor with the smaller effect of the most different pair.
        most: Level of the first factor with the larger effect of that pair.
        apart: The ratio of these two effects, the greatest of all pairs.
        low: Lower end of the interval of `apart`.
        high: Upper end of the interval of `apart`.
        threshold: Smallest relative difference that matters.
    """

    base: int
    to: int
    effects: tuple[float, ...]
    least: int
    most: int
    apart: float
    low: float
    high: float
    threshold: float

    @property
    def is_certain(self) -> bool:
        """Return True if the factors certainly interact by more than the threshold."""
        return self.low > 1 + self.threshold

    @property
    def is_none(self) -> bool:
        """Return True if the factors certainly do not interact by more than the threshold."""
        return self.high <= 1 + self.threshold


def interaction(values: ArrayLike, *, threshold: float, level: float, at_s: ArrayLike | None = None) -> Interaction:
    """Compare the effect of a second factor between the levels of a first factor.

    The effect is measured from the second factor's first level to the level that differs most from it, over all levels
    of the first. The interval holds jointly over all pairs of levels of the first factor.

    Args:
        values: Array of (blocks, levels of the first, levels of the second), larger is better.
        threshold: Smallest relative difference that matters.
        level: Joint confidence level.
        at_s: Start of each block [s] if the base drifted, else None.

    Raises:
        StatsError: A factor has fewer than two levels, or a pair has too few blocks in common (see `compare_levels`).
    """
    given = np.asarray(values, dtype=np.float64)
    if given.ndim != 3 or min(given.shape[1:]) < 2:
        raise StatsError(
            "an interaction needs two factors with two levels or more each", next_step="choose factors with more levels"
        )
    logs = np.log(np.where(given > 0, given, np.nan))
    over = np.nanmean(logs, axis=(0, 1))
    to = int(np.argmax(np.abs(over[1:] - over[0]))) + 1
    effects = logs[:, :, to] - logs[:, :, 0]
    count = effects.shape[1]
    means = np.nanmean(effects, axis=0)
    alpha = (1.0 - level) / (count * (count - 1) / 2)
    widest = (-1.0, math.nan, math.nan, 0, 1)
    for i, j in itertools.combinations(range(count), 2):
        middle, low, high = _mean_difference(effects[:, j] - effects[:, i], alpha, at_s)
        own = (middle, low, high, i, j) if middle >= 0 else (-middle, -high, -low, j, i)
        widest = max(widest, own, key=lambda one: one[0])
    middle, low, high, least, most = widest
    return Interaction(
        0,
        to,
        tuple(math.exp(float(one)) for one in means),
        least,
        most,
        math.exp(middle),
        math.exp(low),
        math.exp(min(high, 700.0)),
        threshold,
    )
