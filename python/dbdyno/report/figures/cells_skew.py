"""Figure of cells or disks that differ from their siblings: ratio to the median of their kind, with 95 % interval."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dbdyno.pages import format as fmt
from dbdyno.pages import reading
from dbdyno.pages.reading import Analysis
from dbdyno.report.figures import base, forest, theme

MOST = 24


def draw(analysis: Analysis, look: theme.Look = theme.WIDE) -> Any | None:
    """Return the chart of the cells or disks that differ most, or None if none differs."""
    source = analysis if analysis.get("page") == "skew" else analysis.get("skew") or {}
    given = [row for row in reading.entries(source, "rows") if row.get("differs")][:MOST]
    rows = [_row(row) for row in given]
    if not rows:
        return None
    chart = forest.layers(rows, "against the median of the siblings", look)
    return theme.finish(chart, FIGURE.title, FIGURE.how_to_read, look)


def _row(row: Mapping[str, object]) -> forest.Ratio:
    ratio = fmt.number(row.get("ratio")) or 1.0
    low, high = (fmt.number(row.get(key)) or ratio for key in ("low", "high"))
    name = f"{fmt.line(row.get('name'), 48)} · {fmt.line(row.get('metric'), 32)}"
    words = f"{name}: ×{ratio:.2f} (95 % CI {low:.2f} to {high:.2f})"
    return {"name": name, "ratio": ratio, "low": low, "high": high, "tip": words}


FIGURE = base.Figure(
    "cells_skew",
    "Siblings that differ",
    "A dot is a cell or disk against the median of its siblings, the line its 95 % interval over "
    "the rounds. The figure shows the largest differences in the table.",
    draw,
)
