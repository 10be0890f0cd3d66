"""Figure of statements as points: a property of each statement against the mean time of a call."""

from __future__ import annotations

from typing import Any, TypedDict

from dbdyno.pages import format as fmt
from dbdyno.pages import reading
from dbdyno.pages.reading import Analysis
from dbdyno.report.figures import axes, base, theme

NEEDED = ("hit_ratio", "mean_ns")


class _Point(TypedDict):
    """A point of the chart, which stands for one statement."""

    ratio: float
    ns: float
    tip: str


def draw(analysis: Analysis, look: theme.Look = theme.WIDE) -> Any | None:
    """Return the chart, or None for fewer than three points in `figures.correlation`."""
    import altair as alt

    points = _points(analysis)
    if len(points) < 3:
        return None
    times = [point["ns"] for point in points]
    low, high = axes.nonempty_range(min(times), max(times))
    ratios = [point["ratio"] for point in points]
    left = max(0.0, min(ratios) - 0.03 * (1 - min(ratios)) - 0.001)
    ticks = axes.linear_ticks(left, 1, 4 if look.narrow else 8)
    x = alt.X(
        "ratio:Q",
        scale={"domain": [left, 1 + (1 - left) * 0.02], "nice": False},
        axis={
            "title": "hit ratio of the statement",
            **axes.axis_labels(ticks, axes.percent_label),
        },
    )
    y = alt.Y("ns:Q", **base.duration_y(low, high, look, "mean time of a call, logarithmic"))
    dots = (
        alt.Chart(base.data(points), width=look.plot, height=look.height(300))
        .mark_point(filled=True, size=52, opacity=0.75, color=theme.BASELINE, aria=True)
        .encode(x=x, y=y, description=alt.Description("tip:N"))
    )
    return theme.finish(dots, FIGURE.title, FIGURE.how_to_read, look)


def _points(analysis: Analysis) -> list[_Point]:
    entry = reading.dig(analysis, "figures", "correlation")
    if not entry:
        return []
    labels = entry.get("label") or []
    rows = reading.rows(entry, "figures.correlation", NEEDED)
    return [
        {
            "ratio": row["hit_ratio"],
            "ns": row["mean_ns"],
            "tip": f"{fmt.line(label, 60)}: hit ratio {fmt.percent(row['hit_ratio'])}, "
            f"{fmt.duration(row['mean_ns'])} a call",
        }
        for row, label in zip(rows, labels, strict=False)
        if row["mean_ns"] > 0
    ]


FIGURE = base.Figure(
    name="correlation",
    title="Hit ratio and time of a call, statement by statement",
    how_to_read="Each dot is a statement. If the hit ratio measured performance, the dots "
    "would fall from the upper left to the lower right.",
    draw=draw,
)
