"""Racing arms: after every block, which are surely worse, with the level held over the whole race.

Two arms are compared by their differences within blocks, x_1 ... x_n. The Bayes factor of "a difference, of size
sigma times N(0, g)" against "none", with the right Haar prior on sigma, is

    B_n = (1 + n g)^(-1/2) ((1 + t^2 / v) / (1 + t^2 / ((1 + n g) v)))^(n / 2)        v = n - 1

with Student's t of the differences. Without a difference the chance that it ever exceeds 1 / alpha, however long one
looks, is at most alpha, whatever sigma is (Hendriksen, de Heide and Gruenwald, Bayesian Analysis 16, 2021). So it may
be looked at after every block. Turned round it gives intervals that hold at all times together. Each of the m (m - 1)
/ 2 pairs has its share of 1 - level. `G` = 30 costs little late in a race and can decide after five blocks.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field

G = 30.0
BLOCKS_LEAST = 3


def t_limit(n: int, alpha: float, g: float = G) -> float:
    """The t of `n` differences from which on the Bayes factor exceeds 1 / alpha; infinite where none does."""
    if n < 2:
        return math.inf
    k = 1 + n * g
    log_r = 2 / n * (math.log(1 / alpha) + 0.5 * math.log(k))
    if log_r >= math.log(k):
        return math.inf
    r = math.exp(log_r)
    return math.sqrt((r - 1) / (1 - r / k) * (n - 1))


@dataclass(frozen=True, slots=True)
class Apart:
    """How many times as good one arm is as another: the mean over the blocks they share, with its interval."""

    ratio: float
    low: float
    high: float
    blocks: int


@dataclass(frozen=True, slots=True)
class Dropped:
    """An arm that left: after how many blocks, and which arm was surely better by how much."""

    arm: int
    after: int
    by: int
    apart: Apart


@dataclass
class Race:
    """A race of `arms` arms. `see` takes what each arm that is still in gave in a block."""

    arms: int
    level: float
    threshold: float
    logs: list[list[float]] = field(default_factory=list)
    alive: list[int] = field(default_factory=list)
    dropped: list[Dropped] = field(default_factory=list)
    blocks: int = 0

    def __post_init__(self) -> None:
        self.alive = list(range(self.arms))
        self.logs = [[] for _ in range(self.arms)]

    @property
    def alpha(self) -> float:
        """What is left to each pair."""
        return (1 - self.level) / (self.arms * (self.arms - 1) / 2)

    def see(self, values: Mapping[int, float]) -> list[Dropped]:
        """Takes the numbers of a block, the larger the better, NaN or none where an arm gave none; returns who
        leaves."""
        self.blocks += 1
        for arm in range(self.arms):
            value = values.get(arm, math.nan)
            self.logs[arm].append(math.log(value) if value > 0 and math.isfinite(value) else math.nan)
        leaving: list[Dropped] = []
        for arm in self.alive:
            better = [(self.apart(other, arm), other) for other in self.alive if other != arm]
            surely = [(one.low, other, one) for one, other in better if one.low > 1]
            if surely:
                _, by, one = max(surely, key=lambda row: row[0])
                leaving.append(Dropped(arm, self.blocks, by, one))
        gone = {one.arm for one in leaving}
        self.alive = [arm for arm in self.alive if arm not in gone]
        self.dropped += leaving
        return leaving

    def leave(self, arm: int) -> None:
        """Takes an arm out that cannot be judged."""
        self.alive = [other for other in self.alive if other != arm]

    def apart(self, arm: int, base: int) -> Apart:
        """One arm against another, over the blocks that both were in."""
        pairs = zip(self.logs[arm], self.logs[base], strict=True)
        apart = [mine - yours for mine, yours in pairs if math.isfinite(mine) and math.isfinite(yours)]
        n = len(apart)
        if not n:
            return Apart(math.nan, 0.0, math.inf, 0)
        mean = math.fsum(apart) / n
        if n < BLOCKS_LEAST:
            return Apart(math.exp(mean), 0.0, math.inf, n)
        error = math.sqrt(math.fsum((one - mean) ** 2 for one in apart) / (n - 1) / n)
        limit = t_limit(n, self.alpha)
        half = 0.0 if error == 0.0 else min(limit * error, 700.0)
        return Apart(math.exp(mean), math.exp(mean - half), math.exp(mean + half), n)

    @property
    def leader(self) -> int:
        """The arm that is ahead: of those still in, the one that the others are behind by the means."""
        return max(
            self.alive,
            key=lambda arm: min((self.apart(arm, other).ratio for other in self.alive if other != arm), default=1.0),
        )

    @property
    def rest_is_equal(self) -> bool:
        """Whether all that are still in lie within the threshold of each other, surely."""
        limit = 1 + self.threshold
        return all(
            max(one.high, 1 / one.low if one.low else math.inf) <= limit
            for one in itertools.starmap(self.apart, itertools.combinations(self.alive, 2))
        )

    @property
    def is_over(self) -> bool:
        """Whether one is left, or the rest are equal."""
        return len(self.alive) == 1 or self.rest_is_equal
