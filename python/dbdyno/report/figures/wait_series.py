"""Figure of one event's waits over time: mean, p99, maximum and number per interval."""

from __future__ import annotations

from typing import Any

from dbdyno.base.json_types import TableRow
from dbdyno.pages import format as fmt
from dbdyno.pages import reading
from dbdyno.pages.reading import Analysis
from dbdyno.report.figures import axes, base, theme, views

LINES = (
    ("longest", "max_ns", theme.OTHERS[0]),
    ("p99", "p99_ns", theme.OTHERS[2]),
    ("mean", "mean_ns", theme.OTHERS[1]),
)


def draw(analysis: Analysis, look: theme.Look = theme.WIDE) -> Any | None:
    """Return the chart, or None for fewer than three intervals."""
    import altair as alt

    rows = reading.entries(analysis, "series", "rows")
    every = (fmt.number(reading.dig(analysis, "series", "every_ns")) or 1e9) / 1e9
    if len(rows) < 3:
        return None
    start = rows[0]["at_ns"]
    ends = (0.0, (rows[-1]["at_ns"] - start) / 1e9 + every)
    ticks = axes.seconds_ticks(*ends, 5 if look.narrow else 10)
    x_scale = {"domain": ends, "nice": False, "zero": False}
    below = {"title": "time since the first wait", **axes.axis_labels(ticks, axes.seconds_label)}
    points = [
        {
            "at": (row["at_ns"] - start) / 1e9 + every / 2,
            "ns": max(row[key], 1),
            "line": name,
            "tip": f"{axes.seconds_label(round((row['at_ns'] - start) / 1e9, 3))}: {name} {fmt.duration(row[key])}",
        }
        for row in rows
        for name, key, _ in LINES
    ]
    low, high = axes.padded_range([point["ns"] for point in points], 0.05, log=True)
    names = [name for name, _, _ in LINES]
    colour = alt.Color(
        "line:N",
        sort=names,
        scale={"domain": names, "range": [c for _, _, c in LINES]},
        legend={"offset": base.LEGEND_OVER_TITLE},
    )
    chart = alt.Chart(base.data(points))
    y = alt.Y("ns:Q", **base.duration_y(low, high, look, "length of a wait"))
    x = alt.X("at:Q", scale=x_scale, axis=None)
    lines = views.layer(
        chart.mark_line(strokeWidth=1.6).encode(x=x, y=y, color=colour),
        chart.mark_point(filled=True, size=24, opacity=1, aria=True).encode(
            x=x, y=y, color=colour, description=alt.Description("tip:N")
        ),
        width=look.plot,
        height=look.height(220),
    )
    counts = _counts(rows, start, every, alt.X("from:Q", scale=x_scale, axis=below), look)
    both = views.vconcat(lines, counts, spacing=24)
    return theme.finish(both, FIGURE.title, FIGURE.how_to_read, look)


def _counts(rows: list[TableRow], start: int, every: float, x: Any, look: theme.Look) -> Any:
    import altair as alt

    bars = [
        {
            "from": (row["at_ns"] - start) / 1e9,
            "to": (row["at_ns"] - start) / 1e9 + every,
            "count": row["count"],
            "zero": 0,
            "tip": f"{fmt.count(row['count'])} waits",
        }
        for row in rows
    ]
    most = max(bar["count"] for bar in bars)
    axis = {**base.y_title("waits per interval", look), **axes.axis_labels(axes.linear_ticks(0, most, 3), fmt.count)}
    return (
        alt.Chart(base.data(bars), width=look.plot, height=look.height(80))
        .mark_rect(color=theme.BASELINE, aria=True)
        .encode(
            x=x,
            x2=alt.X2("to"),
            y=alt.Y("zero:Q", scale={"domain": [0, most], "nice": False}, axis=axis),
            y2=alt.Y2("count"),
            description=alt.Description("tip:N"),
        )
    )


FIGURE = base.Figure(
    name="wait_series",
    title="The waits over time",
    how_to_read="Above: mean, p99 and longest wait of each interval. Below: its number of waits.",
    draw=draw,
)
