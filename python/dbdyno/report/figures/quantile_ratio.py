"""Figure that shows where in the distribution a change acts: the ratio of two arms at each quantile (a shift plot).

The horizontal axis is the logit of the quantile, which gives the fast and the slow tail the same room as the middle.
"""

from __future__ import annotations

import math
from typing import Any, NotRequired, TypedDict

from dbdyno.pages import format as fmt
from dbdyno.pages import reading
from dbdyno.pages.reading import Analysis
from dbdyno.report.figures import axes, base, theme, views

_NAMED = (0.0001, 0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999)
_NAMED_NARROW = (0.01, 0.5, 0.9, 0.99, 0.999, 0.9999)


class _Point(TypedDict):
    """A quantile: the ratio of an arm to its base, with its interval if known."""

    arm: str
    x: float
    y: float
    tip: str
    low: NotRequired[float]
    high: NotRequired[float]


def draw(analysis: Analysis, look: theme.Look = theme.WIDE) -> Any | None:
    """Return the chart, or None if the analysis has no `figures.quantile_ratio`."""
    import altair as alt

    points = _points(analysis)
    if not points:
        return None
    shown = base.shown_arms(analysis, points)
    chart = alt.Chart(base.data(points))
    x = alt.X("x:Q", axis=_quantile_axis(points, look), scale=_x_scale(points))
    ratios = [end for p in points for end in (p["y"], p.get("low", p["y"]), p.get("high", p["y"]))]
    axis = base.ratio_y(analysis, ratios, look, "time against the baseline")
    y = alt.Y("y:Q", **axis)
    colour = base.arm_colour(analysis, shown, look, offset=base.LEGEND_OVER_TITLE)
    with_interval = alt.Chart(base.data([point for point in points if "low" in point]))
    layers = [
        *base.ratio_ground(analysis),
        with_interval.mark_area(opacity=0.2, clip=True).encode(
            x=x, y=alt.Y("low:Q", **axis), y2=alt.Y2("high"), color=colour
        ),
        chart.mark_line(strokeWidth=2, clip=True).encode(x=x, y=y, color=colour),
        chart.mark_point(filled=True, size=26, opacity=1, aria=True).encode(
            x=x, y=y, color=colour, description=alt.Description("tip:N")
        ),
        base.ratio_sides("slower", "faster"),
    ]
    layered = views.layer(*layers, width=look.plot, height=look.height(290))
    return theme.finish(layered, FIGURE.title, FIGURE.how_to_read, look)


def _points(analysis: Analysis) -> list[_Point]:
    points: list[_Point] = []
    for arm, entry, where in reading.figure_entries(analysis, "quantile_ratio"):
        for row in reading.rows(entry, where, ("quantile", "ratio"), ("low", "high")):
            if not 0 < row["quantile"] < 1 or row["ratio"] <= 0:
                continue
            quantile, ratio = row["quantile"], row["ratio"]
            tip = f"{arm}: {fmt.quantile_name(quantile)} {fmt.change(ratio)}"
            point: _Point = {"arm": arm, "x": math.log10(quantile / (1 - quantile)), "y": ratio, "tip": tip}
            if row.get("low") and row.get("high"):
                point["low"], point["high"] = row["low"], row["high"]
                point["tip"] += f" ({fmt.interval(row['low'], row['high'])})"
            points.append(point)
    return points


def _x_scale(points: list[_Point]) -> Any:
    low, high = axes.padded_range([point["x"] for point in points], 0.02, log=False)
    return {"domain": [low, high], "nice": False, "zero": False}


def _quantile_axis(points: list[_Point], look: theme.Look) -> Any:
    places = {
        math.log10(quantile / (1 - quantile)): fmt.quantile_name(quantile)
        for quantile in (_NAMED_NARROW if look.narrow else _NAMED)
    }
    low, high = min(point["x"] for point in points), max(point["x"] for point in points)
    ticks = [place for place in places if low - 0.05 <= place <= high + 0.05]
    return {
        "title": "quantile of latency: fast operations left, slow ones right",
        "grid": True,
        **axes.axis_labels(ticks, places.__getitem__),
    }


FIGURE = base.Figure(
    name="quantile_ratio",
    title="Where the change acts, from the fastest operations to the slowest",
    how_to_read="The line compares the arm's latency with the baseline's at the same quantile: "
    "at 0 % they are equal. The shade around it is the interval. Grey band: "
    "differences too small to matter.",
    draw=draw,
)
