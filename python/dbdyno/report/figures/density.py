"""Figure of smooth densities, one group over the other."""

from __future__ import annotations

from typing import Any

from dbdyno.report.figures import base, theme
from dbdyno.report.figures.histogram import group_colour
from dbdyno.report.figures.scatter import Model, axis, scale


def draw(model: Model, column: str, look: theme.Look = theme.WIDE) -> Any:
    """Return the chart of a model made by `dbdyno.stats.plots.density`."""
    import altair as alt

    rows = [{"group": group["name"], "x": x, "y": y} for group in model["groups"] for x, y in group["points"]]
    names = [group["name"] for group in model["groups"]]
    low, high = min(r["x"] for r in rows), max(r["x"] for r in rows)
    most = max(r["y"] for r in rows)
    words = "density, per decade" if model["log"] else "density"
    y_axis = axis(words, 0, most, False, 6)
    chart = (
        alt.Chart(base.data(rows))
        .mark_area(fillOpacity=0.16, line={"strokeWidth": 2}, clip=True)
        .encode(
            x=alt.X(
                "x:Q",
                scale=scale(low, high, model["log"]),
                axis={**axis(column, low, high, model["log"]), "grid": True},
            ),
            y=alt.Y(
                "y:Q",
                stack=None,
                scale={"domain": [0, most * 1.05], "nice": False},
                axis={**y_axis, **base.y_title(words, look)},
            ),
            color=group_colour(names, look),
        )
        .properties(width=look.plot, height=look.height(320))
    )
    counts = ", ".join(f"{g['name']} {g['n']:,}".strip() for g in model["groups"])
    how = f"Values: {counts}. The area under each curve is one."
    return theme.finish(chart, f"Density of {column}", how, look)
