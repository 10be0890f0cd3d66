"""Figure of a trend: all runs of a plan in order of time, a panel per arm, with the levels between its changes."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, TypedDict

from dbdyno.pages import format as fmt
from dbdyno.pages import reading
from dbdyno.pages.reading import Analysis
from dbdyno.report.figures import axes, base, theme, views

PANELS_MOST = 8


class _Point(TypedDict):
    """A run at its position in order of time, with the interval of its value."""

    at: int
    value: float
    low: float
    high: float
    counts: bool
    tip: str


_Level = TypedDict("_Level", {"from": float, "to": float, "value": float})
"""A level between two changes."""


class _Change(TypedDict, total=False):
    """The run at which a new level begins, and the first and last run at which it may begin."""

    run: int
    first: int
    last: int


class _Arm(TypedDict, total=False):
    """An arm that all runs have."""

    name: str
    base: str | None
    changes: list[_Change]


class _Run(TypedDict, total=False):
    """A run: for each arm its value, the ends of its interval, and its share of failed transactions if too large."""

    started_at: str | None
    values: dict[str, float | None]
    lows: dict[str, float | None]
    highs: dict[str, float | None]
    failed: dict[str, str]
    comparable: bool


def draw(analysis: Analysis, look: theme.Look = theme.WIDE) -> Any | None:
    """Return the chart, or None for fewer than three runs."""
    runs = reading.list_of(_Run, analysis, "runs")
    arms = reading.list_of(_Arm, analysis, "arms")[:PANELS_MOST]
    panels = [(arm, points) for arm in arms if len(points := _points(runs, arm)) >= 3]
    if analysis.get("kind") != "trend" or not panels:
        return None
    labels = {"ns": axes.duration_label, "ratio": axes.change_label}
    label = labels.get(str(analysis.get("unit")), lambda value: fmt.significant(value, 3))
    colours = theme.arm_colours(len(arms), 0)
    charts = [
        _panel(arm, points, (len(runs), _days(runs, look) if arm is panels[-1][0] else None), label, colour, look)
        for (arm, points), colour in zip(panels, colours, strict=False)
    ]
    return theme.finish(views.vconcat(*charts, spacing=20), FIGURE.title, FIGURE.how_to_read, look)


def _panel(
    arm: _Arm,
    points: list[_Point],
    across: tuple[int, dict[str, object] | None],
    label: Callable[[float], str],
    colour: str,
    look: theme.Look,
) -> Any:
    """Return the panel of one arm: the levels as lines, each run with its interval."""
    import altair as alt

    count, days = across
    low, high = axes.padded_range([end for point in points for end in (point["low"], point["high"])], 0.08, log=False)
    ticks = axes.linear_ticks(low, high, 4)
    bare = {"title": None, "labels": False, "ticks": False, "domain": False, "grid": False}
    x_scale = {"domain": [-0.5, count - 0.5], "nice": False, "zero": False}
    x = alt.X("at:Q", scale=x_scale, axis=bare if days is None else days)
    y_scale = {"domain": [low, high], "nice": False, "zero": False}
    against = f" to {fmt.line(arm.get('base') or '', 20)}" if arm.get("base") else ""
    y_axis = {**base.y_title(fmt.line(arm.get("name") or "", 30) + against, look), **axes.axis_labels(ticks, label)}
    y = alt.Y("value:Q", scale=y_scale, axis=y_axis)
    levels = alt.Chart(base.data(_levels(points, [int(one["run"]) for one in arm.get("changes") or []], count)))
    begun = [
        {"from": one["first"] - 0.5, "to": one["last"] + 0.5} for one in arm.get("changes") or [] if "first" in one
    ]
    layers = [
        alt.Chart(base.data(begun))
        .mark_rect(color=theme.BAND, opacity=0.16)
        .encode(x=alt.X("from:Q"), x2=alt.X2("to")),
        levels.mark_rule(color=theme.INK, strokeWidth=1.4).encode(x=alt.X("from:Q"), x2=alt.X2("to"), y=y),
    ]
    for counts in (True, False):
        mine = [point for point in points if point["counts"] is counts]
        chart = alt.Chart(base.data(mine))
        tone = colour if counts else theme.FAINT
        layers += [
            chart.mark_rule(color=tone, strokeWidth=1.6).encode(
                x=x, y=alt.Y("low:Q", scale=y_scale), y2=alt.Y2("high")
            ),
            chart.mark_point(color=tone, filled=counts, size=38, opacity=1, aria=True).encode(
                x=x, y=y, description=alt.Description("tip:N")
            ),
        ]
    return views.layer(*layers, width=look.plot, height=look.height(150))


def _points(runs: list[_Run], arm: _Arm) -> list[_Point]:
    points: list[_Point] = []
    name, base = str(arm.get("name") or ""), arm.get("base")
    for at, run in enumerate(runs):
        value = fmt.number((run.get("values") or {}).get(name))
        if value is None:
            continue
        ends = [fmt.number((of or {}).get(name)) for of in (run.get("lows"), run.get("highs"))]
        day = str(run.get("started_at") or "")[:16].replace("T", " ")
        points.append(
            {
                "at": at,
                "value": value,
                "low": value if ends[0] is None else ends[0],
                "high": value if ends[1] is None else ends[1],
                "counts": bool(run.get("comparable")) and not {name, base} & set(run.get("failed") or {}),
                "tip": f"{day}: {fmt.significant(value, 4)}",
            }
        )
    return points


def _levels(points: list[_Point], changes: list[int], count: int) -> list[_Level]:
    """Return a line per stretch between changes, at the median of its runs."""
    ends = [0, *changes, count]
    found: list[_Level] = []
    for begin, end in itertools.pairwise(ends):
        own = sorted(point["value"] for point in points if begin <= point["at"] < end and point["counts"])
        if own:
            found.append({"from": begin - 0.5, "to": end - 0.5, "value": own[len(own) // 2]})
    return found


def _days(runs: list[_Run], look: theme.Look) -> dict[str, object]:
    """Return the axis of runs: some are labelled with their day, or with their time if all are from one day."""
    most = 4 if look.narrow else 9
    step = max(1, -(-len(runs) // most))
    shown = [float(at) for at in range(0, len(runs), step)]
    moments = {at: str(runs[int(at)].get("started_at") or "") for at in shown}
    days = {moment[:10] for moment in moments.values()}
    part, title = slice(0, 10), "runs in order of time"
    if len(days) == 1:
        part, title = slice(11, 16), f"runs of {days.pop()} in order of time (UTC)"
    return {"title": title, "grid": False, **axes.axis_labels(shown, lambda at: moments[at][part])}


FIGURE = base.Figure(
    "trend",
    "The runs in order of time",
    "Each dot is a run with the interval of its mean over blocks (of the ratio to the base arm, if there is one); a"
    " line is the level between two changes, a band the runs with which a change may have begun. Hollow and grey: a"
    " run that is not used to find changes: its machine was in another state, or the arm failed.",
    draw,
)
