"""The statements that changed between two sets of traces: plan, executions, gets, rows, reads."""

from __future__ import annotations

from typing import Any

from dbdyno.pages import format as fmt
from dbdyno.pages import reading
from dbdyno.pages.reading import Analysis
from dbdyno.report.sections import account, base

FIGURES = (
    ("time_ns", "time"),
    ("gets", "buffer gets"),
    ("reads", "reads"),
    ("rows", "rows"),
    ("fetches", "fetches"),
    ("hard_parses", "hard parses"),
)
"""What is shown of each statement, per execution of its own."""
_SELDOM = {"fetches": "fetches", "hard_parses": "hard parses"}
"""Shown only where it changed in some statement."""
_WORDS = {
    "new": "new",
    "gone": "gone",
    "plan": "other plan",
    "executions": "executions",
    "rows": "rows",
    "fetches": "fetch size",
    "gets": "buffer gets",
    "reads": "reads",
    "hard parses": "hard parses",
}


def view(analysis: Analysis) -> base.View | None:
    """The statements, most time first, or None where none changed."""
    given = reading.entries(analysis, "changes")
    if not given:
        return None
    names = reading.arm_names(analysis)
    shown = [names.get(0, "A"), names.get(1, "B")]
    changed = {name for row in given for name in row.get("what") or []}
    figures = [pair for pair in FIGURES if pair[0] not in _SELDOM or _SELDOM[pair[0]] in changed]
    return {
        "names": shown,
        "per": account.basis(analysis),
        "figures": [label for _, label in figures],
        "rows": [_row(row, shown, [name for name, _ in figures]) for row in given],
    }


def _row(row: dict[str, Any], names: list[str], figures: list[str]) -> base.View:
    sides = row.get("sides") or [None, None]
    what = [_WORDS.get(name, fmt.line(name)) for name in row.get("what") or []]
    only = next((names[at] for at in (0, 1) if sides[1 - at] is None), "")
    return {
        "name": fmt.line(row.get("statement") or "no statement"),
        "text": fmt.line(row.get("text") or "", 200),
        "what": f"only in {only}" if only else ", ".join(what) or "the same",
        "is_plan": "plan" in (row.get("what") or []),
        "difference": fmt.difference(row.get("difference_ns")),
        "executions": [fmt.count((side or {}).get("executions")) for side in sides],
        "plans": [", ".join(map(fmt.line, (side or {}).get("plans") or [])) for side in sides],
        "cells": [[_cell(side, name) for name in figures] for side in sides],
        "judged": _judged(row.get("time")),
        "steps": [_steps(side) for side in sides] if "plan" in (row.get("what") or []) else [],
    }


def _cell(side: dict[str, Any] | None, name: str) -> str:
    value = reading.dig(side, "per_execution", name)
    return fmt.duration(value) if name.endswith("_ns") else fmt.significant(value)


def _steps(side: dict[str, Any] | None) -> list[base.View]:
    """A plan's steps: level, operation, and what it saw at first."""
    return [
        {
            "level": step.get("level") or 0,
            "operation": fmt.line(step.get("operation") or ""),
            "rows": fmt.count(step.get("rows_first")),
            "buffers": fmt.significant(step.get("cr")),
        }
        for step in (side or {}).get("steps") or []
    ]


def _judged(metric: dict[str, Any] | None) -> base.View | None:
    if not metric or fmt.number(metric.get("ratio")) is None:
        return None
    return {
        "change": fmt.change(metric.get("ratio")),
        "interval": fmt.interval(metric.get("low"), metric.get("high")),
        "decision": base.decision(metric.get("decision")),
    }


SECTION = base.Section("changes", "Statements that changed", view)
