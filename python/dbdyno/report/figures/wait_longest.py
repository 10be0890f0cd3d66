"""Figure of the longest waits of one event: each a point with its time and length."""

from __future__ import annotations

from typing import Any

from dbdyno.base.json_types import TableRow
from dbdyno.pages import format as fmt
from dbdyno.pages import reading
from dbdyno.pages.reading import Analysis
from dbdyno.report.figures import axes, base, theme, views

TIPS_MOST = 200


def draw(analysis: Analysis, look: theme.Look = theme.WIDE) -> Any | None:
    """Return the chart, or None for fewer than ten waits."""
    import altair as alt

    given = reading.entries(analysis, "longest")
    if len(given) < 10:
        return None
    summary = reading.dig(analysis, "summary") or {}
    start = summary.get("from_ns") or min(row["started_ns"] for row in given)
    end = summary.get("to_ns") or max(row["started_ns"] for row in given)
    points = [
        {
            "at": (row["started_ns"] - start) / 1e9,
            "ns": max(row["elapsed_ns"], 1),
            "tip": f"{fmt.duration(row['elapsed_ns'], 4)}, {fmt.line(row.get('file') or '', 60)}:{row.get('line')}",
        }
        for row in given
    ]
    ends = axes.nonempty_range(0.0, max((end - start) / 1e9, 1e-6))
    low, high = axes.padded_range([point["ns"] for point in points], 0.06, log=True)
    x = alt.X(
        "at:Q",
        scale={"domain": ends, "nice": False, "zero": False},
        axis={
            "title": "time since the first wait",
            **axes.axis_labels(axes.seconds_ticks(*ends, 5 if look.narrow else 10), axes.seconds_label),
        },
    )
    y = alt.Y("ns:Q", **base.duration_y(low, high, look, "length of a wait", grid=True))
    size = 40 if len(points) <= 300 else 12
    chart = alt.Chart(base.data(points[TIPS_MOST:]))
    top = alt.Chart(base.data(points[:TIPS_MOST]))
    look_of: TableRow = {
        "filled": True,
        "size": size,
        "opacity": 0.75,
        "color": theme.OTHERS[0],
    }
    layers = [top.mark_point(aria=True, **look_of).encode(x=x, y=y, description=alt.Description("tip:N"))]
    if len(points) > TIPS_MOST:
        layers.insert(0, chart.mark_point(**look_of).encode(x=x, y=y))
    plot = views.layer(*layers, width=look.plot, height=look.height(260))
    return theme.finish(plot, FIGURE.title, FIGURE.how_to_read, look)


FIGURE = base.Figure(
    name="wait_longest",
    title="The longest waits",
    how_to_read="Each point is one wait. Points in a column are waits that were long at the same time; "
    "a horizontal line is a limit or a timeout.",
    draw=draw,
)
