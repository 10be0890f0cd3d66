"""Figure of the slow tail: the share of operations that took longer than a given time, both axes logarithmic."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict

from dbdyno.pages import format as fmt
from dbdyno.pages import reading
from dbdyno.pages.reading import Analysis
from dbdyno.report.figures import axes, base, theme, views


class _Point(TypedDict):
    """The share of an arm's operations that took at least this time."""

    arm: str
    ns: float
    share: float
    tip: NotRequired[str]


def draw(analysis: Analysis, look: theme.Look = theme.WIDE) -> Any | None:
    """Return the chart, or None if the analysis has no `figures.tail`."""
    import altair as alt

    points = _points(analysis)
    if not points:
        return None
    shown = base.shown_arms(analysis, points)
    times = [point["ns"] for point in points]
    low, high = axes.nonempty_range(min(times), max(times))
    rarest = min(0.1, *(point["share"] for point in points))
    below = {"title": "latency, logarithmic", "grid": True, **base.duration_axis(low, high, look)}
    x = alt.X("ns:Q", **base.log_channel(low, high, below))
    beside = axes.axis_labels(axes.log_ticks(rarest, 1, 8), _one_in)
    heading = base.y_title("slower than this: 1 operation in …", look)
    y = alt.Y("share:Q", **base.log_channel(rarest, 1, {**heading, **beside}))
    colour = base.arm_colour(analysis, shown, look, offset=base.LEGEND_OVER_TITLE)
    lines = (
        alt.Chart(base.data(points))
        .mark_line(interpolate="step-after", strokeWidth=2, clip=True)
        .encode(x=x, y=y, color=colour)
    )
    layers = [lines]
    marks = _marks(analysis, low, high, rarest)
    if marks:
        dots = alt.Chart(base.data(marks)).mark_point(filled=True, size=42, opacity=1, aria=True)
        layers.append(dots.encode(x=x, y=y, color=colour, description=alt.Description("tip:N")))
    layered = views.layer(*layers, width=look.plot, height=look.height(300))
    return theme.finish(layered, FIGURE.title, FIGURE.how_to_read, look)


def _points(analysis: Analysis) -> list[_Point]:
    points: list[_Point] = []
    for arm, entry, where in reading.figure_entries(analysis, "tail"):
        for row in reading.rows(entry, where, ("exceed_share", "elapsed_ns")):
            if row["exceed_share"] > 0 and row["elapsed_ns"] > 0:
                points.append({"arm": arm, "ns": row["elapsed_ns"], "share": row["exceed_share"]})
    return points


def _marks(analysis: Analysis, low: float, high: float, rarest: float) -> list[_Point]:
    """Return the arms' quantiles as dots on their lines."""
    names, marks = reading.arm_names(analysis), list[_Point]()
    for arm in reading.entries(analysis, "arms"):
        name = reading.arm_name(names, arm.get("index"))
        for key, ns in (reading.dig(arm, "quantiles_ns") or {}).items():
            share = 1 - (fmt.number(_quantile(key)) or 0)
            if ns is not None and low <= ns <= high and rarest <= share < 1:
                tip = f"{name}: {key} {fmt.duration(ns, 4)}"
                marks.append({"arm": name, "ns": ns, "share": share, "tip": tip})
    return marks


def _quantile(key: str) -> float | None:
    """Return 0.999 for `p99.9`, or None for another text."""
    try:
        return float(key.removeprefix("p")) / 100
    except ValueError:
        return None


def _one_in(share: float) -> str:
    return "all" if share >= 1 else fmt.count(1 / share)


FIGURE = base.Figure(
    name="tail",
    title="The slow tail",
    how_to_read="At each height, read the time where the line is: one operation in 100, in 1000 "
    "and so on was slower than that. A line farther left is better; dots are "
    "p50, p90, p99, p99.9.",
    draw=draw,
)
