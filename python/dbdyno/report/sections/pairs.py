"""Files paired by name: the pairs that differ most, with both times of each."""

from __future__ import annotations

from typing import Any

from dbdyno.report import format as fmt
from dbdyno.report import reading
from dbdyno.report.reading import Analysis
from dbdyno.report.sections import base

MOST = 10
"""So many pairs are shown; the model has all."""
_TIMES = (("response_ns", "response time"), ("database_ns", "database time"))


def view(analysis: Analysis) -> base.View | None:
    """The pairs, the largest difference first, or None without any."""
    given = reading.entries(analysis, "pairs")
    if not given:
        return None
    account = reading.dig(analysis, "account") or {}
    time, label = _TIMES[0] if account.get("has_response", True) else _TIMES[1]
    names = reading.arm_names(analysis)
    rows = sorted(given, key=lambda row: -abs(_difference(row, time)))
    return {
        "names": [names.get(0, "A"), names.get(1, "B")],
        "time": label,
        "rows": [_row(row, time) for row in rows[:MOST]],
        "left": max(len(rows) - MOST, 0),
    }


def _sides(row: dict[str, Any], time: str) -> list[float | None]:
    return [fmt.number(value) for value in (row.get(time) or [None, None])]


def _difference(row: dict[str, Any], time: str) -> float:
    base, other = _sides(row, time)
    return 0.0 if base is None or other is None else other - base


def _row(row: dict[str, Any], time: str) -> base.View:
    sides = _sides(row, time)
    return {
        "name": fmt.line(row.get("key") or "", 60),
        "sides": [fmt.duration(value) for value in sides],
        "difference": fmt.difference(_difference(row, time)),
        "change": fmt.change(sides[1] / sides[0]) if sides[0] and sides[1] else fmt.NONE,
    }


SECTION = base.Section("pairs", "Pairs that differ most", view)
