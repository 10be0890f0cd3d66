"""What made the difference between two sets of traces: the response time, part by part."""

from __future__ import annotations

from typing import Any

from dbdyno.pages import format as fmt
from dbdyno.pages import reading
from dbdyno.pages.reading import Analysis
from dbdyno.report.sections import account, base

MOST = 12


def view(analysis: Analysis) -> base.View | None:
    """The parts that differ most and the rest as one, or None without any."""
    given = reading.entries(analysis, "figures", "contributions")
    if not given:
        return None
    most = max(abs(fmt.number(row.get("difference_ns")) or 0.0) for row in given) or 1.0
    rest = given[MOST:]
    shown = given[:MOST]
    if rest:
        keys = ("base_ns", "value_ns", "difference_ns")
        shown = [*shown, {"name": f"{len(rest)} more", **{k: _sum(rest, k) for k in keys}}]
    names = reading.arm_names(analysis)
    keys = ("base_ns", "value_ns", "difference_ns")
    return {
        "per": account.basis(analysis),
        "names": [names.get(0, "A"), names.get(1, "B")],
        "rows": [_row(row, most) for row in shown],
        "total": _row({"name": "together", **{k: _sum(given, k) for k in keys}}, most),
    }


def _sum(rows: list[dict[str, Any]], key: str) -> float:
    return sum(fmt.number(row.get(key)) or 0.0 for row in rows)


def _row(row: dict[str, Any], most: float) -> base.View:
    difference = fmt.number(row.get("difference_ns")) or 0.0
    return {
        "name": fmt.line(row.get("name") or ""),
        "base": fmt.duration(round(fmt.number(row.get("base_ns")) or 0.0)),
        "value": fmt.duration(round(fmt.number(row.get("value_ns")) or 0.0)),
        "difference": fmt.difference(difference),
        "part": max(min(difference / most, 1.0), -1.0),
    }


SECTION = base.Section("contributions", "What made the difference", view)
