"""Figure of the largest values by rank: how the tail falls off, and which group its values belong to."""

from __future__ import annotations

from typing import Any

from dbdyno.report.figures import base, theme
from dbdyno.report.figures.histogram import group_colour
from dbdyno.report.figures.scatter import Model, axis, scale


def draw(model: Model, column: str, look: theme.Look = theme.WIDE) -> Any:
    """Return the chart of a model made by `dbdyno.stats.plots.longest_values`."""
    import altair as alt

    rows = [{"rank": a, "value": b, "group": g} for a, b, g in model["points"]]
    values = [row["value"] for row in rows]
    low, high = min(values), max(values)
    last = max(len(rows), 2)
    ranks = axis("rank", 1, last, True)
    y_axis = axis(column, low, high, model["log"])
    dots = alt.Chart(base.data(rows)).mark_point(filled=True, size=22, opacity=0.6, clip=True)
    chart = dots.encode(
        x=alt.X("rank:Q", scale=scale(1, last, True), axis={**ranks, "title": "rank"}),
        y=alt.Y(
            "value:Q",
            scale=scale(low, high, model["log"]),
            axis={**y_axis, **base.y_title(y_axis["title"] or "", look), "grid": True},
        ),
        color=group_colour(list(model["groups"]), look),
    ).properties(width=look.plot, height=look.height(340))
    words = "Rank 1 is the largest. A straight fall is an ordinary tail; look for the cause of a step or a shelf."
    return theme.finish(chart, f"The {len(rows):,} longest: {column}", words, look)
