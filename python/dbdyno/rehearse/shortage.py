"""Statements for which there was no time: what used the time, and how much more they need."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dbdyno.rehearse.budget import Budget
from dbdyno.rehearse.rehearsed_statement import (
    LEAST_BLOCKS,
    NO_TIME_FOR_ANSWERS,
    NO_TIME_FOR_BLOCKS,
    RehearsedStatement,
)

_MEASURED_SHARE = 0.8
"""Maximum share of the time for answers and first blocks that leaves enough time for the rest of a rehearsal."""


@dataclass(frozen=True, slots=True)
class Shortage:
    """Statements for which there was no time.

    Attributes:
        count: Number of these statements.
        spent: What the time was spent on, in words.
        needed_s: Length of a rehearsal that would reach all of them, at the observed pace [s].
    """

    count: int
    spent: str
    needed_s: int

    @property
    def next_step(self) -> str:
        """Return the next step."""
        return f"give more time (--for {duration_text(self.needed_s)}), or rehearse while nothing else uses the machine"


def shortage_of(items: Sequence[RehearsedStatement], budget: Budget) -> Shortage | None:
    """Return what there was no time for; None if nothing was missed, or the user ended the rehearsal."""
    late = [item for item in items if item.reason in (NO_TIME_FOR_ANSWERS, NO_TIME_FOR_BLOCKS)]
    if not late or budget.stop():
        return None
    answered = [item for item in items if item.trials]
    blocks = sum(len(item.old_ns) for item in items)
    answers_s, blocks_s = budget.spent.get("answers", 0.0), budget.spent.get("blocks", 0.0)
    pace_s = answers_s / max(len(answered), 1) + LEAST_BLOCKS * blocks_s / max(blocks, 1)
    count = len(answered) + sum(item.reason == NO_TIME_FOR_ANSWERS for item in items)
    words = f"the answers of {len(answered)} statements took {answers_s:.0f} s, and {blocks} blocks {blocks_s:.0f} s"
    return Shortage(len(late), words, math.ceil(max(pace_s * count / _MEASURED_SHARE, 1.2 * budget.seconds)))


def duration_text(seconds: int) -> str:
    """Return a time in the form that `--for` accepts, rounded up.

    >>> duration_text(45), duration_text(250)
    ('45s', '5min')
    """
    return f"{seconds}s" if seconds < 100 else f"{math.ceil(seconds / 60)}min"
