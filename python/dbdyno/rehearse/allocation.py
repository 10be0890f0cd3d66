"""Allocation of the remaining time: blocks for the statements that weigh most, and for those least certain.

Turns alternate between two aims. One turn goes to the statement that adds most to the uncertainty of the load's total:
its calls times the standard error of its difference. The next goes to an undecided statement: the one for which a
second of measuring decides most of the load's database time. The measuring time that a decision needs is derived only
from the spread of the blocks, and not from which side was faster: if measuring ended as soon as a statement happened to
look good, statements could seem equal that are not. Statements that look slower get no time here, because fresh blocks
confirm them.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from dbdyno.rehearse.decision import is_settled, log_ratios, looks_slower, prior_of
from dbdyno.rehearse.rehearsed_statement import RehearsedStatement
from dbdyno.rehearse.spread import NO_PRIOR, Prior, moderated_error

BLOCKS_MOST = 200
"""Maximum number of blocks of one statement."""
_HALF = 0.5
"""A statement has enough blocks when half the width of its interval is below this share of the threshold."""
_T = 2.1
"""Quantile of Student's t for a 95 % interval, with the usual number of blocks."""
_NEW_PRIOR = 100
"""Number of updated estimates after which the common spread is recomputed."""


@dataclass
class Allocation:
    """Current estimates of each statement, recomputed only for statements with new blocks."""

    items: Sequence[RehearsedStatement]
    threshold: float
    _known: dict[int, tuple[int, float, float]] = field(default_factory=dict)
    _prior: Prior = NO_PRIOR
    _looks: int = 0

    def heaviest(self) -> RehearsedStatement | None:
        """Return the statement that adds most to the uncertainty of the total; None if all are certain enough."""
        found = max(self.items, key=lambda item: self._look(item)[0], default=None)
        return found if found is not None and self._look(found)[0] > 0 else None

    def nearest(self, limit: int) -> list[RehearsedStatement]:
        """Return up to `limit` undecided statements, the one that is most worth measuring first.

        First comes the statement for which a second of measuring decides most of the load's database time.
        """
        worth = sorted(((-self._look(item)[1], at) for at, item in enumerate(self.items)))
        return [self.items[at] for value, at in worth[:limit] if value < 0]

    def _look(self, item: RehearsedStatement) -> tuple[float, float]:
        """Return a statement's part of the total's error, and the load's time decided per second of measuring it."""
        count = len(item.old_ns)
        known = self._known.get(item.statement.number)
        if known is None or known[0] != count:
            if self._looks % _NEW_PRIOR == 0:
                self._prior = prior_of(self.items)
            self._looks += 1
            known = (count, *_probabilities(item, self.threshold, self._prior))
            self._known[item.statement.number] = known
        return known[1], known[2]


def _probabilities(item: RehearsedStatement, threshold: float, prior: Prior) -> tuple[float, float]:
    blocks = item.deciding_blocks
    count = len(blocks.old_ns)
    if item.reason or not 2 <= count < BLOCKS_MOST:
        return 0.0, 0.0
    error = item.statement.calls * statistics.stdev(blocks.differences) / math.sqrt(count)
    if is_settled(item, threshold, prior) or (item.first_blocks is None and looks_slower(item, threshold, prior)):
        return error, 0.0
    spread = moderated_error(log_ratios(blocks), prior)[1] * math.sqrt(count)
    missing = (_T * spread / (_HALF * math.log1p(threshold))) ** 2 - count
    if missing <= 0:
        return error, 0.0
    return error, max(item.statement.total_ns, 1) / (math.ceil(missing) * max(item.block_ns, 2 * item.round_ns))
