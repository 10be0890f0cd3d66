"""Figure of sessions over time: per interval a stacked bar of CPU and classes of waits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

from dbdyno.pages import format as fmt
from dbdyno.pages import reading
from dbdyno.pages.reading import Analysis
from dbdyno.report.figures import axes, base, theme, views

SESSIONS_MOST = 12
REST, IDLE = "unaccounted", "idle"


def draw(analysis: Analysis, look: theme.Look = theme.WIDE) -> Any | None:
    """Return the chart, a panel per session (the first twelve), or None if there are no sessions."""
    import altair as alt

    sessions = [s for s in reading.entries(analysis, "sessions") if s.get("bins")][:SESSIONS_MOST]
    if not sessions:
        return None
    order = [str(entry.get("class")) for entry in reading.entries(analysis, "classes")]
    every = fmt.number(analysis.get("every_ns")) or 1e9
    origin = analysis.get("origin_ns") or sessions[0]["bins"][0]["at_ns"]
    parts = [_parts(session, order, every, origin) for session in sessions]
    if not any(parts):
        return None
    ends = (
        min(p["from"] for part in parts for p in part),
        max(p["to"] for part in parts for p in part),
    )
    ticks = axes.seconds_ticks(*ends, 5 if look.narrow else 10)
    shown = [name for name in order if name != IDLE]
    height = look.height({1: 240, 2: 150, 3: 110}.get(len(sessions), 64))
    colour = alt.Color(
        "class:N",
        sort=shown,
        scale={"domain": shown, "range": [_colour(name) for name in shown]},
        legend=base.square_legend(shown, look, 8),
    )
    panels = []
    for session, part in zip(sessions, parts, strict=True):
        is_last = session is sessions[-1]
        below = {"title": "time since the beginning", **axes.axis_labels(ticks, axes.seconds_label)}
        name = fmt.line(session.get("name") or f"session {session.get('session')}", 40)
        y_axis = {**base.y_title("", look), **axes.axis_labels([0, 0.5, 1.0], axes.percent_label)}
        panels.append(
            alt.Chart(
                base.data(part),
                width=look.plot,
                height=height,
                title=base.panel_title(name),
            )
            .mark_rect(aria=len(part) < 400, clip=True)
            .encode(
                x=alt.X(
                    "from:Q", scale={"domain": ends, "nice": False, "zero": False}, axis=below if is_last else None
                ),
                x2=alt.X2("to"),
                y=alt.Y("low:Q", scale={"domain": [0, 1], "nice": False}, axis=y_axis),
                y2=alt.Y2("high"),
                color=colour,
                description=alt.Description("tip:N"),
            )
        )
    stacked = views.vconcat(*panels, spacing=10).resolve_scale(color="shared")
    return theme.finish(stacked, FIGURE.title, FIGURE.how_to_read, look)


def _colour(name: str) -> str:
    return theme.SOFT if name == REST else theme.class_colour(name)


_Part = TypedDict("_Part", {"class": str, "from": float, "to": float, "low": float, "high": float, "tip": str})
"""Rectangle of one class in an interval, stacked on the classes below it."""


def _parts(session: Mapping[str, Any], order: list[str], every: float, origin: int) -> list[_Part]:
    """Return the classes of each interval, stacked, as shares of the interval."""
    parts: list[_Part] = []
    for entry in session["bins"]:
        reached = 0.0
        start = (entry["at_ns"] - origin) / 1e9
        for name in order:
            share = (entry["classes"].get(name) or 0.0) / every
            if share <= 0.0005 or name == IDLE:
                continue
            parts.append(
                {
                    "class": name,
                    "from": start,
                    "to": start + every / 1e9,
                    "low": reached,
                    "high": min(reached + share, 1.0),
                    "tip": f"{axes.seconds_label(round(start, 6))}: {name} {fmt.percent(share)}",
                }
            )
            reached += share
    return parts


FIGURE = base.Figure(
    name="timeline",
    title="What the sessions did over time",
    how_to_read="Each bar is an interval; its colours show how it was spent: CPU, wait classes, "
    "and unaccounted time. White: idle.",
    draw=draw,
)
