"""Figure of a flash probe: requests per second by phase and round, and latency over time, on the same time axis."""

from __future__ import annotations

from typing import Any, TypedDict

from dbdyno.base.json_types import TableRow
from dbdyno.pages import format as fmt
from dbdyno.pages import reading
from dbdyno.pages.reading import Analysis
from dbdyno.report.figures import axes, base, theme, views

LINES = (("max_ns", "slowest", theme.FAINT, 1.0), ("p99_ns", "p99", "", 1.6), ("p50_ns", "median", "", 4.0))
PHASES = ("first write", "read", "overwrite")


class _Phase(TypedDict):
    """A phase of the probe, or a round of it."""

    phase: str
    round: int | None
    at_s: float
    seconds: float
    per_s: float


def draw(analysis: Analysis, look: theme.Look = theme.WIDE) -> Any | None:
    """Return the chart, or None if there was no round of overwriting."""
    phases = [one for one in reading.list_of(_Phase, analysis, "phases") if one.get("phase") in PHASES]
    times = [one for one in reading.entries(analysis, "times") if one.get("phase") in PHASES]
    if analysis.get("kind") != "flash" or not times or not any(one.get("phase") == "overwrite" for one in phases):
        return None
    end = max(float(one["at_s"] + one["seconds"]) for one in phases)
    ticks = axes.seconds_ticks(0, end, 4 if look.narrow else 9)
    across = {"domain": [0, end], "nice": False, "zero": False}
    bare = {"title": None, "labels": False, "ticks": False, "domain": False, "values": ticks}
    label = {"title": "time since the first request", **axes.axis_labels(ticks, axes.seconds_label)}
    rates = _rates(phases, {"scale": across, "axis": bare}, look)
    return theme.finish(
        views.vconcat(rates, _latency(times, {"scale": across, "axis": label}, look), spacing=22),
        FIGURE.title,
        FIGURE.how_to_read,
        look,
    )


def _colour(look: theme.Look) -> Any:
    import altair as alt

    scale = {"domain": list(PHASES), "range": theme.arm_colours(len(PHASES), 0)}
    return alt.Color("phase:N", title=None, scale=scale, legend={"columns": look.columns(list(PHASES), 3)})


def _rates(phases: list[_Phase], across: base.Channel, look: theme.Look) -> Any:
    import altair as alt

    top = max(one["per_s"] for one in phases) * 1.08
    labels = axes.axis_labels(axes.linear_ticks(0, top, 4), lambda value: fmt.significant(value, 3))
    y = alt.Y("per_s:Q", scale={"domain": [0, top], "nice": False}, axis={**base.y_title("per second", look), **labels})
    rows = [
        {
            "phase": one["phase"],
            "at": one["at_s"],
            "until": one["at_s"] + one["seconds"],
            "per_s": one["per_s"],
            "tip": f"{one['phase']} {one.get('round') or ''}: {fmt.significant(one['per_s'], 3)} per second",
        }
        for one in phases
    ]
    bars = alt.Chart(base.data(rows)).mark_rule(strokeWidth=4, aria=True)
    drawn = bars.encode(
        x=alt.X("at:Q", **across), x2=alt.X2("until"), y=y, color=_colour(look), description=alt.Description("tip:N")
    )
    return views.layer(drawn, width=look.plot, height=look.height(110))


def _latency(times: list[TableRow], across: base.Channel, look: theme.Look) -> Any:
    import altair as alt

    values = [one[name] for one in times for name, *_ in LINES if one[name] > 0]
    low, high = axes.padded_range(values, 0.05, log=True)
    ticks = axes.axis_labels(axes.log_ticks(low, high, 6), axes.duration_label)
    y = alt.Y("ns:Q", **base.log_channel(low, high, {**base.y_title("latency: median, p99, slowest", look), **ticks}))
    layers = []
    for name, word, tone, width in LINES:
        rows = [
            {
                "at": one["at_s"],
                "ns": one[name],
                "phase": one["phase"],
                "tip": f"{one['phase']}, {word}: {fmt.duration(one[name])} at {axes.seconds_label(one['at_s'])}",
            }
            for one in times
            if one[name] > 0
        ]
        chart = alt.Chart(base.data(rows))
        x = alt.X("at:Q", **across)
        tips = alt.Description("tip:N")
        dots = chart.mark_point(filled=True, size=width * 9, opacity=0.5 if tone else 1, aria=True)
        layers.append(dots.encode(x=x, y=y, color=alt.value(tone) if tone else _colour(look), description=tips))
    return views.layer(*layers, width=look.plot, height=look.height(190))


FIGURE = base.Figure(
    "flash",
    "Reads and overwrites over time",
    "Above: requests per second of each phase and round. Below: latency in each tenth of a phase; large dots are "
    "medians,"
    " small ones the 99th percentile, grey ones the slowest request.",
    draw,
)
