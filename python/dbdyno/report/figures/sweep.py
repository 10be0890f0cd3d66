"""Figure of a sweep: throughput and time of an operation over the levels of a factor, with one curve per setting."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypedDict

from dbdyno.base.json_types import TableRow
from dbdyno.pages import format as fmt
from dbdyno.pages import reading
from dbdyno.pages.reading import Analysis
from dbdyno.report.figures import axes, base, theme, views

_DASHES = ([1, 0], [6, 3], [2, 2])
"""Dash patterns that distinguish lines if there are more curves than colours."""


class _Point(TypedDict):
    """An arm of a curve, with the ends of its intervals; `time` is None if it was not measured."""

    curve: str
    x: float
    rate: float
    time: float | None
    tip: str
    rate_low: float
    rate_high: float
    time_low: float | None
    time_high: float | None


class _Panel(NamedTuple):
    """A panel without its horizontal axis."""

    points: list[_Point]
    what: str
    upright: base.Channel
    names: list[str]
    laws: list[TableRow] = []  # noqa: RUF012 - a default that nobody changes


def draw(analysis: Analysis, look: theme.Look = theme.WIDE) -> Any | None:
    """Return the chart, or None if the analysis has no `figures.sweep`."""
    return chart_of(analysis, FIGURE, look)


def chart_of(analysis: Analysis, figure: base.Figure, look: theme.Look) -> Any | None:
    """Return the chart of a sweep with `figure`'s title and explanation, or None if it has no `figures.sweep`."""
    sweep = reading.dig(analysis, "figures", "sweep") or {}
    points = _points(sweep)
    if not points:
        return None
    label = fmt.line(sweep.get("x_label") or "", 40)
    operation = fmt.line(sweep.get("operation") or "operation", 20)
    names = list(dict.fromkeys(point["curve"] for point in points))
    rate, time = _panel(points, "rate", look, "throughput per second", names)._replace(laws=_laws(sweep)), None
    timed = [point for point in points if point["time"] is not None]
    if timed:
        time = _panel(timed, "time", look, f"mean time of a {operation}", names)
    words = [fmt.line(word, 24) for word in sweep.get("x_words") or []]
    panels = [
        _chart(panel, points, label if is_last else None, look, words)
        for panel, is_last in ((rate, time is None), (time, True))
        if panel is not None
    ]
    chart = panels[0] if len(panels) == 1 else views.vconcat(*panels, spacing=24)
    return theme.finish(chart, figure.title, figure.how_to_read, look)


def _points(sweep: Mapping[str, object]) -> list[_Point]:
    found: list[_Point] = []
    for curve in reading.entries(sweep, "curves"):
        name = fmt.line(curve.get("name") or "", 60)
        for point in reading.entries(curve, "points"):
            x, rate = fmt.number(point.get("x")), fmt.number(point.get("per_s"))
            if x is None or x <= 0 or rate is None or rate <= 0:
                continue
            time = fmt.number(point.get("mean_ns"))
            tip = f"{name}, {fmt.significant(x)}: {fmt.rate(rate)}"
            tip += f" ({fmt.rate(point.get('per_s_low'))} to {fmt.rate(point.get('per_s_high'))})"
            tip += f", {fmt.duration(time)} each"
            found.append(
                {
                    "curve": name,
                    "x": x,
                    "rate": rate,
                    "time": time,
                    "tip": tip,
                    "rate_low": fmt.number(point.get("per_s_low")) or rate,
                    "rate_high": fmt.number(point.get("per_s_high")) or rate,
                    "time_low": fmt.number(point.get("mean_low_ns")) or time,
                    "time_high": fmt.number(point.get("mean_high_ns")) or time,
                }
            )
    return found


def _laws(sweep: Mapping[str, object]) -> list[TableRow]:
    """Return points of the laws fitted to curves, each with the name of its curve."""
    found = []
    for curve in reading.entries(sweep, "curves"):
        name = fmt.line(curve.get("name") or "", 60)
        for point in reading.entries(curve, "law"):
            x, rate = fmt.number(point.get("x")), fmt.number(point.get("per_s"))
            if x is not None and x > 0 and rate is not None and rate > 0:
                found.append({"curve": name, "x": x, "rate": rate})
    return found


def _panel(points: list[_Point], what: str, look: theme.Look, title: str, names: list[str]) -> _Panel:
    """Return a panel without its horizontal axis.

    The axes are logarithmic, so that a proportional increase is a straight line.
    """
    if what == "time":
        ends = [end for point in points for end in (point["time_low"], point["time_high"]) if end is not None]
    else:
        ends = [end for point in points for end in (point["rate_low"], point["rate_high"])]
    low, high = axes.padded_range(ends, 0.06, log=True)
    label = axes.duration_label if what == "time" else axes.count_label(10)
    beside = axes.axis_labels(axes.log_ticks(low, high, 7), label)
    upright = base.log_channel(low, high, {**base.y_title(title, look), **beside})
    return _Panel(points, what, upright, names)


def _chart(panel: _Panel, points: list[_Point], title: str | None, look: theme.Look, words: list[str]) -> Any:
    """Return a panel with its horizontal axis: logarithmic for numbers, evenly spaced for words."""
    import altair as alt

    places = sorted({point["x"] for point in points})
    low, high = axes.padded_range(places, 0.04, log=not words)
    most = 6 if look.narrow else 14
    ticks = places if words or len(places) <= most else axes.log_ticks(low, high, most)
    named = {"title": title, **axes.axis_labels(ticks, lambda x: words[int(x) - 1] if words else f"{x:g}")}
    if title is None:
        named |= {"labels": False}
    scale = {"type": "linear"} if words else {"type": "log", "base": 2}
    x = alt.X("x:Q", scale={**scale, "domain": [low, high], "nice": False}, axis=named)
    what, names, upright = panel.what, panel.names, panel.upright
    colour = base.curve_colour(names, look, legend=what == "rate")
    dash = alt.StrokeDash(
        "curve:N",
        scale={"domain": names, "range": [_DASHES[at // len(theme.CURVES) % 3] for at in range(len(names))]},
        legend=None,
    )
    y = alt.Y(f"{what}:Q", **upright)
    rows = alt.Chart(base.data(panel.points))
    # There are no values between two words, so the points are not connected.
    layers = [] if words else [rows.mark_line(strokeWidth=2).encode(x=x, y=y, color=colour, strokeDash=dash)]
    ends = alt.Y(f"{what}_low:Q", **upright), alt.Y2(f"{what}_high")
    layers += base.dots_with_intervals(rows, x, y, ends, colour)
    if panel.laws:
        law = alt.Chart(base.data(panel.laws)).mark_line(strokeWidth=1.5, strokeDash=[3, 3], clip=True)
        # One line per curve, in one colour; its dashes distinguish it from the line through the measured levels.
        layers.append(law.encode(x=x, y=y, detail="curve:N", color=alt.value(theme.INK)))
    return views.layer(*layers, width=look.plot, height=look.height(230))


FIGURE = base.Figure(
    name="sweep",
    title="What each level brings, setting by setting",
    how_to_read="A curve per setting, a dot per arm with its interval over blocks. Where a curve is flat, a resource "
    "is saturated. Short dashes: the fitted law, if there is one. Numbers have logarithmic scales: doubling is the "
    "same distance everywhere.",
    draw=draw,
)
