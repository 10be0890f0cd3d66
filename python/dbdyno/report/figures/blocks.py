"""Figure of the blocks, the units of inference: one ratio per block in order of time."""

from __future__ import annotations

import math
from typing import Any, TypedDict

from dbdyno.pages import format as fmt
from dbdyno.pages import reading
from dbdyno.pages.reading import Analysis
from dbdyno.report.figures import axes, base, theme, views


class _Point(TypedDict):
    """A block: the ratio of an arm to its base in a metric, and the text that marks it."""

    arm: str
    metric: str
    at: float
    ratio: float
    mark: str
    tip: str


class _Mean(TypedDict):
    """The mean ratio of an arm with its interval."""

    arm: str
    mean: float
    low: float
    high: float


def draw(analysis: Analysis, look: theme.Look = theme.WIDE) -> Any | None:
    """Return the chart, or None if the analysis has no `figures.blocks`."""
    points = _points(analysis)
    if not points:
        return None
    low, high = axes.padded_range([point["at"] for point in points], 0.03, log=False)
    panels = list(dict.fromkeys((point["metric"], point["arm"]) for point in points))
    height = look.height({1: 220, 2: 150, 3: 130}.get(len(panels), 96))
    several = len({arm for _, arm in panels}) > 1
    charts = []
    for metric, arm in panels:
        x = base.run_time_x(low, high, look, is_last=(metric, arm) == panels[-1])
        mine = [point for point in points if (point["metric"], point["arm"]) == (metric, arm)]
        label, up, down = _words(analysis, metric)
        title = f"{label} · {arm}" if several else label
        layers = [*_layers(analysis, mine, x, title, look), base.ratio_sides(up, down)]
        charts.append(views.layer(*layers, width=look.plot, height=height))
    return theme.finish(views.vconcat(*charts, spacing=22), FIGURE.title, FIGURE.how_to_read, look)


def _layers(analysis: Analysis, points: list[_Point], x: Any, title: str, look: theme.Look) -> list[Any]:
    """Return one panel: the background, the mean with its interval, the blocks."""
    import altair as alt

    summary = _summary(analysis, points[0]["metric"], points[0]["arm"])
    ratios = [point["ratio"] for point in points]
    ratios += [end for row in summary for end in (row["low"], row["high"])]
    axis = base.ratio_y(analysis, ratios, look, title, limit=5)
    y = alt.Y("ratio:Q", **axis)
    colour = alt.Color("arm:N", scale=base.arm_scale(analysis), legend=None)
    mean = alt.Chart(base.data(summary))
    plain = alt.Chart(base.data([point for point in points if not point["mark"]]))
    marked = alt.Chart(base.data([point for point in points if point["mark"]]))
    dots = {"x": x, "y": y, "color": colour, "description": alt.Description("tip:N")}
    return [
        *base.ratio_ground(analysis),
        mean.mark_rect(opacity=0.2).encode(y=alt.Y("low:Q", **axis), y2=alt.Y2("high"), color=colour),
        mean.mark_rule(strokeWidth=1.8).encode(y=alt.Y("mean:Q", **axis), color=colour),
        plain.mark_point(filled=True, size=34, opacity=0.9, aria=True).encode(**dots),
        marked.mark_point(filled=False, size=60, shape="diamond", opacity=1, aria=True).encode(**dots),
        *_marks(points, x, y),
    ]


def _marks(points: list[_Point], x: Any, y: Any) -> list[Any]:
    """Return the texts that mark blocks, placed towards the middle of the panel, where there is no other text."""
    import altair as alt

    middle = math.sqrt(min(point["ratio"] for point in points) * max(point["ratio"] for point in points))
    halves = [[p for p in points if p["mark"] and (p["ratio"] > middle) == high] for high in (True, False)]
    return [
        alt.Chart(base.data(half)).mark_text(dy=dy, fontSize=10, limit=120).encode(x=x, y=y, text=alt.Text("mark:N"))
        for half, dy in zip(halves, (14, -11), strict=True)
        if half
    ]


def _points(analysis: Analysis) -> list[_Point]:
    points: list[_Point] = []
    for arm, entry, where in reading.figure_entries(analysis, "blocks"):
        for row in reading.rows(entry, where, ("block", "at_s", "ratio"), ("marked",)):
            if row["ratio"] <= 0:
                continue
            mark = fmt.line(row.get("marked") or "", 24)
            tip = f"{arm}: block {row['block']} {fmt.change(row['ratio'])}"
            points.append(
                {
                    "arm": arm,
                    "metric": str(entry.get("metric") or ""),
                    "at": row["at_s"],
                    "ratio": row["ratio"],
                    "mark": mark,
                    "tip": f"{tip}, {mark}" if mark else tip,
                }
            )
    return points


def _summary(analysis: Analysis, metric: str, arm: str) -> list[_Mean]:
    """Return the mean ratio with its interval as one row; an empty list if the analysis has no interval."""
    names = reading.arm_names(analysis)
    for row in reading.entries(analysis, "metrics"):
        if row.get("metric") == metric and reading.arm_name(names, row.get("arm")) == arm:
            mean, low, high = (fmt.number(row.get(key)) for key in ("ratio", "low", "high"))
            if mean and low and high:
                return [{"mean": mean, "low": low, "high": high, "arm": arm}]
    return []


def _words(analysis: Analysis, metric: str) -> tuple[str, str, str]:
    """Return the metric's label, and the words for above and below the line of no difference."""
    for row in reading.entries(analysis, "metrics"):
        if row.get("metric") == metric:
            label = fmt.line(row.get("label") or metric, 60)
            sides = ("better", "worse") if row.get("higher_is_better") else ("slower", "faster")
            return label, *sides
    return fmt.line(metric, 60), "more", "less"


FIGURE = base.Figure(
    name="blocks",
    title="Block by block, over time",
    how_to_read="Each dot compares the arms within one block. Line and shade: the mean over "
    "the blocks and its interval. Scatter is noise between blocks; "
    "a slope would be drift. Hollow: a marked block.",
    draw=draw,
)
