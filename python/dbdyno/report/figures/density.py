"""Figure of smooth densities, with the groups overlaid."""

from __future__ import annotations

from typing import Any

from dbdyno.report.figures import theme
from dbdyno.report.figures.histogram import areas
from dbdyno.report.figures.scatter import Model


def draw(model: Model, column: str, look: theme.Look = theme.WIDE) -> Any:
    """Return the chart of a model made by `dbdyno.stats.plots.density`."""
    rows = [{"group": group["name"], "x": x, "y": y} for group in model["groups"] for x, y in group["points"]]
    ends = min(r["x"] for r in rows), max(r["x"] for r in rows), max(r["y"] for r in rows)
    words = "density, per decade" if model["log"] else "density"
    chart = areas(model, column, rows, ends, words, {"fillOpacity": 0.16, "line": {"strokeWidth": 2}}, look)
    counts = ", ".join(f"{g['name']} {g['n']:,}".strip() for g in model["groups"])
    how = f"Values: {counts}. The area under each curve is one."
    return theme.finish(chart, f"Density of {column}", how, look)
