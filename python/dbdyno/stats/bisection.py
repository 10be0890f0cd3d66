"""Search for the first differing version in a sequence, using measurements with random errors.

Every version is compared with the first (known to be good) and the last (known to be bad) in the same blocks. Let x be
its log value in a block, and a and b those of the first and the last version. Then d = x - (a + b) / 2 is below zero on
average if the version is like the good one, and above zero if it is like the bad one (or the reverse, if larger is
better). The Bayes factor of `sequential` shows on which side of zero d is, and holds its level after any number of
blocks, so a test stops as soon as it can tell. A test costs three measurements a block and needs no estimate of how
large the difference is.

The probability that the answer names a wrong version is at most `alpha`. Three quarters of it are divided equally among
the tests that a search without skips needs. Each additional test gets half of what remains of the last quarter. A test
that cannot tell decides nothing; its version is skipped.

Limits: d is assumed to be normal and independent from block to block; `docs/explanation/method.md` shows how often the
search errs if it is not.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from dbdyno.stats.sequential import t_limit

BLOCKS_LEAST = 6
"""Minimum number of blocks of a test; with fewer, Student's t relies on an unverified normal distribution."""


@dataclass
class SideTest:
    """Sequential test of the sign of a mean, with an error probability of at most `alpha`.

    `count` is the number of values, `mean` their mean, `squares` the sum of squared distances from it (Welford 1962).
    """

    alpha: float
    count: int = 0
    mean: float = 0.0
    squares: float = 0.0

    def add(self, value: float) -> int:
        """Add a value, and return 1 or -1 if the sign is known, otherwise 0; NaN is ignored."""
        if math.isfinite(value):
            self.count += 1
            away = value - self.mean
            self.mean += away / self.count
            self.squares += away * (value - self.mean)
        return 0 if not abs(self.mean) > self.half_width() else 1 if self.mean > 0 else -1

    def half_width(self) -> float:
        """Return half the width of the mean's interval, which is valid at all times; infinite at the beginning."""
        n = self.count
        if n < BLOCKS_LEAST:
            return math.inf
        error = math.sqrt(self.squares / (n - 1) / n)
        return t_limit(n, self.alpha) * error if error else 0.0


@dataclass
class Bisection:
    """State of a search among versions 0 (good) to `count` - 1 (bad).

    Attributes:
        count: Number of versions.
        alpha: Largest probability of a wrong answer.
        good: Last version known to be like the first.
        bad: First version known to be like the last.
        skipped: Versions that cannot be tested.
        tests: Number of tests that were given a share of `alpha`.
    """

    count: int
    alpha: float
    good: int = 0
    bad: int = 0
    skipped: set[int] = field(default_factory=set)
    tests: int = 0

    def __post_init__(self) -> None:
        self.bad = self.count - 1

    @property
    def planned_tests(self) -> int:
        """Return the number of tests in a search without skips: one for the two ends, and one for each halving."""
        return 1 + math.ceil(math.log2(max(self.count - 1, 1)))

    def share(self) -> float:
        """Return the part of `alpha` that the next test may use, and count that test."""
        self.tests += 1
        if self.tests <= self.planned_tests:
            return 0.75 * self.alpha / self.planned_tests
        return 0.25 * self.alpha * 0.5 ** (self.tests - self.planned_tests)

    def next(self) -> int | None:
        """Return the version to test: the one nearest to the middle that is not skipped; None at the end."""
        middle = (self.good + self.bad) // 2
        return next(
            (one for one in self._positions_from(middle) if self.good < one < self.bad and one not in self.skipped),
            None,
        )

    def record(self, version: int, *, is_bad: bool) -> None:
        """Record whether a version is good or bad."""
        if is_bad:
            self.bad = version
        else:
            self.good = version

    def skip(self, version: int) -> None:
        """Record that a version cannot be tested."""
        self.skipped.add(version)

    @property
    def suspects(self) -> range:
        """Return the versions that may be the first bad one; only one if the search found it."""
        return range(self.good + 1, self.bad + 1)

    def _positions_from(self, middle: int) -> Iterator[int]:
        for step in range(self.count):
            yield from (middle + step, middle - step) if step else (middle,)
