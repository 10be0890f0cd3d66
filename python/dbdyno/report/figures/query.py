"""Figure of the rows of a query: a line per series over a number or a time, or a bar per row."""

from __future__ import annotations

from typing import Any, TypedDict

from dbdyno.pages import format as fmt
from dbdyno.pages import reading
from dbdyno.pages.reading import Analysis
from dbdyno.report.figures import axes, base, clock, theme

BARS_MOST = 30
_LABEL_MOST = 24
ROOM = {True: 104, False: 190}
"""Space for the labels of bars in pixels, on a phone and otherwise."""


class Point(TypedDict):
    """A row: its position on the horizontal axis (seconds since 1970 for a time), its value, its series or label."""

    x: float
    y: float
    name: str


def draw(analysis: Analysis, look: theme.Look = theme.WIDE) -> Any | None:
    """Return the chart, or None for fewer than two points."""
    points = reading.list_of(Point, analysis, "points")
    if len(points) < 2:
        return None
    chart = _bars(analysis, points, look) if analysis.get("form") == "bars" else _lines(analysis, points, look)
    return theme.finish(chart, FIGURE.title, FIGURE.how_to_read, look)


def _value_axis(analysis: Analysis, points: list[Point], look: theme.Look) -> tuple[tuple[float, float], axes.Axis]:
    """Return the range of the vertical axis and its options; the axis begins at 0 unless there are negative values."""
    values = [one["y"] for one in points]
    low, high = min(0.0, *values), max(0.0, *values) or 1.0
    ticks = axes.axis_labels(axes.linear_ticks(low, high, 4), lambda value: fmt.significant(value, 4))
    return (low, high * 1.04), {**base.y_title(fmt.line(analysis.get("y") or "", 40), look), **ticks}


def _lines(analysis: Analysis, points: list[Point], look: theme.Look) -> Any:
    import altair as alt

    low, high = (find(one["x"] for one in points) for find in (min, max))
    if analysis.get("form") == "clock":
        below: axes.Axis = clock.axis(low * 1e6, high * 1e6, narrow=look.narrow)
    else:
        ticks = axes.axis_labels(
            axes.linear_ticks(low, high, 4 if look.narrow else 8), lambda at: fmt.significant(at, 4)
        )
        below = {"title": fmt.line(analysis.get("x") or "", 40), **ticks}
    span, beside = _value_axis(analysis, points, look)
    names = list(dict.fromkeys(one["name"] for one in points))
    legend = {"columns": look.columns(names, 4), "offset": base.LEGEND_OVER_TITLE} if len(names) > 1 else None
    colours = {"domain": names, "range": list(theme.OTHERS[: len(names)])}
    scale = {"domain": [low, high if high > low else low + 1], "nice": False, "zero": False}
    return (
        alt.Chart(base.data(points), width=look.plot, height=look.height(220))
        .mark_line(strokeWidth=1.6)
        .encode(
            x=alt.X("x:Q", scale=scale, axis=below),
            y=alt.Y("y:Q", scale={"domain": list(span), "nice": False}, axis=beside),
            color=alt.Color("name:N", sort=names, scale=colours, legend=legend),
        )
    )


def _bars(analysis: Analysis, points: list[Point], look: theme.Look) -> Any:
    import altair as alt

    shown = points[:BARS_MOST]
    span, _ = _value_axis(analysis, shown, look)
    room = ROOM[look.narrow]
    rows = [
        {"row": f"{at + 1}. {fmt.line(one['name'], _LABEL_MOST)}", "y": one["y"], "zero": 0.0}
        for at, one in enumerate(shown)
    ]
    ticks = axes.axis_labels(axes.linear_ticks(*span, 3 if look.narrow else 6), lambda value: fmt.significant(value, 4))
    order = [str(row["row"]) for row in rows]
    beside = {
        "title": None,
        "labelOverlap": False,
        "labelLimit": room - 8,
        "labelFontSize": 10 if look.narrow else 12,
        "minExtent": room - 6,
        "maxExtent": room - 6,
    }
    return (
        alt.Chart(base.data(rows), width=look.width - room - 24, height=18 * len(rows))
        .mark_bar(color=theme.OTHERS[4])
        .encode(
            x=alt.X(
                "y:Q",
                scale={"domain": list(span), "nice": False},
                axis={"title": fmt.line(analysis.get("y") or "", 40), **ticks},
            ),
            y=alt.Y("row:N", sort=order, axis=beside),
        )
    )


FIGURE = base.Figure(
    "query",
    "The answer as a chart",
    "The chart shows the last column of numbers over the first column, if that is a time or a number. Each value of a "
    "text column has its own line. Otherwise each of the first thirty rows has a bar.",
    draw,
)
