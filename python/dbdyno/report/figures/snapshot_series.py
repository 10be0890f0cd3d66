"""Figure of an interval, or of two periods, over time: a strip per metric, one bar between consecutive snapshots."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypedDict

from dbdyno.pages import format as fmt
from dbdyno.pages import reading
from dbdyno.pages.reading import Analysis
from dbdyno.report.figures import axes, base, clock, session_history, theme, views

SHOWN = ("tps", "qps", "aas", "mean", "reads", "wal", "redo", "temp", "lock_waits")
"""Metrics that are drawn, in this order, if the model has them and they are not all zero."""
GAP_MOST = 0.25
"""Share of two periods' length; if the gap between them is longer than that, the time between them is cut out."""
_LABELS = {
    "ns": axes.duration_label,
    "bytes_per_s": axes.size_label,
    "ratio": axes.percent_label,
}
Place = Callable[[float], float]
"""Function that maps a time in microseconds since 1970 to its position on the axis in seconds."""


class _Period(TypedDict):
    """A period that is drawn, with its number of sub-intervals."""

    name: str
    from_us: float
    to_us: float
    points: int


class _Metric(TypedDict):
    """A metric with its value by sub-interval."""

    name: str
    label: str
    unit: str
    values: list[float | None]


_Bar = TypedDict("_Bar", {"from": float, "to": float, "zero": int, "value": float, "period": str, "tip": str})
"""A sub-interval with its value."""


def draw(analysis: Analysis, look: theme.Look = theme.WIDE) -> Any | None:
    """Return the chart, or None for fewer than three points."""
    import altair as alt

    at = reading.dig(analysis, "series", "at_us") or []
    known = {m["name"]: m for m in reading.list_of(_Metric, analysis, "series", "metrics")}
    shown = [known[n] for n in SHOWN if n in known and sum(bool(v) for v in known[n]["values"]) > 0]
    if len(at) < 3 or not shown:
        return None
    begun = reading.dig(analysis, "series", "from_us") or [_start(analysis, at), *at[:-1]]
    periods = _periods(analysis, begun, at)
    place, ends, below = _clock(periods, look)
    events = reading.list_of(session_history.Event, analysis, "series", "events")[: session_history.EVENTS_MOST]
    scale = {"domain": ends, "nice": False, "zero": False, "clamp": True}
    names = [one["name"] for one in periods]
    colours = {"domain": names, "range": [theme.OTHERS[1], theme.OTHERS[0]][: len(names)]}
    legend = {"columns": look.columns(names, 2), "offset": base.LEGEND_OVER_TITLE} if len(names) > 1 else None
    panels = []
    for metric in shown:
        axis = below if metric is shown[-1] and not events else None
        points = _points(metric, begun, at, periods, place)
        top = max((p["value"] for p in points), default=0) or 1
        y_axis = {**base.y_title("", look), **_ticks(metric, top)}
        panels.append(
            alt.Chart(
                base.data(points),
                width=look.plot,
                height=look.height(64),
                title=base.panel_title(metric["label"]),
            )
            .mark_rect(aria=len(points) < 200)
            .encode(
                x=alt.X("from:Q", scale=scale, axis=axis),
                x2=alt.X2("to"),
                y=alt.Y("zero:Q", scale={"domain": [0, top * 1.08], "nice": False}, axis=y_axis),
                y2=alt.Y2("value"),
                color=alt.Color("period:N", sort=names, scale=colours, legend=legend),
                description=alt.Description("tip:N"),
            )
        )
    if events:
        panels.append(session_history.lanes(events, scale, below, look, place))
    return theme.finish(views.vconcat(*panels, spacing=12), FIGURE.title, FIGURE.how_to_read, look)


def _start(analysis: Analysis, at: list[Any]) -> float:
    """Return the time of the first snapshot in microseconds since 1970."""
    seconds = fmt.number(reading.dig(analysis, "facts", "seconds")) or 0.0
    return (at[-1] if at else 0) - seconds * 1e6


def _periods(analysis: Analysis, begun: list[Any], at: list[Any]) -> list[_Period]:
    """Return the periods that are drawn: one without a name, or two."""
    given = reading.list_of(_Period, analysis, "series", "periods")
    return given or [{"name": "", "from_us": begun[0], "to_us": at[-1], "points": len(at)}]


def _clock(periods: list[_Period], look: theme.Look) -> tuple[Place, tuple[float, float], axes.Axis]:
    """Return the common time axis of all periods: position function, range, options.

    If two periods are far apart, the time between them is cut out.
    """
    early, late = (find(periods, key=lambda one: one["from_us"]) for find in (min, max))
    low, high = min(one["from_us"] for one in periods), max(one["to_us"] for one in periods)
    length = sum(one["to_us"] - one["from_us"] for one in periods)
    gap = late["from_us"] - early["to_us"]
    if gap <= GAP_MOST * length:
        return lambda at: at / 1e6, (low / 1e6, high / 1e6), clock.axis(low, high, narrow=look.narrow)
    cut = (gap - GAP_MOST / 2 * length) / 1e6

    def place(at: float) -> float:
        return at / 1e6 - (cut if at >= late["from_us"] else 0.0)

    words: dict[float, str] = {}
    for one in (early, late):
        found, step = clock.ticks(one["from_us"] / 1e6, one["to_us"] / 1e6, 2 if look.narrow else 4)
        words |= {place(tick * 1e6): clock.label(tick, step) for tick in found}
    days = " and ".join(dict.fromkeys(clock.day(one["from_us"]) for one in (early, late)))
    zone = clock.zone_name()
    title = f"{zone}, {days}, cut between" if look.narrow else f"clock time, {zone}, {days}; cut between them"
    return (
        place,
        (low / 1e6, place(high)),
        {
            "title": title,
            **axes.axis_labels(sorted(words), lambda at: words[min(words, key=lambda tick: abs(tick - at))]),
        },
    )


def _ticks(metric: _Metric, top: float) -> axes.Axis:
    label = _LABELS.get(str(metric.get("unit")), lambda value: fmt.significant(value, 3))
    return axes.axis_labels([0, top / 2, top], label)


def _points(metric: _Metric, begun: list[float], at: list[float], periods: list[_Period], place: Place) -> list[_Bar]:
    """Return one bar per sub-interval with a known value."""
    names = [one["name"] for one in periods for _ in range(one["points"])]
    points: list[_Bar] = []
    for first, last, value, name in zip(begun, at, metric["values"], names, strict=True):
        given = fmt.number(value)
        if given is not None:
            tip = f"{clock.moment(last)}: {fmt.significant(given, 4)}"
            left, right = place(first), place(first) + (last - first) / 1e6
            points.append({"from": left, "to": right, "zero": 0, "value": given, "period": name, "tip": tip})
    return points


FIGURE = base.Figure(
    "snapshot_series",
    "Over time",
    "Each bar is the mean between two snapshots; a count is per second. In a gap the numbers are not known. A diamond "
    "below is an event; its grey line is the time in which it happened.",
    draw,
)
