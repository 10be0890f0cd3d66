"""Decisions on statements, and the total of a rehearsal.

A statement is slower if the whole 95 % interval of its ratio is above the threshold: the null hypothesis is "slower by
at most the threshold", tested at 2.5 % one-sided by Student's t on the logarithms of the ratios of blocks, whose spread
is moderated by the other statements (`spread`). Over all statements, the false discovery rate is kept at 5 % (Benjamini
and Hochberg 1995), with p doubled, so that no statement whose interval reaches below the threshold is called slower. If
there are confirming blocks, only these are tested, and all figures of the statement come from them. A statement is
"same" if it is certainly not slower by more than the threshold.

A statement gets no more time once it is settled: "same" at 0.05 % one-sided, checked at most ten times. That adds at
most 0.5 % to the 2.5 % of the last look (the rule of Haybittle 1971 and Peto 1976).

The total is the sum over statements of calls times the difference of the means. Blocks of several statements may share
a pair of server processes, and then depend on each other; the interval's standard error is that of sums over such
clusters (Liang and Zeger 1986). Its degrees of freedom are those of Welch and Satterthwaite, with statements that share
all their processes counted as one.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from dbdyno.rehearse.rehearsed_statement import LEAST_BLOCKS, Blocks, RehearsedStatement
from dbdyno.rehearse.spread import NO_PRIOR, Prior, common_prior, moderated_error
from dbdyno.stats.distributions import t_cdf, t_quantile

DecisionWord = Literal["slower", "faster", "same", "unclear", "fails", "differs", "not rehearsed"]
LEVEL = 0.95
_SETTLED, _LOOKS = 0.0005, 10
"""Error probability at which a statement is settled, and the maximum number of blocks at which this is checked."""


@dataclass(frozen=True, slots=True)
class Decision:
    """Decision on one statement.

    Attributes:
        item: The statement with its measurements.
        word: The decision.
        ratio: Time on the new side divided by that on the old side; NaN if unknown.
        low: Lower end of its 95 % interval.
        high: Upper end.
        old_ns: Mean time on the old side [ns].
        new_ns: Mean time on the new side [ns].
        added_ns: What the difference adds to the load, calls times difference [ns].
        p: p value of the hypothesis "slower by at most the threshold", doubled.
    """

    item: RehearsedStatement
    word: DecisionWord
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
    """Database time of the decided statements on both sides.

    Attributes:
        old_ns: Time on the old side [ns].
        ratio: Time on the new side divided by that on the old side, with its 95 % interval.
        low: Lower end.
        high: Upper end.
        judged: Share of the judged statements in the load's database time.
    """

    old_ns: float
    ratio: float
    low: float
    high: float
    judged: float


def looks_slower(item: RehearsedStatement, threshold: float, prior: Prior = NO_PRIOR) -> bool:
    """Return True if the mean is slower by more than half the threshold, so that confirming blocks are needed."""
    if len(item.old_ns) < LEAST_BLOCKS:
        return False
    mean, error, freedom = moderated_error(log_ratios(item.deciding_blocks), prior)
    return mean > math.log1p(threshold / 2) and _p_above(mean, error, freedom, math.log1p(threshold)) < 0.2


def is_settled(item: RehearsedStatement, threshold: float, prior: Prior = NO_PRIOR) -> bool:
    """Return True if a statement is so certainly not slower that it needs no more blocks."""
    blocks = item.deciding_blocks
    if not LEAST_BLOCKS <= len(blocks.old_ns) < LEAST_BLOCKS + _LOOKS:
        return False
    mean, error, freedom = moderated_error(log_ratios(blocks), prior)
    return 1 - _p_above(mean, error, freedom, math.log1p(threshold)) < _SETTLED


def prior_of(items: Iterable[RehearsedStatement]) -> Prior:
    """Return the statements' common spread, without confirming blocks, which only selected statements have."""
    return common_prior(log_ratios(item.initial_blocks) for item in items if not item.reason)


def decide(items: Sequence[RehearsedStatement], threshold: float) -> list[Decision]:
    """Return the decision on each statement, in the order of `items`."""
    prior = prior_of(items)
    found = [_decide_by_times(item, threshold, prior) for item in items]
    timed = sorted((one.p, at) for at, one in enumerate(found) if one.is_timed)
    slower: set[int] = set()
    for rank, (p, _) in enumerate(timed, 1):
        if p <= (1 - LEVEL) * rank / len(timed):
            slower = {at for _, at in timed[:rank]}
    return [_with_words(one, at in slower, threshold) for at, one in enumerate(found)]


def total(decisions: Sequence[Decision]) -> Total:
    """Return the total database time of the decided statements on both sides."""
    judged = [one for one in decisions if one.is_timed]
    old_ns = sum(one.item.statement.calls * one.old_ns for one in judged)
    if not judged or old_ns <= 0:
        return Total(0.0, math.nan, math.nan, math.nan, 0.0)
    added = sum(one.added_ns for one in judged)
    half = _total_half(judged)
    whole = sum(one.item.statement.total_ns for one in decisions)
    known = sum(one.item.statement.total_ns for one in judged)
    ratio = 1 + added / old_ns
    return Total(old_ns, ratio, ratio - half / old_ns, ratio + half / old_ns, known / whole if whole else 1.0)


def _total_half(judged: Sequence[Decision]) -> float:
    """Return half the width of the 95 % interval of the sum of all contributions [ns].

    The degrees of freedom are (sum of V)^2 / sum over clusters of (sum over their statements of V / sqrt(n (n-1)))^2,
    where V is the variance of what a statement adds, and n the number of its blocks. Where no statements share
    processes that is Welch and Satterthwaite's sum of V^2 / (n-1); where all share them it is n-1.
    """
    sums: dict[int, float] = {}
    variances: dict[int, float] = {}
    whole = 0.0
    for one in judged:
        blocks = one.item.deciding_blocks
        apart, count = blocks.differences, len(blocks.processes)
        mean, pairs = statistics.fmean(apart), math.sqrt(count * (count - 1))
        variance = (one.item.statement.calls * statistics.stdev(apart)) ** 2 / count
        whole += variance
        for processes, value in zip(blocks.processes, apart, strict=True):
            weighed = one.item.statement.calls * (value - mean) / pairs
            sums[processes] = sums.get(processes, 0.0) + weighed
            variances[processes] = variances.get(processes, 0.0) + variance / pairs
    if whole <= 0:
        return 0.0
    freedom = whole**2 / sum(value**2 for value in variances.values())
    error = math.sqrt(sum(value**2 for value in sums.values()))
    return t_quantile(freedom, 0.5 + LEVEL / 2) * error


def _decide_by_times(item: RehearsedStatement, threshold: float, prior: Prior) -> Decision:
    if item.reason or len(item.old_ns) < LEAST_BLOCKS:
        return Decision(item, "not rehearsed")
    blocks = item.deciding_blocks
    mean, error, freedom = moderated_error(log_ratios(blocks), prior)
    return Decision(
        item,
        "unclear",
        *_interval(mean, error, freedom, LEVEL),
        statistics.fmean(blocks.old_ns),
        statistics.fmean(blocks.new_ns),
        item.statement.calls * statistics.fmean(blocks.differences),
        min(1.0, 2 * _p_above(mean, error, freedom, math.log1p(threshold))),
    )


def interval(old: Sequence[float], new: Sequence[float], level: float = LEVEL) -> tuple[float, float, float]:
    """Return the ratio of block times, new to old, with its interval (95 % by default)."""
    return _interval(*moderated_error([math.log(b / a) for a, b in zip(old, new, strict=True)]), level)


def _interval(mean: float, error: float, freedom: float, level: float) -> tuple[float, float, float]:
    half = t_quantile(freedom, 0.5 + level / 2) * error
    return math.exp(mean), math.exp(mean - half), math.exp(mean + half)


def log_ratios(blocks: Blocks) -> list[float]:
    """Return, for each block, the logarithm of the ratio of the sides' times, new to old."""
    return [math.log(new / old) for old, new in zip(blocks.old_ns, blocks.new_ns, strict=True)]


def _with_words(decision: Decision, is_slower: bool, threshold: float) -> Decision:
    from dataclasses import replace

    word: DecisionWord = decision.word
    if decision.item.failing_trial is not None:
        word = "fails"
    elif decision.item.differing_trial is not None:
        word = "differs"
    elif decision.is_timed:
        if is_slower:
            word = "slower"
        elif decision.high < 1 / (1 + threshold):
            word = "faster"
        elif decision.high < 1 + threshold:
            word = "same"
    return replace(decision, word=word)


def _p_above(mean: float, error: float, freedom: float, limit: float) -> float:
    return t_cdf(freedom, -(mean - limit) / error)
