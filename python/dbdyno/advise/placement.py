"""Which tables and indexes to put on a fast device of a given size: a knapsack, solved exactly where that is feasible.

>>> chosen, most = pack([(6, 60.0), (5, 48.0), (5, 48.0)], 10)
>>> chosen, most
((1, 2), 96.0)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

STEPS = 200_000
"""Branches to look at before the best that was found has to do."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A table's heap or an index: its size, and blocks read from outside of shared_buffers in the interval."""

    name: str
    kind: str
    bytes: int
    reads: int
    database: str = ""


@dataclass(frozen=True, slots=True)
class FastDevice:
    """The room to fill."""

    bytes: int


def pack(items: Sequence[tuple[int, float]], room: int, steps: int = STEPS) -> tuple[tuple[int, ...], float]:
    """The items `(size, gain)` of the largest gain that fit, by index, and the upper bound of any choice's gain.

    Branch and bound by gain per size. Where the steps do not suffice the gain of the choice is below the bound;
    otherwise it is the bound.
    """
    order = sorted(
        (at for at, (size, gain) in enumerate(items) if gain > 0 and size <= room),
        key=lambda at: -items[at][1] / max(items[at][0], 1),
    )
    best: tuple[int, ...] = ()
    best_gain = 0.0
    stack: list[tuple[int, int, float, tuple[int, ...]]] = [(0, room, 0.0, ())]
    for _ in range(steps):
        if not stack:
            return tuple(sorted(best)), best_gain
        at, left, gain, taken = stack.pop()
        if gain > best_gain:
            best, best_gain = taken, gain
        if at == len(order) or gain + _bound(items, order[at:], left) <= best_gain:
            continue
        size, more = items[order[at]]
        stack.append((at + 1, left, gain, taken))
        if size <= left:
            stack.append((at + 1, left - size, gain + more, (*taken, order[at])))
    return tuple(sorted(best)), _bound(items, order, room)


def _bound(items: Sequence[tuple[int, float]], order: Sequence[int], room: int) -> float:
    """The gain if the last item could be cut."""
    total = 0.0
    for at in order:
        size, gain = items[at]
        if size > room:
            return total + gain * room / size
        room -= size
        total += gain
    return total
