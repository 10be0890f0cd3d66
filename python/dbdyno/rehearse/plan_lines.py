"""A plan as lines of text with measurements; lines that the other side's plan does not have are marked."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TypedDict

from dbdyno.rehearse.causes import read_plan
from dbdyno.snapshot.plans.tree import walk


class PlanLine(TypedDict):
    """A plan node: depth, title, estimated and actual rows, time of all loops [ns], and whether it changed."""

    depth: int
    title: str
    planned: float | None
    rows: float | None
    elapsed_ns: float | None
    changed: bool


def plan_lines(text: str, other: str) -> list[PlanLine]:
    """Return the nodes of a JSON plan from the root down; empty if it cannot be read."""
    plan, against = read_plan(text), read_plan(other)
    if plan is None:
        return []
    known = Counter(node.title for _, node in walk(against.plan)) if against is not None else None
    found: list[PlanLine] = []
    for (depth, node), measured in zip(walk(plan.plan), _nodes(json.loads(text)[0]["Plan"]), strict=False):
        is_new = known is not None and known[node.title] <= 0
        if known is not None:
            known[node.title] -= 1
        loops = _number(measured, "Actual Loops") or 1
        time_ms, rows = _number(measured, "Actual Total Time"), _number(measured, "Actual Rows")
        found.append(
            PlanLine(
                depth=depth,
                title=node.title,
                planned=_number(measured, "Plan Rows"),
                rows=None if rows is None else rows * loops,
                elapsed_ns=None if time_ms is None else time_ms * loops * 1e6,
                changed=is_new,
            )
        )
    return found


def jit_ns(text: str) -> float:
    """Return the time that an executed plan spent on just-in-time compilation [ns]; 0 if there was none."""
    try:
        return float(json.loads(text)[0]["JIT"]["Timing"]["Total"]) * 1e6
    except (ValueError, LookupError, TypeError):
        return 0.0


def _nodes(node: Mapping[str, object]) -> Iterator[Mapping[str, object]]:
    yield node
    children = node.get("Plans", ())
    if isinstance(children, Sequence):
        for child in children:
            yield from _nodes(child)


def _number(node: Mapping[str, object], name: str) -> float | None:
    value = node.get(name)
    return float(value) if isinstance(value, (int, float)) else None
