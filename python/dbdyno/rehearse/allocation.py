"""Allocation of the time that is left after the first blocks: to what weighs most, and to what is nearly certain.

Every other turn goes to the statement that is least certain of the load's total, its calls times the standard error of
its difference. The turns between go to the unclear statement that needs the least time until it is certain that it is
not slower; statements that look slower get no time here, because fresh blocks confirm them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from dbdyno.rehearse.decision import interval
from dbdyno.rehearse.rehearsed import Rehearsed

BLOCKS_MOST = 200
"""Number of blocks after which a statement gets no more."""
_MULTIPLE_MOST = 8
"""Multiple of a statement's blocks up to which it is worth trying to make it certain."""


@dataclass
class Allocation:
    """What is known of each statement; computed anew only for one that has more blocks than at the last look."""

    items: Sequence[Rehearsed]
    threshold: float
    _known: dict[int, tuple[int, float, float]] = field(default_factory=dict)

    def heaviest(self) -> Rehearsed | None:
        """Return the statement that adds most to the uncertainty of the total; None if all are certain enough."""
        found = max(self.items, key=lambda item: self._look(item)[0], default=None)
        return found if found is not None and self._look(found)[0] > 0 else None

    def nearest(self, most: int) -> list[Rehearsed]:
        """Return the unclear statements that need the least time until they are certain, at most so many."""
        times = sorted(((self._look(item)[1], at) for at, item in enumerate(self.items)))
        return [self.items[at] for time, at in times[:most] if math.isfinite(time)]

    def _look(self, item: Rehearsed) -> tuple[float, float]:
        """Return the standard error of what a statement adds to the total, and the time until it is certain [ns]."""
        count = len(item.old_ns)
        known = self._known.get(item.statement.number)
        if known is None or known[0] != count:
            known = (count, *_looked(item, self.threshold))
            self._known[item.statement.number] = known
        return known[1], known[2]


def _looked(item: Rehearsed, threshold: float) -> tuple[float, float]:
    count = len(item.old_ns)
    if item.reason or not 2 <= count < BLOCKS_MOST:
        return 0.0, math.inf
    old, new = np.array(item.old_ns), np.array(item.new_ns)
    error = item.statement.calls * float(np.std(new - old, ddof=1)) / math.sqrt(count)
    ratio, _, high = interval(item.old_ns, item.new_ns)
    room, half = math.log1p(threshold) - math.log(ratio), math.log(high / ratio)
    if room >= half or room <= 0:
        return error, math.inf
    needed = count * (half / room) ** 2
    if needed > _MULTIPLE_MOST * count:
        return error, math.inf
    return error, (needed - count) * float(np.mean(old + new)) * max(sum(item.inner), 1)
