"""Execution plans with their row counts, from the STAT lines of a trace.

A plan is written when its cursor is closed, at the end of its first execution, or after each one,
and its figures add up over the executions since the cursor was opened. Plans of one shape are laid
together: rows as the first one, the mean and the largest of them saw.
"""

from __future__ import annotations

from typing import Any

from dbdyno.trace.source import Traces

_SUMMED = ("rows", "cr", "pr", "pw", "time_us")


def plans_of(traces: Traces, key: str) -> list[dict[str, object]]:
    """The plans of a statement (table `keys` says which), the most frequent shape first.

    Per plan: `plan_hash`, `seen` (how often it was written), `lines` in the order of the tree, each
    with `level`, `operation`, `rows_first`, `rows_mean`, `rows_max`, mean `cr`, `pr`, `pw`,
    `time_us` (all with what lies below), `self_time_us` (without it), `starts`, `object_id`.
    """
    traces.connection.execute("create or replace temp table shown as select $1::varchar as key", [key])
    return plans_by_key(traces).get(key, [])


def plans_by_key(traces: Traces) -> dict[str, list[dict[str, Any]]]:
    """The same for all statements of the table `shown`, by key."""
    rows = traces.rows(
        """
        select k.key as of, p.* from plans p join keys k using (statement)
        where k.key in (select key from shown) order by p.file, p.cursor, p.line
        """
    )
    lines: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        lines.setdefault(row.pop("of"), []).append(row)
    return {key: _shapes(rows) for key, rows in lines.items()}


def _shapes(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The lines of a statement's plans as one plan per shape."""
    shapes: dict[tuple[Any, ...], list[list[dict[str, Any]]]] = {}
    for plan in _instances(rows):
        shape = tuple((line["id"], line["parent"], line["operation"]) for line in plan)
        shapes.setdefault(shape, []).append(plan)
    plans = [_together(seen) for seen in shapes.values()]
    return sorted(plans, key=lambda plan: -plan["seen"])


def _instances(rows: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Lines as plans: one begins where the number does not rise."""
    plans: list[list[dict[str, Any]]] = []
    before: dict[str, Any] | None = None
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


def _together(seen: list[list[dict[str, Any]]]) -> dict[str, Any]:
    """Plans of one shape as one, its lines in the order of the tree."""
    first = seen[0]
    lines = {}
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
            **{f"{n}_mean" if n == "rows" else n: _mean(every, n) for n in _SUMMED},
            "starts": _mean(every, "starts"),
        }
    children: dict[int, list[int]] = {}
    for line in first:
        parent = line["parent"] if line["parent"] in lines and line["parent"] != line["id"] else 0
        children.setdefault(parent, []).append(line["id"])
    ordered: list[dict[str, Any]] = []
    _walk(0, -1, children, lines, ordered)
    hashes = [line["plan_hash"] for line in first if line["plan_hash"]]
    return {"plan_hash": hashes[0] if hashes else None, "seen": len(seen), "lines": ordered}


def _walk(
    at: int,
    level: int,
    children: dict[int, list[int]],
    lines: dict[int, dict[str, Any]],
    ordered: list[dict[str, Any]],
) -> None:
    if at in lines:
        line = lines[at]
        below = [lines[child]["time_us"] or 0 for child in children.get(at, [])]
        own = None if line["time_us"] is None else line["time_us"] - sum(below)
        ordered.append({**line, "level": level, "self_time_us": own})
    for child in children.get(at, []):
        _walk(child, level + 1, children, lines, ordered)


def _mean(lines: list[dict[str, Any]], name: str) -> float | None:
    known = [line[name] for line in lines if line[name] is not None]
    return sum(known) / len(known) if known else None
