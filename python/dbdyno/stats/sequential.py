"""Race of arms: after every block, which arms are certainly worse, with the level held over the whole race.

Two arms are compared by their differences within blocks, x_1 ... x_n. The Bayes factor of "a difference, of size sigma
times N(0, g)" against "none", with the right Haar prior on sigma, is

    B_n = (1 + n g)^(-1/2) ((1 + t^2 / v) / (1 + t^2 / ((1 + n g) v)))^(n / 2)        v = n - 1

with Student's t of the differences. Without a difference the probability that it ever exceeds 1 / alpha, however long
the race, is at most alpha for any sigma (Hendriksen, de Heide and Gruenwald, Bayesian Analysis 16, 2021). It may
therefore be checked after every block. Inverted, it gives intervals that hold at all times jointly. Each of the m (m -
1) / 2 pairs gets an equal share of 1 - level. `G` = 30 costs little late in a race and can decide after five blocks.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field

G = 30.0
BLOCKS_LEAST = 3


def t_limit(n: int, alpha: float, g: float = G) -> float:
    """Return the t above which the Bayes factor of `n` differences exceeds 1 / alpha; infinite if it never does."""
    if n < 2:
        return math.inf
    k = 1 + n * g
    log_r = 2 / n * (math.log(1 / alpha) + 0.5 * math.log(k))
    if log_r >= math.log(k):
        return math.inf
    r = math.exp(log_r)
    return math.sqrt((r - 1) / (1 - r / k) * (n - 1))


@dataclass(frozen=True, slots=True)
class ArmRatio:
    """How many times better one arm is than another: the mean over the blocks that they share, with its interval."""

    ratio: float
    low: float
    high: float
    blocks: int


@dataclass(frozen=True, slots=True)
class DroppedArm:
    """An arm that left the race: after how many blocks, which arm was certainly better, and by how much."""

    arm: int
    after: int
    by: int
    apart: ArmRatio


@dataclass
class Race:
    """State of a race of `arms` arms; call `add_block` with the values of each block."""

    arms: int
    level: float
    threshold: float
    logs: list[list[float]] = field(default_factory=list)
    alive: list[int] = field(default_factory=list)
    dropped: list[DroppedArm] = field(default_factory=list)
    blocks: int = 0

    def __post_init__(self) -> None:
        self.alive = list(range(self.arms))
        self.logs = [[] for _ in range(self.arms)]

    @property
    def alpha(self) -> float:
        """Return the error probability of each pair."""
        return (1 - self.level) / (self.arms * (self.arms - 1) / 2)

    def add_block(self, values: Mapping[int, float]) -> list[DroppedArm]:
        """Record the values of a block and return the arms that are dropped.

        `values` maps arms to numbers, larger is better; an arm without a number is missing or NaN.
        """
        self.blocks += 1
        for arm in range(self.arms):
            value = values.get(arm, math.nan)
            self.logs[arm].append(math.log(value) if value > 0 and math.isfinite(value) else math.nan)
        leaving: list[DroppedArm] = []
        for arm in self.alive:
            better = [(self.compare(other, arm), other) for other in self.alive if other != arm]
            surely = [(one.low, other, one) for one, other in better if one.low > 1]
            if surely:
                _, by, one = max(surely, key=lambda row: row[0])
                leaving.append(DroppedArm(arm, self.blocks, by, one))
        gone = {one.arm for one in leaving}
        self.alive = [arm for arm in self.alive if arm not in gone]
        self.dropped += leaving
        return leaving

    def drop_arm(self, arm: int) -> None:
        """Remove an arm that cannot be judged."""
        self.alive = [other for other in self.alive if other != arm]

    def compare(self, arm: int, base: int) -> ArmRatio:
        """Compare one arm with another over the blocks that both took part in.

        With fewer than three such blocks the interval is 0 to infinity; with none the ratio is NaN.
        """
        pairs = zip(self.logs[arm], self.logs[base], strict=True)
        apart = [mine - yours for mine, yours in pairs if math.isfinite(mine) and math.isfinite(yours)]
        n = len(apart)
        if not n:
            return ArmRatio(math.nan, 0.0, math.inf, 0)
        mean = math.fsum(apart) / n
        if n < BLOCKS_LEAST:
            return ArmRatio(math.exp(mean), 0.0, math.inf, n)
        error = math.sqrt(math.fsum((one - mean) ** 2 for one in apart) / (n - 1) / n)
        limit = t_limit(n, self.alpha)
        half = 0.0 if error == 0.0 else min(limit * error, 700.0)
        return ArmRatio(math.exp(mean), math.exp(mean - half), math.exp(mean + half), n)

    @property
    def leader(self) -> int:
        """Return the remaining arm whose smallest mean ratio to the other remaining arms is the largest."""
        return max(
            self.alive,
            key=lambda arm: min((self.compare(arm, other).ratio for other in self.alive if other != arm), default=1.0),
        )

    @property
    def remaining_are_equal(self) -> bool:
        """Return True if all remaining arms are certainly within the threshold of each other."""
        limit = 1 + self.threshold
        return all(
            max(one.high, 1 / one.low if one.low else math.inf) <= limit
            for one in itertools.starmap(self.compare, itertools.combinations(self.alive, 2))
        )

    @property
    def is_over(self) -> bool:
        """Return True if one arm remains, or the remaining arms are equal."""
        return len(self.alive) == 1 or self.remaining_are_equal
