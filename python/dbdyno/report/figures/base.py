"""Definition of a figure, and parts that several figures share: data, colours, axes, background of ratio charts."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

from dbdyno.base.json_types import JsonObject
from dbdyno.pages import reading
from dbdyno.pages.reading import Analysis
from dbdyno.report.figures import axes, theme
from dbdyno.report.figures.theme import Look

LEGEND_OVER_TITLE = 30
LABEL_ROOM = 52
"""Pixels that a label such as `300 ms` takes on a horizontal axis, including the gap beside it."""


class Channel(TypedDict):
    """Vega-Lite's scale and axis for one direction, shared by several marks of a chart, for `alt.X` or `alt.Y`."""

    scale: Any
    axis: Any


@dataclass(frozen=True)
class Figure:
    """One kind of figure; `draw` returns an Altair chart, or None if its data are missing."""

    name: str
    title: str
    how_to_read: str
    draw: Callable[[Analysis, Look], Any | None]


def data(values: Sequence[Mapping[str, object]]) -> Any:
    """Return rows as data inside the chart: nothing is loaded, and their number is not limited.

    They are passed as one JSON text, because Altair would walk and copy a list of rows many times.
    """
    import altair as alt

    return alt.InlineData(values=json.dumps(values, allow_nan=False), format=alt.JsonDataFormat(type="json"))


def arm_scale(analysis: Analysis) -> Any:
    """Return the colour scale of the arms, the same in every figure."""
    names = reading.arm_names(analysis)
    places = list(names)
    baseline = reading.baseline(analysis)
    at = places.index(baseline) if baseline in places else None
    return {"domain": list(names.values()), "range": theme.arm_colours(len(names), at)}


def arm_colour(analysis: Analysis, shown: list[str], look: Look, **legend: Any) -> Any:
    """Return the colour encoding by arm, with a legend of the arms shown unless there is only one.

    A chart of one view passes `offset=LEGEND_OVER_TITLE`, which keeps the legend off the axis title.
    """
    import altair as alt

    return alt.Color(
        "arm:N",
        scale=arm_scale(analysis),
        legend={"values": shown, "columns": look.columns(shown, 4), **legend} if len(shown) > 1 else None,
    )


def shown_arms(analysis: Analysis, rows: Sequence[Mapping[str, object]]) -> list[str]:
    """Return the names of the arms that have rows, in the order of the analysis."""
    arms = {row["arm"] for row in rows}
    return [name for name in reading.arm_names(analysis).values() if name in arms]


def curve_colour(names: list[str], look: Look, *, legend: bool = True) -> Any:
    """Return the colour encoding by curve, with a legend if `legend` is True and there are several curves."""
    import altair as alt

    return alt.Color(
        "curve:N",
        scale={"domain": names, "range": [theme.CURVES[at % len(theme.CURVES)] for at in range(len(names))]},
        legend={"columns": look.columns(names, 3), "offset": LEGEND_OVER_TITLE} if legend and len(names) > 1 else None,
    )


def y_title(words: str, look: Look) -> axes.Axis:
    """Return axis options for a horizontal title above a vertical axis."""
    return {
        "title": words,
        "titleAngle": 0,
        "titleAlign": "left",
        "titleBaseline": "bottom",
        "titleAnchor": "end",
        "titleX": -look.left + 4,
        "titleY": -10,
        "minExtent": look.left - 6,
        "maxExtent": look.left - 6,
    }


def run_time_x(low: float, high: float, look: Look, *, is_last: bool) -> Any:
    """Return the horizontal axis of a panel over a run's time [s]; only the last panel has labels."""
    import altair as alt

    ticks = axes.seconds_ticks(max(low, 0), high, 5 if look.narrow else 10)
    named = {"title": "time since the start of the run", **axes.axis_labels(ticks, axes.seconds_label)}
    bare = {"title": None, "labels": False, "ticks": False, "domain": False, "values": ticks}
    scale = {"domain": [low, high], "nice": False, "zero": False}
    return alt.X("at:Q", scale=scale, axis=named if is_last else bare)


def square_legend(names: list[str], look: Look, limit: int) -> JsonObject:
    """Return a legend of coloured squares, at most `limit` in a row."""
    squares = {"symbolType": "square", "symbolSize": 150, "symbolStrokeWidth": 0}
    return {**squares, "columns": look.columns(names, limit)}


def panel_title(text: str) -> JsonObject:
    """Return the title of one of several panels: small, at their left edge."""
    return {"text": text, "fontSize": 12, "offset": 4, "anchor": "start", "frame": "group"}


def duration_axis(low: float, high: float, look: Look, *, limit: int = 12) -> axes.Axis:
    """Return ticks and labels of a logarithmic time axis in ns."""
    ticks = axes.log_ticks(low, high, max(3, min(limit, round(look.plot / LABEL_ROOM) - 1)))
    return axes.axis_labels(ticks, axes.duration_label)


def log_channel(low: float, high: float, axis: Any) -> Channel:
    """Return a logarithmic scale with its axis."""
    return {"scale": {"type": "log", "domain": [low, high], "nice": False}, "axis": axis}


def duration_y(low: float, high: float, look: Look, title: str, **more: Any) -> Channel:
    """Return the options of a logarithmic vertical axis of times in ns."""
    return log_channel(low, high, {**y_title(title, look), **more, **duration_axis(low, high, look)})


def ratio_domain(analysis: Analysis, ratios: list[float]) -> tuple[float, float]:
    """Return the range of a ratio axis: all the ratios, 1, and the band of differences too small to matter."""
    matters = reading.threshold(analysis) or 0.0
    given = [ratio for ratio in ratios if ratio > 0]
    return axes.padded_range([*given, 1 + matters, 1 / (1 + matters)], 0.08, log=True)


def ratio_y(analysis: Analysis, ratios: list[float], look: Look, title: str, *, limit: int = 7) -> Channel:
    """Return the options of a logarithmic axis of ratios, labelled as changes or as factors."""
    low, high = ratio_domain(analysis, ratios)
    labels = axes.axis_labels(*axes.ratio_ticks(low, high, limit))
    return log_channel(low, high, {**y_title(title, look), **labels})


def ratio_ground(analysis: Analysis) -> list[Any]:
    """Return the background of a ratio chart: the band of differences too small to matter, the line of no change."""
    import altair as alt

    ground = []
    matters = reading.threshold(analysis)
    if matters:
        band = alt.Chart(data([{"from": 1 / (1 + matters), "to": 1 + matters}]))
        ground.append(band.mark_rect(color=theme.BAND, opacity=0.16).encode(y=alt.Y("from:Q"), y2=alt.Y2("to")))
    line = alt.Chart(data([{"one": 1}])).mark_rule(color=theme.INK, strokeWidth=1)
    return [*ground, line.encode(y=alt.Y("one:Q"))]


def dots_with_intervals(rows: Any, x: Any, y: Any, ends: tuple[Any, Any], colour: Any) -> list[Any]:
    """Return layers of a dot per row over the line of its interval; `ends`: encodings of the interval's ends."""
    import altair as alt

    return [
        rows.mark_rule(strokeWidth=1.5).encode(x=x, y=ends[0], y2=ends[1], color=colour),
        rows.mark_point(filled=True, size=42, opacity=1, aria=True).encode(
            x=x, y=y, color=colour, description=alt.Description("tip:N")
        ),
    ]


def fixed_position(**pixels: int | str) -> JsonObject:
    """Return encodings of `x` and `y` as fixed positions in the frame: pixels from its corner, or `width`."""
    import altair as alt

    channel: JsonObject = {"x": alt.XValue, "y": alt.YValue}
    return {name: channel[name](value) for name, value in pixels.items()}


def ratio_sides(above: str, below: str) -> Any:
    """Return a text above the right end of the frame that explains both sides of the line."""
    import altair as alt

    mark = alt.Chart(data([{"words": f"↑ {above}   ↓ {below}"}])).mark_text(
        align="right", baseline="bottom", dy=-9, color=theme.SOFT, fontStyle="italic"
    )
    return mark.encode(**fixed_position(x="width", y=0), text=alt.Text("words:N"))
