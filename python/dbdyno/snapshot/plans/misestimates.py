"""Search for the plan node at which row estimates begin to be wrong, while the nodes below it are right.

    Hash Join  (rows=10) (actual rows=9000)          wrong, because of the scan below
      ->  Seq Scan on pairs  (rows=1) (actual rows=300)    the first wrong one: its statistics mislead the planner
      ->  Seq Scan on kinds  (rows=30) (actual rows=30)

Some nodes are not examined, because they do not count matching rows: bitmap nodes without a table, nodes that write,
and the inner side of a merge join, which is read repeatedly. Fewer rows than estimated are ignored if a node above may
stop early (a limit, a merge join, EXISTS).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dbdyno.snapshot.plans.tree import Node

FACTOR, LEAST_ROWS = 10.0, 100.0
"""Smallest factor for an estimate to count as wrong, and fewest rows (the larger count, summed over all loops)."""
_COUNTLESS = frozenset(("Bitmap Index Scan", "BitmapAnd", "BitmapOr", "Insert", "Update", "Delete", "Merge"))
_STOPS = ("Limit", "WindowAgg")


@dataclass(frozen=True, slots=True)
class NodeNumbers:
    """Rows of a node per loop, estimated and actual (None if not counted), and its time.

    `ms` is the time per loop in milliseconds, including all nodes below; None if it was not measured.
    """

    planned: int
    found: float | None
    loops: int
    ms: float | None = None


@dataclass(frozen=True, slots=True)
class Misestimate:
    """The node at which a plan's row estimates begin to be wrong.

    Attributes:
        node: Its number from 0 in pre-order (each node before those below it).
        planned: Estimated rows per loop.
        found: Actual rows per loop.
        loops: Number of loops.
    """

    node: int
    planned: int
    found: float
    loops: int


def misestimate_factor(planned: float, found: float) -> float:
    """Return the factor (at least 1) between two row counts; less than one row counts as one, as in the planner."""
    a, b = max(planned, 1.0), max(found, 1.0)
    return max(a / b, b / a)


def first_misestimate(tree: Node, numbers: Sequence[NodeNumbers]) -> Misestimate | None:
    """Return the node with the largest factor among misestimated nodes with none below; None if all are right."""
    places = list(_places(tree))
    if len(places) != len(numbers):
        return None  # a literal looks like a node, so numbers cannot be matched
    wrong = {at for at, place in enumerate(places) if _is_wrong(place, numbers[at])}
    first = [at for at in wrong if not any(at < other <= places[at].last for other in wrong)]
    best = max(
        first, key=lambda at: (misestimate_factor(numbers[at].planned, numbers[at].found or 0.0), -at), default=None
    )
    if best is None:
        return None
    return Misestimate(best, numbers[best].planned, numbers[best].found or 0.0, numbers[best].loops)


@dataclass(slots=True)
class _Place:
    """Position of a node in a plan whose nodes are numbered from the root down.

    Attributes:
        kind: The node's type.
        stops: True if a node above may stop it early.
        again: True if the node is on the inner side of a merge join, which is read repeatedly.
        last: Number of the last node below it.
    """

    kind: str
    stops: bool
    again: bool
    last: int


def _places(tree: Node) -> Iterator[_Place]:
    found: list[_Place] = []

    def add(node: Node, stops: bool, again: bool) -> None:
        own = _Place(node.kind, stops, again, 0)
        found.append(own)
        merges = node.kind.startswith("Merge ") and node.kind.endswith("Join")
        early = stops or merges or node.kind in _STOPS or "Semi" in node.kind or "Anti" in node.kind
        for at, child in enumerate(node.children):
            inner = again or (at > 0 and merges)
            add(child, early or bool(child.label), inner)
        own.last = len(found) - 1

    add(tree, stops=False, again=False)
    yield from found


def _is_wrong(place: _Place, numbers: NodeNumbers) -> bool:
    if numbers.found is None or not numbers.loops or place.again:
        return False
    if (
        place.kind.removeprefix("Parallel ") in _COUNTLESS
        or misestimate_factor(numbers.planned, numbers.found) < FACTOR
    ):
        return False
    return max(numbers.planned, numbers.found) * numbers.loops >= LEAST_ROWS and (
        numbers.found > numbers.planned or not place.stops
    )
