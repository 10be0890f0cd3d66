"""Figure of the sessions' time: one bar per arm, waits by class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypedDict

from dbdyno.pages import format as fmt
from dbdyno.pages import reading
from dbdyno.pages.reading import Analysis
from dbdyno.report.figures import axes, base, theme, views

_Share = TypedDict("_Share", {"arm": str, "class": str, "event": str, "share": float})
"""A class of waits, or one of its events, with its share of an arm's session time."""


class _Part(_Share):
    """A share as a part of the arm's bar."""

    start: float
    end: float
    tip: str
    ink: str


def draw(analysis: Analysis, look: theme.Look = theme.WIDE) -> Any | None:
    """Return the chart, or None if the analysis has no `figures.waits`."""
    import altair as alt

    parts = _parts(analysis)
    if not parts:
        return None
    arms = list(dict.fromkeys(part["arm"] for part in parts))
    order = _classes(parts)
    end = max(1.0, *(part["end"] for part in parts))
    x = alt.X(
        "start:Q",
        scale={"domain": [0, end], "nice": False},
        axis={
            "title": "share of session time",
            **axes.axis_labels(axes.linear_ticks(0, end, 5), axes.percent_label),
        },
    )
    y = alt.Y(
        "arm:N",
        sort=arms,
        axis={"title": None, "labels": False, "minExtent": 0},
        scale={"paddingInner": 0.5, "paddingOuter": 0.35},
    )
    colour = alt.Color(
        "class:N",
        sort=order,
        scale={"domain": order, "range": [theme.class_colour(name) for name in order]},
        legend=base.square_legend(order, look, 8),
    )
    chart = alt.Chart(base.data(parts))
    bars = chart.mark_bar(stroke=theme.PAPER, strokeWidth=1, aria=True).encode(
        x=x, x2=alt.X2("end"), y=y, color=colour, description=alt.Description("tip:N")
    )
    fitting = [
        {**part, "words": _fitting_text(part, (part["end"] - part["start"]) / end * look.plot)} for part in parts
    ]
    inside = (
        alt.Chart(base.data([part for part in fitting if part["words"]]))
        .mark_text(align="left", dx=5, color=theme.PAPER, fontSize=11)
        .encode(x=x, y=y, text=alt.Text("words:N"), color=alt.Color("ink:N", scale=None))
    )
    names = (
        alt.Chart(base.data([{"arm": arm} for arm in arms]))
        .mark_text(align="left", baseline="bottom", color=theme.INK, dy=-17, fontWeight=600)
        .encode(**base.fixed_position(x=0), y=y, text=alt.Text("arm:N"))
    )
    layered = views.layer(bars, inside, names, width=look.width - 30, height=alt.Step(58))
    return theme.finish(layered, FIGURE.title, FIGURE.how_to_read, look)


def _parts(analysis: Analysis) -> list[_Part]:
    """Return one part per arm, class and event, laid end to end; events of a class are adjacent."""
    names = reading.arm_names(analysis)
    given: list[_Share] = [
        {
            "arm": reading.arm_name(names, row.get("arm")),
            "class": fmt.line(row.get("class") or "other", 24),
            "event": fmt.line(row.get("event") or "", 40),
            "share": fmt.number(row.get("share")) or 0.0,
        }
        for row in reading.entries(analysis, "figures", "waits")
    ]
    order = _classes(given)
    parts: list[_Part] = []
    for arm in dict.fromkeys(row["arm"] for row in given):
        mine = [row for row in given if row["arm"] == arm and row["share"] > 0]
        mine.sort(key=lambda row: (order.index(row["class"]), -row["share"]))
        reached = 0.0
        for row in mine:
            is_named = row["event"] and row["event"].lower() != row["class"].lower()
            what = f"{row['class']}, {row['event']}" if is_named else row["class"]
            tip = f"{arm}: {what} {fmt.percent(row['share'])}"
            ink = theme.INK if row["class"].lower() == "idle" else theme.PAPER
            parts.append({**row, "start": reached, "end": reached + row["share"], "tip": tip, "ink": ink})
            reached += row["share"]
    return parts


def _fitting_text(part: _Part, pixels: float) -> str:
    """Return the text that fits into a part of the bar: class and share, the share alone, or ""."""
    share = fmt.percent(part["share"])
    for words in (f"{part['class']} {share}", share):
        if len(words) * 6.2 + 10 < pixels:
            return words
    return ""


def _classes(rows: Sequence[_Share]) -> list[str]:
    """Return the classes, the largest over all arms first, idle last."""
    totals: dict[str, float] = {}
    for row in rows:
        totals[row["class"]] = totals.get(row["class"], 0.0) + row["share"]
    return sorted(totals, key=lambda name: (name.lower() == "idle", -totals[name]))


FIGURE = base.Figure(
    name="waits",
    title="Where the sessions' time went",
    how_to_read="Each bar is an arm's session time, split by what the sessions were doing "
    "or waiting for when they were sampled. A part that grew from one bar to "
    "the next shows where the change costs time.",
    draw=draw,
)
