"""A statement of a rehearsal with all its measurements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from dbdyno.rehearse.answer import Answer, Difference
from dbdyno.rehearse.generic_plans import PlanChoice
from dbdyno.rehearse.statement import Parameters, Statement

LEAST_BLOCKS = 3
"""Minimum number of blocks for a decision on a statement."""
CUSTOM_PLANS = 5
"""Number of executions after which PostgreSQL may choose a generic plan for a prepared statement."""
FAILS_ON_OLD = "it fails on the old server, too"
"""Beginning of the reason why a statement that fails on both sides is left out."""
NO_TIME_FOR_ANSWERS, NO_TIME_FOR_BLOCKS = "there was no time to run it", "too little time for enough blocks"
"""Reasons why a statement could not be decided."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One set of values on both sides.

    Attributes:
        parameters: The values.
        old: Answer of the old side.
        new: Answer of the new side.
        difference: How the two answers differ; empty if they are equal.
        plans: Plans of both sides as JSON; empty if unknown.
        elapsed_ns: Time of the first executions, both sides together [ns].
    """

    parameters: Parameters
    old: Answer
    new: Answer
    difference: Difference
    plans: tuple[str, str] = ("", "")
    elapsed_ns: int = 0


@dataclass(frozen=True, slots=True)
class Blocks:
    """For each block: the time of an execution on both sides [ns], and the number of the pair of server processes."""

    old_ns: Sequence[float]
    new_ns: Sequence[float]
    processes: Sequence[int]

    @property
    def differences(self) -> list[float]:
        """Return, for each block, the time on the new side minus that on the old side [ns]."""
        return [new - old for old, new in zip(self.old_ns, self.new_ns, strict=True)]


@dataclass
class RehearsedStatement:
    """A statement with all its measurements.

    Attributes:
        statement: The statement.
        trials: One per set of values.
        undetermined: Why its answers may legitimately differ, if they differ; empty if they are equal, or must be
            equal.
        old_ns: Time of an execution on the old side by block [ns].
        new_ns: The same on the new side.
        first_blocks: Number of blocks before the confirming ones; None if there are no confirming ones.
        reason: Why it could not be judged; empty if it could.
        round_ns: Least time that a side took for all timed sets of values [ns].
        sets_most: Maximum number of sets of values that are timed, which limits the blocks of a slow statement.
        block_ns: Time for which a block repeats the executions, both sides together [ns].
        processes: Number of the pair of server processes by block; statements whose blocks share one depend on each
            other.
        old_first_ns: Time of the first execution in a new server process of the old side [ns].
        new_first_ns: The same on the new side.
        undo: True to undo each execution at once, because it may change or lock rows; else all are undone at a block's
            end.
        choices: Kinds of plans that both sides execute, if it is a prepared statement that became slower or faster.
    """

    statement: Statement
    trials: list[Trial] = field(default_factory=list)
    undetermined: str = ""
    old_ns: list[float] = field(default_factory=list)
    new_ns: list[float] = field(default_factory=list)
    first_blocks: int | None = None
    reason: str = ""
    round_ns: float = math.inf
    sets_most: int = 1_000
    block_ns: float = 20e6
    processes: list[int] = field(default_factory=list)
    old_first_ns: list[float] = field(default_factory=list)
    new_first_ns: list[float] = field(default_factory=list)
    undo: bool = True
    choices: tuple[PlanChoice, PlanChoice] | None = None

    @property
    def timed_sets(self) -> list[Parameters]:
        """Return at most `sets_most` sets of values, evenly spread, that succeeded on both sides and are timed."""
        good = [one.parameters for one in self.trials if not one.old.sqlstate and not one.new.sqlstate]
        count = min(len(good), self.sets_most)
        return [good[(2 * at + 1) * len(good) // (2 * count)] for at in range(count)]

    @property
    def initial_blocks(self) -> Blocks:
        """Return the blocks before the confirming ones."""
        end = self.first_blocks
        return Blocks(self.old_ns[:end], self.new_ns[:end], self.processes[:end])

    @property
    def deciding_blocks(self) -> Blocks:
        """Return the blocks that the decision uses: the confirming ones if there are enough, else all."""
        start = self.first_blocks or 0
        if len(self.old_ns) - start < LEAST_BLOCKS:
            start = 0
        return Blocks(self.old_ns[start:], self.new_ns[start:], self.processes[start:])

    @property
    def failing_trial(self) -> Trial | None:
        """Return the first set of values that fails on the new side only."""
        return next((one for one in self.trials if one.new.sqlstate and not one.old.sqlstate), None)

    @property
    def differing_trial(self) -> Trial | None:
        """Return the first set of values whose answer differs on the new side."""
        return next((one for one in self.trials if one.difference not in ("", "error")), None)
