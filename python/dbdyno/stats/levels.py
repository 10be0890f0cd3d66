"""A factor's levels side by side: which is best, where the knee lies, whether more is ever less.

Given is one number per block and level, the blocks in common: differences are taken within blocks. All intervals of
one curve hold together with the level asked for: each pair has Student's interval at 1 - (1 - level) / m, m pairs
(Bonferroni; Miller, Simultaneous Statistical Inference, 1981, section 1.2).

The knee is the smallest level that no other beats by more than the threshold. `knee_low` is the first level that
none beats by more than the threshold for certain; `knee_high` the first that for certain none does or, without one,
the last that may be it. The true knee lies between them with the level asked for, because it is left out only where
an interval missed.

Where the base drifted (`at_s` is given) a mean over the run may belong to no part of it. There an interval reaches over
both ends of the run: over the mean's, and over those of the straight line through the differences at its beginning and
at its end. Two levels are then called different, or alike, only where they are so from the beginning to the end; since
both ends must agree, no further correction is needed (an intersection-union test; Berger, Technometrics 24, 1982).
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
from dbdyno.stats.gates_in_time import trend
from dbdyno.stats.means import mean_interval

Course = Literal["flat", "rises", "falls", "peak", "dip", "unclear"]
"""`flat`: all levels alike within the threshold; `rises`, `falls`: over the whole range, with no step back by more
than the threshold; `peak`: certainly better in the middle than at both ends; `dip`: certainly worse."""


@dataclass(frozen=True, slots=True, eq=False)
class Levels:
    """What the levels of one factor say; logs of what is better the larger it is. `low[j, k]` and `high[j, k]` are
    the ends of the interval of how much `j` is above `k`."""

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
        """The comparisons that the level was held over."""
        return self.means.size * (self.means.size - 1) // 2

    def share(self, at: int) -> float:
        """A level as a share of the best."""
        return math.exp(float(self.means[at] - self.means[self.best]))

    def against(self, at: int, base: int) -> tuple[float, float, float]:
        """How many times as good one level is as another, with both ends."""
        found = (self.mean[at, base], self.low[at, base], self.high[at, base])
        ratio, low, high = (math.exp(min(float(one), 700.0)) for one in found)
        return ratio, low, high

    def blocks_to_tell(self, at: int, other: int) -> int | None:
        """How many blocks in all would show in four of five runs that a level is better than another by more than the
        threshold, if they are as far apart as they were found; None where that is nearer than the threshold."""
        from scipy import special

        from dbdyno.stats.power import BLOCKS_MOST, blocks_needed

        beyond = float(self.mean[at, other]) - math.log1p(self.threshold)
        if beyond <= 0:
            return None
        level = 1.0 - (1.0 - self.level) / self.pairs
        reach = float(special.stdtrit(self.blocks - 1, 0.5 + level / 2))
        spread = float(self.high[at, other] - self.mean[at, other]) / reach * math.sqrt(self.blocks)
        return blocks_needed(spread, math.expm1(beyond), level=level) or BLOCKS_MOST


def compare_levels(values: ArrayLike, *, threshold: float, level: float, at_s: ArrayLike | None = None) -> Levels:
    """Compares levels; `values` is an array of (blocks, levels) of numbers above 0, the larger the better, NaN where
    a block has none: such a block is left out of the pairs that need it. `at_s`, the blocks' begins [s], is given
    where the base drifted.

    Raises `StatsError` below two levels, or where a pair has fewer than two blocks in common (five with `at_s`).
    """
    given = np.asarray(values, dtype=np.float64)
    if given.ndim != 2 or given.shape[1] < 2:
        raise StatsError("a factor needs two levels or more")
    logs = np.log(np.where(given > 0, given, np.nan))
    count = logs.shape[1]
    shape = (count, count)
    mean, low, high = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    alpha, fewest = (1.0 - level) / (count * (count - 1) / 2), logs.shape[0]
    for j, k in itertools.combinations(range(count), 2):
        middle, least, most = _apart(logs[:, k] - logs[:, j], alpha, at_s)
        mean[k, j], low[k, j], high[k, j] = middle, least, most
        mean[j, k], low[j, k], high[j, k] = -middle, -most, -least
        fewest = min(fewest, int(np.isfinite(logs[:, k] - logs[:, j]).sum()))
    means = _centred(mean)
    limit = math.log1p(threshold)
    best = int(np.argmax(means))
    may_be = np.flatnonzero(low.max(axis=0) <= limit)
    # Column k: by how much any other is above level k.
    return Levels(
        means=means,
        mean=mean,
        low=low,
        high=high,
        best=best,
        knee=_first(mean.max(axis=0) <= limit, best),
        knee_low=int(may_be[0]),
        knee_high=_first(high.max(axis=0) <= limit, int(may_be[-1])),
        course=_course(low, high, limit),
        blocks=fewest,
        threshold=threshold,
        level=level,
    )


def _apart(differences: Floats, alpha: float, at_s: ArrayLike | None) -> tuple[float, float, float]:
    """The mean of differences of logs by block, with its interval at 1 - `alpha`; with the times of blocks one that
    holds from the beginning to the end."""
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


def _centred(mean: Floats) -> Floats:
    """The mean log of each level, from the means of its differences: blocks with gaps count where they can."""
    centred: Floats = mean.mean(axis=1)
    return centred


def _first(good: NDArray[np.bool_], otherwise: int) -> int:
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
    """How differently one factor acts at the levels of another. `effects[i]` is how many times as good `to` is as
    `base` of the one at level `i` of the other; `apart` is the greatest ratio of two of them with its ends, between
    the levels `least` and `most`."""

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
        """Whether the factors surely act on each other by more than the threshold."""
        return self.low > 1 + self.threshold

    @property
    def is_none(self) -> bool:
        """Whether they surely do not."""
        return self.high <= 1 + self.threshold


def interaction(values: ArrayLike, *, threshold: float, level: float, at_s: ArrayLike | None = None) -> Interaction:
    """Two factors: `values` is an array of (blocks, levels of the one, levels of the other), larger is better. The
    effect is that of the second factor, from its first level to the one that is best over all levels of the first.

    The interval holds over all pairs of levels of the first; `at_s` and `StatsError` are as of `compare_levels`.
    """
    given = np.asarray(values, dtype=np.float64)
    if given.ndim != 3 or min(given.shape[1:]) < 2:
        raise StatsError("an interaction needs two factors with two levels or more each")
    logs = np.log(np.where(given > 0, given, np.nan))
    over = np.nanmean(logs, axis=(0, 1))
    to = int(np.argmax(np.abs(over[1:] - over[0]))) + 1
    effects = logs[:, :, to] - logs[:, :, 0]
    count = effects.shape[1]
    means = np.nanmean(effects, axis=0)
    alpha = (1.0 - level) / (count * (count - 1) / 2)
    widest = (-1.0, math.nan, math.nan, 0, 1)
    for i, j in itertools.combinations(range(count), 2):
        middle, low, high = _apart(effects[:, j] - effects[:, i], alpha, at_s)
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
