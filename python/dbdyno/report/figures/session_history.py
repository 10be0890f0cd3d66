"""Figure of active sessions over time, stacked by wait class; below, a lane for each kind of event."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypedDict

from dbdyno.pages import format as fmt
from dbdyno.pages import reading
from dbdyno.pages.reading import Analysis
from dbdyno.report.figures import axes, base, clock, theme, views

LANES = ("restart", "reset", "setting", "object", "checkpoint", "vacuum", "analyze", "run")
LANE = 18
"""Height of a lane in pixels."""
FIRST = ("CPU",)
"""Wait classes at the bottom of the stack, below all others."""
EVENTS_MOST = 500


Bar = TypedDict("Bar", {"from": float, "to": float, "low": float, "high": float, "class": str, "tip": str})
"""Rectangle of one wait class in one time bucket, stacked on the classes below it."""


class Class(TypedDict):
    """A wait class with its number of sessions by bucket."""

    name: str
    values: list[float | None]


class Event(TypedDict):
    """An event that happened between two samples."""

    kind: str
    what: str
    at_us: float
    after_us: float | None


def draw(analysis: Analysis, look: theme.Look = theme.WIDE) -> Any | None:
    """Return the chart, or None if no session was active."""
    import altair as alt

    at = reading.dig(analysis, "at_us") or []
    classes = order_classes(reading.list_of(Class, analysis, "classes"))
    if not at or not classes:
        return None
    width = float(reading.dig(analysis, "width_us") or 1) / 1e6
    low, high = (float(reading.dig(analysis, name)) / 1e6 for name in ("from_us", "to_us"))
    events = [one for one in reading.list_of(Event, analysis, "events") if one["kind"] in LANES][:EVENTS_MOST]
    below = clock.axis(low * 1e6, high * 1e6, narrow=look.narrow)
    scale = {"domain": [low, high], "nice": False, "zero": False, "clamp": True}
    rectangles, highest = bars(at, classes, width)
    names = [one["name"] for one in classes]
    colours = {"domain": names, "range": [theme.class_colour(name) for name in names]}
    top = max(highest, 0.001)
    y_axis = {
        **base.y_title("active sessions", look),
        **axes.axis_labels(axes.linear_ticks(0, top * 1.05, 4), lambda value: f"{value:.4g}"),
    }
    stack = (
        alt.Chart(base.data(rectangles), width=look.plot, height=look.height(210))
        .mark_rect(aria=len(rectangles) < 400)
        .encode(
            x=alt.X("from:Q", scale=scale, axis=None if events else below),
            x2=alt.X2("to"),
            y=alt.Y("low:Q", scale={"domain": [0, top * 1.05], "nice": False}, axis=y_axis),
            y2=alt.Y2("high"),
            color=alt.Color(
                "class:N",
                sort=names,
                scale=colours,
                legend={"columns": look.columns(names, 6), "offset": base.LEGEND_OVER_TITLE},
            ),
            description=alt.Description("tip:N"),
        )
    )
    panels = [stack] if not events else [stack, lanes(events, scale, below, look)]
    return theme.finish(views.vconcat(*panels, spacing=10), FIGURE.title, FIGURE.how_to_read, look)


def order_classes(classes: list[Class]) -> list[Class]:
    """Return the classes from the bottom of the stack to its top."""
    first = [one for one in classes if one["name"] in FIRST]
    return first + [one for one in classes if one["name"] not in FIRST]


def bars(at: list[float], classes: list[Class], width: float) -> tuple[list[Bar], float]:
    """Return one rectangle per bucket and class, and the height of the highest stack."""
    found: list[Bar] = []
    highest = 0.0
    for place, moment in enumerate(at):
        height = 0.0
        for one in classes:
            value = fmt.number(one["values"][place])
            if not value:
                continue
            start = moment / 1e6
            tip = f"{clock.moment(moment)}: {one['name']} {fmt.significant(value, 3)}"
            found.append(
                {
                    "from": start,
                    "to": start + width,
                    "low": height,
                    "high": height + value,
                    "class": one["name"],
                    "tip": tip,
                }
            )
            height += value
        highest = max(highest, height)
    return found, highest


def lanes(
    events: list[Event],
    scale: Mapping[str, object],
    below: Mapping[str, object],
    look: theme.Look,
    place: Callable[[float], float] = lambda at_us: at_us / 1e6,
) -> Any:
    """Return a lane for each kind of event; `place` maps a time [us] to its position on the axis."""
    import altair as alt

    kinds = [kind for kind in LANES if any(one["kind"] == kind for one in events)]
    marks = [
        {
            "from": place(one["after_us"] if one["after_us"] is not None else one["at_us"]),
            "to": place(one["at_us"]),
            "kind": one["kind"],
            "tip": f"{clock.moment(one['at_us'])}: {fmt.line(one['what'], 120)}",
        }
        for one in events
    ]
    y = alt.Y(
        "kind:N",
        sort=kinds,
        axis={
            "title": None,
            "minExtent": look.left - 6,
            "maxExtent": look.left - 6,
            "grid": True,
            "labelOverlap": False,
            "labelFontSize": 10 if look.narrow else 12,
        },
    )
    chart = alt.Chart(base.data(marks))
    spans = chart.mark_bar(height=4, color=theme.FAINT).encode(
        x=alt.X("from:Q", scale=scale, axis=below), x2=alt.X2("to"), y=y
    )
    points = chart.mark_point(filled=True, size=42, shape="diamond", opacity=1, color=theme.INK, aria=True).encode(
        x=alt.X("to:Q", scale=scale, axis=below), y=y, description=alt.Description("tip:N")
    )
    return views.layer(spans, points, width=look.plot, height=LANE * len(kinds))


FIGURE = base.Figure(
    "session_history",
    "Active sessions by wait class",
    "Each bar is the average number of sessions that worked (CPU) or waited. A gap was not sampled. A diamond below "
    "is an event; its grey line is the time in which it happened.",
    draw,
)
