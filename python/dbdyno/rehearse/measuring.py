"""Measurement of all statements within the time budget: first blocks for each, then more for undecided ones."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from dbdyno.rehearse.allocation import Allocation
from dbdyno.rehearse.blocks import TURNS_LEAST, new_processes, run_block
from dbdyno.rehearse.budget import Budget
from dbdyno.rehearse.decision import is_settled, prior_of
from dbdyno.rehearse.rehearsed_statement import LEAST_BLOCKS, RehearsedStatement
from dbdyno.rehearse.side import Side

FIRST_BLOCKS = 3
"""Number of blocks that each statement gets if there is time."""
CONFIRMING, CONFIRMING_MOST = 8, 16
"""Minimum and maximum number of fresh blocks for a statement that looks slower."""
_BEGIN_S, _SINGLE_SHARE, _SHARING = 0.02, 0.3, 12
"""Time to start server processes on both sides [s], the share of the time budget below which the first blocks each
get their own pair of processes, and the number of statements that share a pair otherwise."""
_BLOCK_SHARE, _FIRST_SHARE = 0.02, 0.2
"""Maximum shares of the time budget for one block, and for the first blocks of all statements together."""
BLOCK_NS_MOST = 500_000_000
"""Maximum length of a block that repeats executions, both sides together [ns]."""
_LATEST_SHARE = 0.95
"""Share of the time budget after which no more of a statement's first `LEAST_BLOCKS` blocks are started."""


@dataclass(frozen=True, slots=True)
class Bench:
    """The two sides of a measurement, its time budget and its random generator."""

    old: Side
    new: Side
    budget: Budget
    dice: random.Random
    threshold: float

    def run_blocks(self, items: Iterable[RehearsedStatement]) -> None:
        """Run a block of each statement in a new pair of server processes."""
        processes = new_processes(self.old, self.new)
        for at, item in enumerate(items):
            run_block(item, self.old, self.new, self.dice, processes, is_first=at == 0)


def measure(items: Sequence[RehearsedStatement], bench: Bench, share: float) -> None:
    """Measure first blocks of each statement, then more of undecided ones, until this share of the time has passed."""
    if any(not item.old_ns for item in items):
        _measure_first(items, bench, share)
    _settle(items, bench, share)


def confirm(items: Iterable[RehearsedStatement], bench: Bench, share: float) -> None:
    """Measure fresh blocks of statements that look slower, heaviest first; only these blocks decide.

    Once each statement has the minimum number of blocks, this ends when the share of the time has passed.
    """
    chosen = sorted((item for item in items if not item.reason), key=lambda item: -item.statement.total_ns)
    for item in chosen:
        item.first_blocks = len(item.old_ns)
    for number in range(CONFIRMING_MOST):
        for at, item in enumerate(chosen, 1):
            if bench.budget.is_over(share if number >= CONFIRMING else 1.0):
                return
            bench.budget.show(f"confirming {at} of {len(chosen)}, block {number + 1}")
            bench.run_blocks([item])


def _measure_first(items: Sequence[RehearsedStatement], bench: Bench, share: float) -> None:
    """Measure the first blocks of each statement, heaviest first.

    The first round ends early enough that each of the other required rounds can take as long, so that every statement
    that it reaches can be judged, and that half of the time remains to settle the heaviest statements. It leaves out
    the lightest statements first.
    """
    budget = bench.budget
    _size_blocks(items, budget)
    sharing = _statements_per_pair(items, budget)
    first_share = budget.passed + (_LATEST_SHARE - budget.passed) / (2 * LEAST_BLOCKS)
    reached = sorted(items, key=lambda item: -item.statement.total_ns)
    for number in range(FIRST_BLOCKS):
        end = first_share if number == 0 else _LATEST_SHARE if number < LEAST_BLOCKS else share
        for at, group in enumerate(_groups(reached, sharing)):
            if budget.is_over(end):
                break
            budget.show(f"block {number + 1} of {FIRST_BLOCKS}, statement {at * sharing + 1} of {len(reached)}")
            bench.dice.shuffle(group)
            bench.run_blocks(group)
        reached = [item for item in reached if item.old_ns]
        if number + 1 >= LEAST_BLOCKS:
            prior = prior_of(items)
            reached = [item for item in reached if not is_settled(item, bench.threshold, prior)]
        bench.dice.shuffle(reached)


def _settle(items: Sequence[RehearsedStatement], bench: Bench, share: float) -> None:
    """Spend time alternately on the uncertainty of the total and on undecided statements."""
    allocation = Allocation([item for item in items if item.old_ns], bench.threshold)
    sharing = _statements_per_pair(items, bench.budget)
    is_for_total = True
    while not bench.budget.is_over(share):
        heaviest = allocation.heaviest() if is_for_total else None
        chosen = [heaviest] if heaviest is not None else allocation.nearest(sharing)
        is_for_total = not is_for_total
        if not chosen:
            if (heaviest := allocation.heaviest()) is None:
                return
            chosen = [heaviest]
        bench.budget.show(f"block {len(chosen[0].old_ns) + 1} of statement {chosen[0].statement.number}")
        bench.run_blocks(chosen)


def _size_blocks(items: Sequence[RehearsedStatement], budget: Budget) -> None:
    """Set the block length of each statement: half of the time is shared equally, half by weight."""
    whole_ns = sum(item.statement.total_ns for item in items) or 1
    for item in items:
        share = 0.5 / len(items) + 0.5 * item.statement.total_ns / whole_ns
        item.block_ns = 1e9 * budget.seconds * min(_BLOCK_SHARE, _FIRST_SHARE * share / FIRST_BLOCKS)
        item.block_ns = min(item.block_ns, BLOCK_NS_MOST)
        mean_ns = sum(one.elapsed_ns for one in item.trials) / len(item.trials)
        item.sets_most = max(1, int(item.block_ns / (TURNS_LEAST * max(mean_ns, 1))))
        item.round_ns = mean_ns * len(item.timed_sets) / 2


def _statements_per_pair(items: Sequence[RehearsedStatement], budget: Budget) -> int:
    """Return how many statements share a pair of server processes per block; 1 if there is enough time."""
    whole_s = FIRST_BLOCKS * sum(item.block_ns / 1e9 + _BEGIN_S for item in items)
    return 1 if whole_s < _SINGLE_SHARE * budget.seconds else _SHARING


def _groups(items: Sequence[RehearsedStatement], size: int) -> Iterator[list[RehearsedStatement]]:
    for at in range(0, len(items), size):
        yield list(items[at : at + size])
