"""Choice of tables and indexes for a fast device of a given size: a knapsack problem, solved exactly if feasible.

>>> chosen, most = pack([(6, 60.0), (5, 48.0), (5, 48.0)], 10)
>>> chosen, most
((1, 2), 96.0)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

STEPS = 200_000
"""Maximum number of branches to examine; after that, the best choice found so far is used."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A table's heap or an index: its size, and blocks read from outside shared_buffers in the interval."""

    name: str
    kind: str
    bytes: int
    reads: int
    database: str = ""


@dataclass(frozen=True, slots=True)
class FastDevice:
    """The space available on the fast device."""

    bytes: int


def pack(items: Sequence[tuple[int, float]], room: int, steps: int = STEPS) -> tuple[tuple[int, ...], float]:
    """Return the positions of items that fit and have the largest total gain, and an upper bound on any choice's gain.

    Branch and bound by gain per size. If `steps` is too small for a complete search, the gain of the choice may be
    below the bound; otherwise it equals the bound.

    Args:
        items: size and gain of each item.
        room: the space available.
        steps: maximum number of branches to examine.
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
        if at == len(order) or gain + _fractional_gain(items, order[at:], left) <= best_gain:
            continue
        size, more = items[order[at]]
        stack.append((at + 1, left, gain, taken))
        if size <= left:
            stack.append((at + 1, left - size, gain + more, (*taken, order[at])))
    return tuple(sorted(best)), _fractional_gain(items, order, room)


def _fractional_gain(items: Sequence[tuple[int, float]], order: Sequence[int], room: int) -> float:
    """Return an upper bound of the gain: the gain if the first item that does not fit could be divided."""
    total = 0.0
    for at in order:
        size, gain = items[at]
        if size > room:
            return total + gain * room / size
        room -= size
        total += gain
    return total
