"""Comparison of a flow's two plans: conditions that moved, merged or vanished, and joins in another order.

A condition's position is the number of joins and groups below it: if it is lower in the executed plan, it was pushed
down; if a scan applies it, it was merged into the scan. A join tree is shown as its tables in brackets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from dbdyno.flow.step import Flow, Kind, Step, without_projections

SAME, MOVED, MERGED, DROPPED, ADDED = "same", "moved", "merged", "dropped", "added"

MARKS = (MOVED, MERGED, DROPPED, ADDED)
"""Marks of changes; if a step has several, the first one in this order is shown."""


class Change(NamedTuple):
    """Change of one condition, of the joins, or of one kind of step."""

    what: str
    mark: str
    sentence: str


class FlowComparison(NamedTuple):
    """All changes by the optimizer; `rows_out` is the number of rows passed between steps, as written and executed."""

    changes: tuple[Change, ...]
    rows_out: tuple[int | None, int | None]

    def headline(self) -> str:
        """Return a summary of the changes in one sentence."""
        moved = [one for one in self.changes if one.mark != SAME]
        if not moved:
            return "The steps were executed in the order in which they were written."
        words = f"{len(moved)} step{'s' * (len(moved) != 1)} differ{'s' * (len(moved) == 1)} from what was written"
        written, executed = self.rows_out
        if written and executed is not None:
            return f"{words}; {executed:,} rows pass between steps instead of {written:,}."
        return f"{words}."

    def marks(self) -> dict[str, str]:
        """Return the mark of each condition, of the joins and of each kind of step that changed."""
        return {one.what: one.mark for one in self.changes}


class _Place(NamedTuple):
    joins: int
    groups: int
    scan: str


def compare(flow: Flow) -> FlowComparison:
    """Compare the two plans of a flow, and return the changes."""
    written, executed = without_projections(flow.written), without_projections(flow.executed)
    return FlowComparison(tuple(_changes(written, executed)), (rows_out(written), rows_out(executed)))


def rows_out(step: Step) -> int | None:
    """Return the number of rows passed between steps, from the steps that report it; None if no step does."""
    told = [one.rows for one in step.walk() if one is not step and one.rows is not None]
    return sum(told) if told else None


def _changes(written: Step, executed: Step) -> Iterator[Change]:
    before, after = _places(written), _places(executed)
    for atom, place in before.items():
        yield _became(atom, place, after.get(atom))
    for atom, place in after.items():
        if atom not in before:
            where = f"in the scan of {place.scan}" if place.scan else "as a filter"
            yield Change(atom, ADDED, f"{atom}: not written; the optimizer added it {where}.")
    yield from _joins(written, executed)
    yield from _kinds(written, executed)


def _places(step: Step) -> dict[str, _Place]:
    found: dict[str, _Place] = {}
    for one in step.walk():
        if one.kind not in (Kind.FILTER, Kind.SCAN):
            continue
        below = Counter(each.kind for each in one.walk())
        place = _Place(below[Kind.JOIN], below[Kind.GROUP], one.text if one.kind == Kind.SCAN else "")
        for atom in one.atoms:
            found.setdefault(atom, place)
    return found


def _became(atom: str, before: _Place, after: _Place | None) -> Change:
    if after is None:
        return Change(
            atom, DROPPED, f"{atom}: is no longer a separate step: merged into another step, or removed as unnecessary."
        )
    down = [
        f"below {count} {word}{'s' * (count != 1)}"
        for count, word in ((before.joins - after.joins, "join"), (before.groups - after.groups, "group"))
        if count > 0
    ]
    if after.scan and not before.scan:
        more = f", {' and '.join(down)}" if down else ""
        return Change(atom, MERGED, f"{atom}: merged into the scan of {after.scan}{more}.")
    if down:
        return Change(atom, MOVED, f"{atom}: moved down, {' and '.join(down)}.")
    if (before.joins, before.groups) != (after.joins, after.groups):
        return Change(atom, MOVED, f"{atom}: moved up.")
    return Change(atom, SAME, f"{atom}: stays where it was written.")


def join_tree(step: Step) -> str:
    """Return the joins of a plan as its tables in brackets."""
    if step.kind == Kind.SCAN:
        return step.text
    inner = [one for one in (join_tree(each) for each in step.inputs) if one]
    return f"({' x '.join(inner)})" if len(inner) > 1 else "".join(inner)


def _joins(written: Step, executed: Step) -> Iterator[Change]:
    before, after = join_tree(written), join_tree(executed)
    if before == after or " x " not in before:
        return
    if _order_free(written) == _order_free(executed):
        yield Change("joins", MOVED, f"joins: {before} became {after}: sides swapped, the pairs are the same.")
    else:
        yield Change("joins", MOVED, f"joins: written {before}, executed {after}.")


def _order_free(step: Step) -> object:
    if step.kind == Kind.SCAN:
        return step.text
    inner = [_order_free(one) for one in step.inputs]
    return frozenset(inner) if len(inner) > 1 else inner[0] if inner else ""


def _kinds(written: Step, executed: Step) -> Iterator[Change]:
    """Yield changes of sorts, groups, distincts, limits and unions: steps dropped, merged or added."""
    before, after = (Counter(one.kind for one in step.walk()) for step in (written, executed))
    if before["sort"] > after["sort"] and after["top"] > before["top"]:
        yield Change("sort", MERGED, "sort and limit: merged into one step that keeps only the first rows.")
    elif before["sort"] > after["sort"]:
        yield Change("sort", DROPPED, f"sort: {before['sort'] - after['sort']} of {before['sort']} dropped.")
    for kind in ("group", "distinct", "limit", "union"):
        if before[kind] > after[kind] and not (kind == "limit" and after["top"] > before["top"]):
            yield Change(kind, DROPPED, f"{kind}: {before[kind] - after[kind]} of {before[kind]} dropped.")
        elif after[kind] > before[kind] and kind in ("limit", "distinct"):
            yield Change(kind, ADDED, f"{kind}: {after[kind] - before[kind]} added.")
