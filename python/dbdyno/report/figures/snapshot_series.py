"""An interval over time: a strip per metric, one bar from each snapshot to the next."""

from __future__ import annotations

from typing import Any

from dbdyno.pages import format as fmt
from dbdyno.pages import reading
from dbdyno.pages.reading import Analysis
from dbdyno.report.figures import axes, base, theme, views

SHOWN = ("tps", "qps", "aas", "mean", "reads", "wal", "redo", "temp", "lock_waits")
"""The metrics that are drawn, in this order: those that the model has and that are not all zero."""
_LABELS = {
    "ns": axes.duration_label,
    "bytes_per_s": axes.size_label,
    "ratio": axes.percent_label,
}


def draw(analysis: Analysis, look: theme.Look = theme.WIDE) -> Any | None:
    """The chart, or None for fewer than three points."""
    import altair as alt

    at = reading.dig(analysis, "series", "at_us") or []
    known = {m["name"]: m for m in reading.entries(analysis, "series", "metrics")}
    first = _start(analysis, at)
    shown = [known[n] for n in SHOWN if n in known and sum(bool(v) for v in known[n]["values"]) > 0]
    if len(at) < 3 or not shown:
        return None
    ends = (0.0, (at[-1] - first) / 1e6)
    ticks = axes.seconds_ticks(*ends, 5 if look.narrow else 10)
    panels = []
    for metric in shown:
        is_last = metric is shown[-1]
        below = {"title": "time since the first snapshot", **axes.labelled(ticks, axes.seconds_label)}
        points = _points(metric, at, first)
        top = max((p["value"] for p in points), default=0) or 1
        y_axis = {**base.y_title("", look), **_ticks(metric, top)}
        panels.append(
            alt.Chart(
                base.data(points),
                width=look.plot,
                height=look.height(64),
                title={"text": metric["label"], "fontSize": 12, "offset": 4, "anchor": "start", "frame": "group"},
            )
            .mark_rect(color=theme.OTHERS[1], aria=len(points) < 200)
            .encode(
                x=alt.X(
                    "from:Q", scale={"domain": ends, "nice": False, "zero": False}, axis=below if is_last else None
                ),
                x2=alt.X2("to"),
                y=alt.Y("zero:Q", scale={"domain": [0, top * 1.08], "nice": False}, axis=y_axis),
                y2=alt.Y2("value"),
                description=alt.Description("tip:N"),
            )
        )
    return theme.finish(views.vconcat(*panels, spacing=12), FIGURE.title, FIGURE.how_to_read, look)


def _start(analysis: Analysis, at: list[Any]) -> float:
    """The instant of the first snapshot, microseconds since 1970."""
    seconds = fmt.number(reading.dig(analysis, "facts", "seconds")) or 0.0
    return (at[-1] if at else 0) - seconds * 1e6


def _ticks(metric: dict[str, Any], top: float) -> dict[str, Any]:
    label = _LABELS.get(str(metric.get("unit")), lambda value: fmt.significant(value, 3))
    return axes.labelled([0, top / 2, top], label)


def _points(metric: dict[str, Any], at: list[Any], first: float) -> list[dict[str, Any]]:
    """One bar per sub-interval; none where its value is not known."""
    points = []
    before = 0.0
    for moment, value in zip(at, metric["values"], strict=True):
        given = fmt.number(value)
        seconds = (moment - first) / 1e6
        if given is not None:
            tip = f"{axes.seconds_label(round(seconds, 1))}: {fmt.significant(given, 4)}"
            points.append({"from": before, "to": seconds, "zero": 0, "value": given, "tip": tip})
        before = seconds
    return points


FIGURE = base.Figure(
    "snapshot_series",
    "The interval over time",
    "One bar from each snapshot to the next: the mean of that time, per second where it is a count."
    " A gap is a time whose numbers are not known.",
    draw,
)
