"""Figure of two recordings of cells: the change of each metric over all cells, with its 95 % interval."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dbdyno.pages import format as fmt
from dbdyno.pages import reading
from dbdyno.pages.reading import Analysis
from dbdyno.report.figures import base, forest, theme

RATIO_MOST = 20.0
"""Ends of intervals beyond this factor are drawn at this factor."""


def draw(analysis: Analysis, look: theme.Look = theme.WIDE) -> Any | None:
    """Return the chart, or None if the analysis has no `figures.cells_changes`."""
    rows = [_row(row) for row in reading.entries(analysis, "figures", "cells_changes")]
    if not rows:
        return None
    chart = forest.layers(rows, "second recording against the first", look)
    return theme.finish(chart, FIGURE.title, FIGURE.how_to_read, look)


def _row(row: Mapping[str, object]) -> forest.Ratio:
    name = fmt.line(row.get("metric"), 44)
    word = fmt.line(row.get("decision"))
    ratio, low, high = (
        min(max(fmt.number(row.get(key)) or 1.0, 1 / RATIO_MOST), RATIO_MOST) for key in ("ratio", "low", "high")
    )
    told = f"{fmt.change(row.get('ratio'))} ({fmt.interval(row.get('low'), row.get('high'))})"
    tip = f"{name}: {told}, {word}"
    return {"name": name, "ratio": ratio, "low": low, "high": high, "tip": tip, "pale": bool(row.get("pale"))}


FIGURE = base.Figure(
    "cells_changes",
    "What changed, over all cells",
    "A dot is the second recording relative to the first, the line its 95 % interval; the vertical line is no "
    "change. In colour: differs for certain; grey: cannot tell, or no difference that "
    "matters. Latencies and shares first, then rates; grid disks are in the tables.",
    draw,
)
