"""Decisions on statements, and the total of a rehearsal.

A statement is slower if the 95 % interval of its ratio lies above the threshold as a whole: the hypothesis tested is
"at most 10 % slower", one-sided, by Student's t on the logarithms of the ratios of blocks. Over all statements the
false discovery rate is held at 5 % (Benjamini and Hochberg 1995). Where confirming blocks exist, they alone are tested.
A statement is "same" if it is certainly not slower by more than the threshold.

The total is the sum over statements of calls times the difference of the means. Blocks of several statements may share
a pair of server processes, and then depend on each other; the interval's standard error is that of sums over such
clusters (Liang and Zeger 1986).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from dbdyno.rehearse.rehearsed import LEAST_BLOCKS, Rehearsed

Word = Literal["slower", "faster", "same", "unclear", "fails", "differs", "not rehearsed"]
LEVEL = 0.95
_LEAST_SPREAD = 0.005
"""Least spread of the logarithms of blocks, so that coarse clocks make nothing significant."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What was found about one statement.

    Attributes:
        item: The statement with its measurements.
        word: The decision.
        ratio: Time on the new side divided by that on the old side; NaN if unknown.
        low: Lower end of its 95 % interval.
        high: Upper end.
        old_ns: Mean time on the old side [ns].
        new_ns: Mean time on the new side [ns].
        added_ns: What the difference adds to the load, calls times difference [ns].
        p: p of "at most the threshold slower".
    """

    item: Rehearsed
    word: Word
    ratio: float = math.nan
    low: float = math.nan
    high: float = math.nan
    old_ns: float = math.nan
    new_ns: float = math.nan
    added_ns: float = 0.0
    p: float = 1.0

    @property
    def is_timed(self) -> bool:
        """Return True if enough blocks were measured on both sides."""
        return not math.isnan(self.ratio)


@dataclass(frozen=True, slots=True)
class Total:
    """Database time of the judged statements on both sides.

    Attributes:
        old_ns: Time on the old side [ns].
        ratio: Time on the new side divided by that on the old side, with its 95 % interval.
        low: Lower end.
        high: Upper end.
        judged: Share of the load's database time that the judged statements have.
    """

    old_ns: float
    ratio: float
    low: float
    high: float
    judged: float


def looks_slower(item: Rehearsed, threshold: float) -> bool:
    """Return True if a statement deserves confirming blocks: its mean is slower by more than half the threshold."""
    if len(item.old_ns) < LEAST_BLOCKS:
        return False
    mean, error, freedom = _log_ratio(item.old_ns, item.new_ns)
    return mean > math.log1p(threshold / 2) and _p_above(mean, error, freedom, math.log1p(threshold)) < 0.2


def decide(items: Sequence[Rehearsed], threshold: float) -> list[Decision]:
    """Return the decision on each statement, in their order."""
    found = [_measured(item, threshold) for item in items]
    timed = sorted((one.p, at) for at, one in enumerate(found) if one.is_timed)
    slower: set[int] = set()
    for rank, (p, _) in enumerate(timed, 1):
        if p <= (1 - LEVEL) * rank / len(timed):
            slower = {at for _, at in timed[:rank]}
    return [_worded(one, at in slower, threshold) for at, one in enumerate(found)]


def total(decisions: Sequence[Decision]) -> Total:
    """Return the database time of all judged statements on both sides."""
    judged = [one for one in decisions if one.is_timed]
    old_ns = sum(one.item.statement.calls * one.old_ns for one in judged)
    if not judged or old_ns <= 0:
        return Total(0.0, math.nan, math.nan, math.nan, 0.0)
    added = sum(one.added_ns for one in judged)
    half = 1.96 * _total_error(judged)
    whole = sum(one.item.statement.total_ns for one in decisions)
    known = sum(one.item.statement.total_ns for one in judged)
    ratio = 1 + added / old_ns
    return Total(old_ns, ratio, ratio - half / old_ns, ratio + half / old_ns, known / whole if whole else 1.0)


def _total_error(judged: Sequence[Decision]) -> float:
    """Return the standard error of the sum of what the statements add [ns], by clusters of server processes."""
    clusters: dict[int, float] = {}
    for one in judged:
        apart = [new - old for old, new in zip(one.item.old_ns, one.item.new_ns, strict=True)]
        mean, count = statistics.fmean(apart), len(apart)
        weight = one.item.statement.calls / math.sqrt(count * (count - 1))
        for processes, value in zip(one.item.processes, apart, strict=True):
            clusters[processes] = clusters.get(processes, 0.0) + weight * (value - mean)
    return math.sqrt(sum(value**2 for value in clusters.values()))


def _measured(item: Rehearsed, threshold: float) -> Decision:
    if item.reason or len(item.old_ns) < LEAST_BLOCKS:
        return Decision(item, "not rehearsed")
    start = item.first_blocks if len(item.old_ns) - item.first_blocks >= LEAST_BLOCKS else 0
    mean, error, freedom = _log_ratio(item.old_ns[start:], item.new_ns[start:])
    old_ns, new_ns = statistics.fmean(item.old_ns), statistics.fmean(item.new_ns)
    apart = [b - a for a, b in zip(item.old_ns, item.new_ns, strict=True)]
    calls = item.statement.calls
    return Decision(
        item,
        "unclear",
        *interval(item.old_ns[start:], item.new_ns[start:]),
        old_ns,
        new_ns,
        calls * statistics.fmean(apart),
        _p_above(mean, error, freedom, math.log1p(threshold)),
    )


def interval(old: Sequence[float], new: Sequence[float]) -> tuple[float, float, float]:
    """Return the ratio of the times of blocks, new by old, with its 95 % interval."""
    from scipy import special

    mean, error, freedom = _log_ratio(old, new)
    half = float(special.stdtrit(freedom, 0.5 + LEVEL / 2)) * error
    return math.exp(mean), math.exp(mean - half), math.exp(mean + half)


def _worded(one: Decision, is_slower: bool, threshold: float) -> Decision:
    from dataclasses import replace

    word: Word = one.word
    if one.item.fails is not None:
        word = "fails"
    elif one.item.differs is not None:
        word = "differs"
    elif one.is_timed:
        if is_slower:
            word = "slower"
        elif one.high < 1 / (1 + threshold):
            word = "faster"
        elif one.high < 1 + threshold:
            word = "same"
    return replace(one, word=word)


def _log_ratio(old: Sequence[float], new: Sequence[float]) -> tuple[float, float, int]:
    """Return the mean of the logarithms of the blocks' ratios, its standard error and degrees of freedom."""
    logs = [math.log(b / a) for a, b in zip(old, new, strict=True)]
    spread = max(statistics.stdev(logs), _LEAST_SPREAD)
    return statistics.fmean(logs), spread / math.sqrt(len(logs)), len(logs) - 1


def _p_above(mean: float, error: float, freedom: int, limit: float) -> float:
    from scipy import special

    return float(special.stdtr(freedom, -(mean - limit) / error))
