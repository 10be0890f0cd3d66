"""Execution plans with their row counts, from the STAT lines of a trace.

A plan is written when its cursor is closed, at the end of its first execution, or after each execution; its figures are
sums over the executions since the cursor was opened. Plans of the same shape are merged: row counts are given for the
first plan, and as mean and maximum of all.
"""

from __future__ import annotations

from typing import Literal, TypedDict, cast

from dbdyno.trace.source import Traces

SummedFigure = Literal["rows", "cr", "pr", "pw", "time_us", "starts"]


class Line(TypedDict):
    """A line of a plan as written; figures are sums over executions and include the lines below."""

    file: int
    cursor: int
    line: int
    id: int
    parent: int
    operation: str
    partition: str | None
    object_id: int | None
    plan_hash: int | None
    rows: int | None
    cr: int | None
    pr: int | None
    pw: int | None
    time_us: int | None
    starts: int | None


class MergedLine(TypedDict):
    """A line of merged plans of the same shape; figures are means and include the lines below."""

    id: int
    operation: str
    partition: str | None
    object_id: int | None
    rows_first: int
    rows_max: int
    rows_mean: float | None
    cr: float | None
    pr: float | None
    pw: float | None
    time_us: float | None
    starts: float | None


class PlanLine(MergedLine):
    """A merged line with its level in the tree; `self_time_us` excludes the lines below."""

    level: int
    self_time_us: float | None


class Plan(TypedDict):
    """Merged plans of the same shape; `seen` is the number of plans that were merged."""

    plan_hash: int | None
    seen: int
    lines: list[PlanLine]


def plans_of(traces: Traces, key: str) -> list[Plan]:
    """Return the plans of a statement, most frequent shape first; `key` is its key in the table `keys`."""
    traces.connection.execute("create or replace temp table shown as select $1::varchar as key", [key])
    return plans_by_key(traces).get(key, [])


def plans_by_key(traces: Traces) -> dict[str, list[Plan]]:
    """Return the plans of all statements in the table `shown`, by key."""
    rows = traces.rows(
        """
        select k.key as of, p.* from plans p join keys k using (statement)
        where k.key in (select key from shown) order by p.file, p.cursor, p.line
        """
    )
    lines: dict[str, list[Line]] = {}
    for row in rows:
        lines.setdefault(row.pop("of"), []).append(cast("Line", row))
    return {key: _shapes(own) for key, own in lines.items()}


def _shapes(rows: list[Line]) -> list[Plan]:
    """Return the lines of a statement's plans as one plan per shape."""
    shapes: dict[tuple[tuple[int, int, str], ...], list[list[Line]]] = {}
    for plan in _instances(rows):
        shape = tuple((line["id"], line["parent"], line["operation"]) for line in plan)
        shapes.setdefault(shape, []).append(plan)
    plans = [_merge_plans(seen) for seen in shapes.values()]
    return sorted(plans, key=lambda plan: -plan["seen"])


def _instances(rows: list[Line]) -> list[list[Line]]:
    """Group lines into plans: a new plan begins where the line number does not increase."""
    plans: list[list[Line]] = []
    before: Line | None = None
    for row in rows:
        goes_on = (
            before is not None
            and (before["file"], before["cursor"]) == (row["file"], row["cursor"])
            and row["id"] > before["id"]
        )
        if not goes_on:
            plans.append([])
        plans[-1].append(row)
        before = row
    return plans


def _merge_plans(seen: list[list[Line]]) -> Plan:
    """Merge plans of the same shape into one, its lines in tree order."""
    first = seen[0]
    lines: dict[int, MergedLine] = {}
    for at, line in enumerate(first):
        every = [plan[at] for plan in seen]
        rows = [int(each["rows"] or 0) for each in every]
        lines[line["id"]] = {
            "id": line["id"],
            "operation": line["operation"],
            "partition": line["partition"],
            "object_id": line["object_id"],
            "rows_first": rows[0],
            "rows_max": max(rows),
            "rows_mean": _mean(every, "rows"),
            "cr": _mean(every, "cr"),
            "pr": _mean(every, "pr"),
            "pw": _mean(every, "pw"),
            "time_us": _mean(every, "time_us"),
            "starts": _mean(every, "starts"),
        }
    children: dict[int, list[int]] = {}
    for line in first:
        parent = line["parent"] if line["parent"] in lines and line["parent"] != line["id"] else 0
        children.setdefault(parent, []).append(line["id"])
    ordered: list[PlanLine] = []
    _walk(0, -1, children, lines, ordered)
    hashes = [line["plan_hash"] for line in first if line["plan_hash"]]
    return {"plan_hash": hashes[0] if hashes else None, "seen": len(seen), "lines": ordered}


def _walk(
    at: int,
    level: int,
    children: dict[int, list[int]],
    lines: dict[int, MergedLine],
    ordered: list[PlanLine],
) -> None:
    if at in lines:
        line = lines[at]
        below = [lines[child]["time_us"] or 0 for child in children.get(at, [])]
        own = None if line["time_us"] is None else line["time_us"] - sum(below)
        ordered.append({**line, "level": level, "self_time_us": own})
    for child in children.get(at, []):
        _walk(child, level + 1, children, lines, ordered)


def _mean(lines: list[Line], name: SummedFigure) -> float | None:
    known = [value for line in lines if (value := line[name]) is not None]
    return sum(known) / len(known) if known else None
