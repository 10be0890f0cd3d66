"""Two sets of traces in two numbers: response time and database time, and the counts beside them."""

from __future__ import annotations

from typing import Any

from dbdyno.pages import format as fmt
from dbdyno.pages import reading
from dbdyno.pages.reading import Analysis
from dbdyno.report.sections import base

_COUNTS = (
    ("executions", "executions of the client"),
    ("calls", "calls of the client"),
    ("round_trips", "round trips"),
    ("rows", "rows"),
    ("hard_parses", "hard parses"),
    ("commits", "commits"),
)


def view(analysis: Analysis) -> base.View | None:
    """The rows, each with both sides and the change, or None of another kind of page."""
    given = reading.dig(analysis, "account")
    if not given:
        return None
    names = reading.arm_names(analysis)
    per = ", per execution" if given.get("basis") == "execution" else ""
    rows = [_times(f"database time{per}", given.get("database_ns"))]
    if given.get("has_response"):
        rows.insert(0, _times(f"response time{per}", given.get("response_ns")))
    sides = given.get("sides") or [{}, {}]
    if any(fmt.number(side.get("think_ns")) for side in sides):
        rows.append(_times("left out: the client's thinking", [side.get("think_ns") for side in sides]))
    for name, label in _COUNTS:
        counts = [side.get(name) for side in sides]
        if any(counts):
            rows.append({"name": label, "sides": [fmt.count(n) for n in counts], "change": _change(counts)})
    return {"names": [names.get(0, "A"), names.get(1, "B")], "rows": rows, "per": basis(analysis)}


def basis(analysis: Analysis) -> str:
    """What times of the page are taken over: `in all` or `per execution`."""
    return "per execution" if reading.dig(analysis, "account", "basis") == "execution" else "in all"


def _times(name: str, times: Any) -> base.View:
    return {"name": name, "sides": [fmt.duration(ns) for ns in times or [None, None]], "change": _change(times)}


def _change(values: Any) -> str:
    one, two = (fmt.number(value) for value in values or [None, None])
    return fmt.change(two / one) if one and two is not None else ""


SECTION = base.Section("account", "In two numbers", view)
