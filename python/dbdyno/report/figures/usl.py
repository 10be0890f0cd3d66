"""Figure of throughput over load: measured points, the fitted Universal Scalability Law, its peak."""

from __future__ import annotations

from typing import Any

from dbdyno.report.figures import base, theme, views
from dbdyno.report.figures.scatter import Model, axis, number_label, scale


def draw(model: Model, x: str, y: str, look: theme.Look = theme.WIDE) -> Any:
    """Return the chart of a model made by `dbdyno.stats.plots.scaling_points`."""
    import altair as alt

    points = [{"x": a, "y": b} for a, b in model["points"]]
    curve = [{"x": a, "y": b} for a, b in model["curve"]]
    right = max(row["x"] for row in curve)
    top = max(row["y"] for row in [*points, *curve])
    y_axis = axis(y, 0, top, False)
    at_x = alt.X("x:Q", scale=scale(0, right, False), axis=axis(x, 0, right, False))
    at_y = alt.Y(
        "y:Q",
        scale={"domain": [0, top * 1.06], "nice": False},
        axis={**y_axis, **base.y_title(y, look), "grid": True},
    )
    line = alt.Chart(base.data(curve)).mark_line(color=theme.OTHERS[0], strokeWidth=2, clip=True)
    dots = alt.Chart(base.data(points)).mark_point(filled=True, size=50, color=theme.BASELINE)
    layers = [line.encode(x=at_x, y=at_y), dots.encode(x=at_x, y=at_y)]
    if model["peak"]:
        words = f"peak {number_label(model['peak'][1])} at {number_label(model['peak'][0])}"
        mark = alt.Chart(base.data([{"x": model["peak"][0], "y": model["peak"][1], "w": words}]))
        layers.append(mark.mark_text(dy=-12, color=theme.INK).encode(x=at_x, y=at_y, text=alt.Text("w:N")))
    layered = views.layer(*layers, width=look.plot, height=look.height(340))
    how = "Points are measured; the curve is the fitted law, drawn 25 % beyond them."
    return theme.finish(layered, f"Scalability: {y} over {x}", how, look)
