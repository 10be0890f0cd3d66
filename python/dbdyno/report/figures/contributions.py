"""Figure of the contributions to the difference between two sets of traces, as bars on both sides of zero."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict

from dbdyno.pages import format as fmt
from dbdyno.pages import reading
from dbdyno.pages.reading import Analysis
from dbdyno.report.figures import axes, base, theme, views

MOST = 10


class _Row(TypedDict):
    """Contribution of one line to the difference."""

    name: str
    difference: float
    zero: int
    colour: str
    words: str
    tip: NotRequired[str]
    align: NotRequired[str]


def draw(analysis: Analysis, look: theme.Look = theme.WIDE) -> Any | None:
    """Return the chart, or None if the analysis has no `contributions`."""
    import altair as alt

    rows: list[_Row] = [
        {
            "name": fmt.line(row.get("name") or "", 40),
            "difference": fmt.number(row.get("difference_ns")) or 0.0,
            "zero": 0,
            "colour": theme.OTHERS[0] if (row.get("difference_ns") or 0) > 0 else theme.OTHERS[1],
            "words": fmt.difference(row.get("difference_ns")),
        }
        for row in reading.entries(analysis, "figures", "contributions")[:MOST]
        if abs(fmt.number(row.get("difference_ns")) or 0.0) >= 1
    ]
    if not rows:
        return None
    for row in rows:
        row["tip"] = f"{row['name']} {row['words']}"
        row["align"] = "more" if row["difference"] > 0 else "less"
    left = 120 if look.narrow else 200
    far = max(abs(row["difference"]) for row in rows) * 1.25
    low = -far if any(row["difference"] < 0 for row in rows) else 0
    high = far if any(row["difference"] > 0 for row in rows) else 0
    ticks = axes.linear_ticks(low, high, 3 if look.narrow else 6)
    x = alt.X(
        "zero:Q",
        scale={"domain": [low, high], "nice": False},
        axis={
            "title": f"difference {reading.basis(analysis)}",
            "grid": True,
            **axes.axis_labels(ticks, axes.duration_label),
        },
    )
    y = alt.Y(
        "name:N",
        sort=[row["name"] for row in rows],
        scale={"paddingInner": 0.35},
        axis={"title": None, "labelLimit": round((left - 12) * 0.88), "minExtent": left - 8, "maxExtent": left - 8},
    )
    chart = alt.Chart(base.data(rows))
    bars = chart.mark_bar(aria=True).encode(
        x=x,
        x2=alt.X2("difference"),
        y=y,
        color=alt.Color("colour:N", scale=None),
        description=alt.Description("tip:N"),
    )
    layers = [bars]
    sides: tuple[tuple[str, Any, int], ...] = (("more", "left", 4), ("less", "right", -4))
    for side, align, dx in sides:
        mine = [row for row in rows if row["align"] == side]
        if mine:
            mark = alt.Chart(base.data(mine)).mark_text(align=align, dx=dx)
            layers.append(mark.encode(x=alt.X("difference:Q"), y=y, text=alt.Text("words:N")))
    plot = views.layer(*layers, width=look.width - left - 40, height=alt.Step(26))
    return theme.finish(plot, FIGURE.title, FIGURE.how_to_read, look)


FIGURE = base.Figure(
    name="contributions",
    title="What made the difference",
    how_to_read="Each bar is a part of the time: to the right it takes longer than before, to the left less.",
    draw=draw,
)
