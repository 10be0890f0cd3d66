"""Figure of the distribution of one event's waits on a log axis: by number and by time."""

from __future__ import annotations

from typing import Any

from dbdyno.pages import format as fmt
from dbdyno.pages import reading
from dbdyno.pages.reading import Analysis
from dbdyno.report.figures import axes, base, theme, views


def draw(analysis: Analysis, look: theme.Look = theme.WIDE) -> Any | None:
    """Return the chart, or None if the analysis has no `histogram`."""
    import altair as alt

    given = reading.dig(analysis, "histogram")
    if not given:
        return None
    buckets = reading.rows(given, "histogram", ("low_ns", "high_ns", "count", "total_ns"))
    if not buckets:
        return None
    low, high = buckets[0]["low_ns"], buckets[-1]["high_ns"]
    whole = sum(bucket["count"] for bucket in buckets) or 1
    time = sum(bucket["total_ns"] for bucket in buckets) or 1
    panels = []
    named = (
        ("share of the waits", "count", whole, theme.OTHERS[1]),
        ("share of their time", "total_ns", time, theme.OTHERS[0]),
    )
    for title, key, total, colour in named:
        bars = [
            {
                "low": bucket["low_ns"],
                "high": bucket["high_ns"],
                "share": bucket[key] / total,
                "zero": 0,
                "tip": f"{fmt.duration(bucket['low_ns'])} to {fmt.duration(bucket['high_ns'])}: "
                f"{fmt.count(bucket['count'])} waits, {fmt.duration(bucket['total_ns'])}",
            }
            for bucket in buckets
            if bucket["count"]
        ]
        is_last = key == "total_ns"
        axis = {"title": "length of a wait, logarithmic", "grid": True, **base.duration_axis(low, high, look)}
        ticks = axes.linear_ticks(0, max(bar["share"] for bar in bars) or 1, 4)
        panels.append(
            alt.Chart(base.data(bars), width=look.plot, height=look.height(130))
            .mark_rect(color=colour, aria=True, stroke=theme.PAPER, strokeWidth=0.5)
            .encode(
                x=alt.X(
                    "low:Q",
                    scale={"type": "log", "domain": [low, high], "nice": False},
                    axis=axis if is_last else None,
                ),
                x2=alt.X2("high"),
                y=alt.Y(
                    "zero:Q",
                    scale={"domain": [0, max(bar["share"] for bar in bars) or 1], "nice": False},
                    axis={**base.y_title(title, look), **axes.axis_labels(ticks, axes.percent_label)},
                ),
                y2=alt.Y2("share"),
                description=alt.Description("tip:N"),
            )
        )
    return theme.finish(views.vconcat(*panels, spacing=26), FIGURE.title, FIGURE.how_to_read, look)


FIGURE = base.Figure(
    name="wait_distribution",
    title="How long the waits were",
    how_to_read="Above: how many waits had each length. Below: how much of the time they took. A "
    "few long waits can take most of the time.",
    draw=draw,
)
