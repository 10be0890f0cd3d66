"""Figure of commit time over redo size, with the fitted shape.

Several curves share one frame, or have separate frames, one above the other, if one curve would be flat beside another.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

from dbdyno.pages import format as fmt
from dbdyno.pages import reading
from dbdyno.pages.reading import Analysis
from dbdyno.report.figures import axes, base, theme, views

SEPARATE_RATIO = 4.0
"""Curves whose heights differ by more than this factor get separate frames, one above the other."""


class _Point(TypedDict):
    """A commit, or a corner of the fitted line."""

    x: float
    y: float


class _Bin(_Point):
    """The median of a bin with its spread."""

    low: float
    high: float
    tip: str


class _Above(_Point):
    """A commit whose time is above the upper end of the axis."""

    colour: str


def draw(analysis: Analysis, look: theme.Look = theme.WIDE) -> Any | None:
    """Return the chart, or None if the analysis has no `figures.curve`."""
    import altair as alt

    curves = [_Curve(given) for given in reading.curves(analysis)]
    curves = [curve for curve in curves if curve.drawable]
    if not curves:
        return None
    names = reading.arm_names(analysis)
    several = len(curves) > 1
    for curve in curves:
        curve.name = reading.arm_name(names, curve.given.get("arm"))
        curve.colours = _colours(analysis, curve.name) if several else _ALONE
    tops = [curve.top for curve in curves]
    apart = several and max(tops) > SEPARATE_RATIO * min(tops)
    frames = [[curve] for curve in curves] if apart else [curves]
    width = max(curve.width for curve in curves)
    label = reading.dig(analysis, "figures", "curve", "x_label")
    height = look.height(340 if len(frames) == 1 else 240)
    panels = []
    for frame in frames:
        x_axis = _x_axis(label, width, look)
        if frame is not frames[-1]:
            x_axis |= {"title": None, "labels": False}
        x = alt.X("x:Q", scale={"domain": [0, width * 1.02], "nice": False}, axis=x_axis)
        layers = _layers(frame, x, width, look)
        if several:
            layers += _legend(frame, look)
        panels.append(views.layer(*layers, width=look.plot, height=height))
    chart = panels[0] if len(panels) == 1 else views.vconcat(*panels, spacing=26)
    return theme.finish(chart, FIGURE.title, FIGURE.how_to_read, look)


_ALONE = (theme.BASELINE, theme.OTHERS[0])
"""Colours of the commits and of the fitted line of a single curve."""


class _Curve:
    """One curve prepared for drawing."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self.given = given
        self.bins, self.points = _bins(given), _points(given, "points")
        self.fit = _points(given, "fit")
        self.drawable = bool(self.bins or self.points or self.fit)
        every: list[_Point] = [*self.bins, *self.points, *self.fit]
        self.width: float = max((row["x"] for row in every), default=1) or 1
        self.top = _top(self.bins, self.points, self.fit) if self.drawable else 1.0
        self.name = ""
        self.colours = _ALONE


def _colours(analysis: Analysis, name: str) -> tuple[str, str]:
    scale = base.arm_scale(analysis)
    place = scale["domain"].index(name) if name in scale["domain"] else 0
    return scale["range"][place], scale["range"][place]


def _layers(frame: list[_Curve], x: Any, width: float, look: theme.Look) -> list[Any]:
    """Return the content of one frame: commits, bins and fitted line of each of its curves."""
    import altair as alt

    top = max(curve.top for curve in frame)
    upright: base.Channel = {
        "scale": {"domain": [0, top], "nice": False},
        "axis": _y_axis(top, look),
    }
    y = alt.Y("y:Q", **upright)
    layers: list[Any] = [layer for curve in frame for layer in _period(curve.given, width)]
    above: list[_Above] = [
        {**point, "colour": curve.colours[0]} for curve in frame for point in curve.points if point["y"] > top
    ]
    for curve in frame:
        dots, line = curve.colours
        inside = alt.Chart(base.data([point for point in curve.points if point["y"] <= top]))
        bins = alt.Chart(base.data(curve.bins))
        layers += [
            inside.mark_circle(size=9, opacity=0.22, color=dots).encode(x=x, y=y),
            bins.mark_rule(strokeWidth=2, color=dots, opacity=0.75, clip=True).encode(
                x=x, y=alt.Y("low:Q", **upright), y2=alt.Y2("high")
            ),
            bins.mark_point(filled=True, size=46, color=dots, opacity=1, aria=True).encode(
                x=x, y=y, description=alt.Description("tip:N")
            ),
            alt.Chart(base.data(curve.fit))
            .mark_line(strokeWidth=2.5, color=line, clip=True)
            .encode(x=x, y=y, order=alt.Order("x:Q")),
        ]
    return [*layers, *_above(above, x, look)]


def _legend(frame: list[_Curve], look: theme.Look) -> list[Any]:
    """Return the names of the curves in their colours, in the upper left corner of the frame."""
    import altair as alt

    marks = []
    for at, curve in enumerate(frame):
        words = fmt.line(curve.name, 34 if look.narrow else 70)
        text = alt.Chart(base.data([{"words": f"● {words}"}]))
        marks.append(
            text.mark_text(align="left", baseline="top", color=curve.colours[0], fontWeight=600).encode(
                **base.fixed_position(x=10, y=8 + 17 * at), text=alt.Text("words:N")
            )
        )
    return marks


def _bins(curve: Mapping[str, Any]) -> list[_Bin]:
    found: list[_Bin] = []
    for row in reading.entries(curve, "bins"):
        x, y = fmt.number(row.get("redo_bytes")), fmt.number(row.get("median_ns"))
        if x is None or y is None:
            continue
        tip = f"{fmt.size(x)}: median {fmt.duration(y)} ({fmt.duration(row.get('low_ns'))} to "
        tip += f"{fmt.duration(row.get('high_ns'))}), {fmt.count(row.get('n'))} commits"
        low, high = fmt.number(row.get("low_ns")), fmt.number(row.get("high_ns"))
        found.append(
            {
                "x": x,
                "y": y,
                "low": y if low is None else low,
                "high": y if high is None else high,
                "tip": tip,
            }
        )
    return found


def _points(curve: Mapping[str, Any], key: str) -> list[_Point]:
    entry = reading.dig(curve, key) or {}
    if not entry:
        return []
    found = reading.rows(entry, f"figures.curve.{key}", ("redo_bytes", "elapsed_ns"))
    return [{"x": row["redo_bytes"], "y": row["elapsed_ns"]} for row in found]


def _top(bins: list[_Bin], points: list[_Point], fit: list[_Point]) -> float:
    """Return the upper end of the axis, from the medians, the fit and the lowest nine tenths of the bins' spreads.

    The highest spreads are ignored so that neither a stall nor a bin of few commits flattens the curve.
    """
    spreads = sorted(row["high"] for row in bins)
    decided = spreads[: -(-len(spreads) * 9 // 10)]
    decisive = [*(row["y"] for row in bins), *(row["y"] for row in fit), *decided]
    most = max(decisive) * 1.25 if decisive else max(point["y"] for point in points)
    return float(most) or 1.0


def _above(above: list[_Above], x: Any, look: theme.Look) -> list[Any]:
    """Return the marks for commits above the frame: they are shown at its edge and counted, never dropped."""
    import altair as alt

    if not above:
        return []
    slowest = fmt.duration(max(point["y"] for point in above))
    noun = "commit" if len(above) == 1 else "commits"
    words = f"▲ {fmt.count(len(above))} slower {noun} above the frame, up to {slowest}"
    if look.narrow:
        words = f"▲ {fmt.count(len(above))} above, up to {slowest}"
    return [
        alt.Chart(base.data(above))
        .mark_point(shape="triangle-up", filled=True, size=22, opacity=0.5)
        .encode(x=x, color=alt.Color("colour:N", scale=None), **base.fixed_position(y=3)),
        alt.Chart(base.data([{"words": words}]))
        .mark_text(align="right", baseline="bottom", dy=-9)
        .encode(**base.fixed_position(x="width", y=0), text=alt.Text("words:N")),
    ]


def _period(curve: Mapping[str, Any], width: float) -> list[Any]:
    """Return dashed lines at the multiples of the period; none if no period was found."""
    import altair as alt

    period = fmt.number(curve.get("period_bytes"))
    if not curve.get("found") or period is None or not 0 < period <= width or width / period > 40:
        return []
    lines = [{"x": period * at} for at in range(1, int(width / period) + 1)]
    return [alt.Chart(base.data(lines)).mark_rule(color=theme.FAINT, strokeDash=[3, 4]).encode(x=alt.X("x:Q"))]


def _x_axis(given: Any, width: float, look: theme.Look) -> axes.Axis:

    label = fmt.line(given or "redo written since the last commit", 60)
    ticks = axes.linear_ticks(0, width, 4 if look.narrow else 9, base=2)
    return {"title": label, **axes.axis_labels(ticks, axes.size_label)}


def _y_axis(top: float, look: theme.Look) -> Any:

    ticks = axes.linear_ticks(0, top, 6)
    return {**base.y_title("time of the commit", look), **axes.axis_labels(ticks, axes.duration_label)}


FIGURE = base.Figure(
    name="curve",
    title="What a commit costs, by the redo it has to write",
    how_to_read="Each large dot is the median of a bin, the bar its spread, the small dots "
    "single commits; the line is the shape that fits best. A sawtooth would "
    "rise and fall with a fixed period.",
    draw=draw,
)
