"""Figure of latency over time: shows stalls, drift and second modes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypedDict

from dbdyno.pages import format as fmt
from dbdyno.pages import reading
from dbdyno.pages.reading import Analysis
from dbdyno.report.figures import axes, base, theme, views


def draw(analysis: Analysis, look: theme.Look = theme.WIDE) -> Any | None:
    """Return the chart, one panel per arm on the same axes, or None if there is no `figures.heatmap`."""
    cells = _cells(analysis)
    if not cells:
        return None
    shown = base.shown_arms(analysis, cells)
    ends = (min(cell["from"] for cell in cells), max(cell["to"] for cell in cells))
    times = axes.nonempty_range(min(cell["low"] for cell in cells), max(cell["high"] for cell in cells))
    levels = _levels(max(cell["count"] for cell in cells))
    shaded: list[_Shaded] = [{**cell, "level": sum(cell["count"] >= level for level in levels) - 1} for cell in cells]
    shaded.sort(key=lambda cell: cell["level"])
    frame = _Frame(ends, times, levels, 170 if len(shown) <= 2 else 118, look)
    panels = [
        _panel(name, [cell for cell in shaded if cell["arm"] == name], frame, name == shown[-1]) for name in shown
    ]
    stacked = views.vconcat(*panels, spacing=12).resolve_scale(color="shared")
    return theme.finish(stacked, FIGURE.title, FIGURE.how_to_read, look)


_Cell = TypedDict("_Cell", {"arm": str, "from": float, "to": float, "low": float, "high": float, "count": float})
"""The number of operations of an arm with a latency in this range at this time."""


class _Shaded(_Cell):
    """A cell with its shade."""

    level: int


@dataclass(frozen=True)
class _Frame:
    """The common properties of all panels: range of time [s], range of latency [ns], shades."""

    ends: tuple[float, float]
    times: tuple[float, float]
    levels: list[int]
    height: int
    look: theme.Look


def _panel(name: str, cells: list[_Shaded], frame: _Frame, is_last: bool) -> Any:
    import altair as alt

    look = frame.look
    ticks = axes.seconds_ticks(*frame.ends, 5 if look.narrow else 10)
    below = {
        "title": "time since the start of the run",
        **axes.axis_labels(ticks, axes.seconds_label),
    }
    beside = {
        "grid": True,
        **base.y_title("", look),
        **base.duration_axis(*frame.times, look, limit=8),
    }
    x_scale = {"domain": frame.ends, "nice": False, "zero": False}
    y_scale = {"type": "log", "domain": frame.times, "nice": False}
    shade = {"domain": list(range(len(frame.levels))), "range": _shades(frame.levels)}
    return (
        alt.Chart(
            base.data(cells),
            width=look.plot,
            height=look.height(frame.height),
            title=base.panel_title(name),
        )
        .mark_rect(clip=True, strokeWidth=0.7)
        .encode(
            x=alt.X("from:Q", scale=x_scale, axis=below if is_last else None),
            x2=alt.X2("to"),
            y=alt.Y("low:Q", scale=y_scale, axis=beside),
            y2=alt.Y2("high"),
            color=alt.Color("level:O", scale=shade, legend=_legend(frame.levels, look)),
            stroke=alt.Stroke("level:O", scale=shade, legend=None),
        )
    )


def _cells(analysis: Analysis) -> list[_Cell]:
    cells: list[_Cell] = []
    for arm, entry, where in reading.figure_entries(analysis, "heatmap"):
        width = fmt.number(entry.get("width_s")) or 1.0
        for row in reading.rows(entry, where, ("at_s", "low_ns", "high_ns", "count")):
            if row["low_ns"] > 0 and row["count"] > 0:
                cells.append(
                    {
                        "arm": arm,
                        "from": row["at_s"],
                        "to": row["at_s"] + width,
                        "low": row["low_ns"],
                        "high": row["high_ns"],
                        "count": row["count"],
                    }
                )
    return cells


def _levels(most: float) -> list[int]:
    """Return the smallest count of each shade: even steps of the logarithm, rounded to whole numbers."""
    shades = len(theme.HEAT)
    return sorted({max(1, round(most ** (at / shades))) for at in range(shades)})


def _shades(levels: list[int]) -> list[str]:
    if len(levels) == 1:
        return [theme.HEAT[-3]]
    last = len(theme.HEAT) - 1
    return [theme.HEAT[round(at * last / (len(levels) - 1))] for at in range(len(levels))]


def _legend(levels: list[int], look: theme.Look) -> Any:

    named = {float(at): fmt.count(math.floor(level)) for at, level in enumerate(levels)}
    return {
        "title": "minimum operations per cell",
        "symbolType": "square",
        "symbolSize": 150,
        "symbolStrokeWidth": 0,
        "columns": 4 if look.narrow else 8,
        "columnPadding": 10,
        "labelExpr": axes.axis_labels(list(named), named.__getitem__)["labelExpr"],
    }


FIGURE = base.Figure(
    name="heatmap",
    title="When it happened",
    how_to_read="Time runs to the right, latency upwards; a stronger colour means more "
    "operations. Columns of scattered slow cells are stalls; a second horizontal "
    "band is a second kind of work; a slope is drift.",
    draw=draw,
)
