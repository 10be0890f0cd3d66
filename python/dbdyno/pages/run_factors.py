"""Sections about a run's factors: each curve with its levels, best level and knee; the race of arms."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dbdyno.base.json_types import TableRow
from dbdyno.page import Cell, Column, Row, Section, Table
from dbdyno.pages import common, reading
from dbdyno.pages import format as fmt
from dbdyno.pages.common import columns
from dbdyno.pages.reading import Analysis, Entry

TABLES_MOST = 6
"""Maximum number of curves printed on a terminal; a page has all of them."""
_ABOUT = (
    "A table per factor at fixed levels of the others. The knee is the smallest level that no other beats by more than "
    "what matters; where the blocks do not tell it, it is a range. Intervals hold together, over all comparisons."
)


def sections(model: Analysis) -> Iterator[Section]:
    """Yield the curves, starting with those of the axis factor."""
    factors = reading.dig(model, "factors") or {}
    curves = reading.entries(factors, "curves")
    if not curves:
        return
    axis = factors.get("axis")
    curves = sorted(curves, key=lambda curve: curve.get("factor") != axis)
    unit = "per_s" if factors.get("unit") == "1/s" else "ns"
    tables = tuple(
        _table(curve, fmt.line(factors.get("label") or ""), unit, "both" if at < TABLES_MOST else "page")
        for at, curve in enumerate(curves)
    )
    left = len(curves) - TABLES_MOST
    notes = (f"{fmt.count(left)} more curves in JSON and HTML",) if left > 0 else ()
    yield Section("factors", "Levels", _ABOUT, tables=tables, notes=notes)


def _table(curve: Entry, label: str, unit: str, where: Any) -> Table:
    where_held = fmt.line(curve.get("where") or "")
    name = fmt.line(curve.get("factor") or "")
    shown = (
        Column("level", name, "words", narrowest=10),
        Column("mark", "", "text"),
        Column("value", label, unit),
        *columns("share:share:of_the_best bar:bar:_ ratio:change:against_the_first interval:words:interval"),
    )
    rows = [Row(_row(at, row, curve)) for at, row in enumerate(reading.entries(curve, "levels"))]
    law = reading.dig(curve, "law", "sentence")
    note = fmt.line(law, 400) if law and reading.dig(curve, "law", "law") != "constant" else ""
    return common.table(f"{name} {where_held}".strip(), shown, rows, note=note, where=where)


def _row(at: int, row: Entry, curve: Entry) -> TableRow:
    share = fmt.number(row.get("share")) or 0.0
    marks = []
    if not curve.get("ordered"):
        may_be = curve.get("may_be_best") or []
        marks += ["may be best"] if at in may_be and at != curve.get("best") else []
    elif curve.get("told"):
        low, high = curve.get("knee_low"), curve.get("knee_high")
        if low is not None and high is not None and low <= at <= high:
            marks.append("knee" if low == high else "knee?")
    if at == curve.get("best"):
        marks.append("best")
    return {
        "level": fmt.line(row.get("level") or ""),
        "value": row.get("value"),
        "share": share,
        "bar": Cell(min(share, 1.0)),
        "ratio": row.get("ratio") if at else None,
        "interval": fmt.interval(row.get("low"), row.get("high")) if at else "",
        "mark": ", ".join(marks),
    }


_STATES = {"best": "best at the end", "in": "still in the race at the end", "failed": "dropped: it failed"}


def race(model: Analysis) -> Iterator[Section]:
    """Yield the arms of a race, those that stayed in the race longest first."""
    tune = reading.dig(model, "tune") or {}
    given = reading.entries(tune, "rows")
    if not given:
        return
    names = reading.arm_names(model)
    order = {"best": 0, "in": 1, "left": 2, "failed": 3}
    given = sorted(given, key=lambda row: (order.get(str(row.get("state")), 9), -(row.get("after") or 0)))
    rows = []
    for row in given:
        state = str(row.get("state"))
        words = _STATES.get(state) or f"dropped after {fmt.count(row.get('after'))}"
        if state == "left" and row.get("by") in names:
            words += f", behind {names[row['by']]}"
        rows.append(
            {
                "name": fmt.line(row.get("name") or ""),
                "state": words,
                "blocks": row.get("blocks"),
                "ratio": row.get("ratio"),
                "interval": fmt.interval(row.get("low"), row.get("high")),
            }
        )
    shown = columns("name:text:arm state:text blocks:count ratio:change:against_the_best interval:words")
    about = (
        "After each block, arms that are surely worse than another are dropped. Intervals hold at any time in the "
        "race and over all pairs of arms."
    )
    yield Section("race", "The race", about, tables=(common.table("", shown, rows),))
