"""Figure of two columns against each other: points, or shaded cells if there are many, and the fitted line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dbdyno.report.figures import axes, base, theme, views

Model = Mapping[str, Any]


def number_label(value: float) -> str:
    """Return a number as an axis label: thousands as letters (`k`, `M`), no exponent."""
    for factor, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= factor * 0.9999:
            return f"{value / factor:.4g}{letter}"
    return f"{value:.4g}"


def label_of(column: str) -> axes.Label:
    """Return the label function of a column: times and sizes according to the suffix of its name."""
    if column.endswith("_ns"):
        return axes.duration_label
    return axes.size_label if column.endswith("_bytes") else number_label


def axis(column: str, low: float, high: float, log: bool, limit: int = 8) -> axes.Axis:
    """Return the options of an axis with ticks in the unit of the column."""
    ticks = axes.log_ticks(low, high, limit) if log else axes.linear_ticks(low, high, limit)
    words = f"{column}, logarithmic" if log else column
    return {"title": words, **axes.axis_labels(ticks, label_of(column))}


def scale(low: float, high: float, log: bool) -> axes.Scale:
    """Return a scale over a slightly extended range."""
    first, last = axes.padded_range((low, high), 0.03, log=log)
    return {"type": "log" if log else "linear", "domain": [first, last], "nice": False}


def channels(model: Model, x: str, y: str, look: theme.Look) -> tuple[Any, Any]:
    """Return the x and y encodings of rows with fields `x` and `y`."""
    import altair as alt

    made = []
    for kind, name, at in ((alt.X, x, "x"), (alt.Y, y, "y")):
        low, high = model[f"{at}_range"]
        log = model[f"log_{at}"]
        options = axis(name, low, high, log)
        if at == "y":
            options |= base.y_title(options["title"] or "", look)
        options["grid"] = True
        made.append(kind(f"{at}:Q", scale=scale(low, high, log), axis=options))
    return made[0], made[1]


def draw(model: Model, x: str, y: str, look: theme.Look = theme.WIDE) -> Any:
    """Return the chart of a model made by `dbdyno.stats.plots.scatter`."""
    import altair as alt

    at_x, at_y = channels(model, x, y, look)
    layers = []
    if model["cells"]:
        names = ("x", "x2", "y", "y2", "count")
        rows = [dict(zip(names, cell, strict=True)) for cell in model["cells"]]
        most = max(row["count"] for row in rows)
        shade = alt.Color(
            "count:Q",
            scale={"type": "log", "domain": [1, max(most, 2)], "range": list(theme.HEAT)},
            legend={
                "title": "rows in a cell",
                "tickCount": 4,
                "gradientLength": 160,
                "offset": base.LEGEND_OVER_TITLE,
            },
        )
        cells = alt.Chart(base.data(rows)).mark_rect(clip=True)
        layers.append(cells.encode(x=at_x, y=at_y, x2="x2", y2="y2", color=shade))
    else:
        rows = [{"x": a, "y": b} for a, b in model["points"]]
        dots = alt.Chart(base.data(rows)).mark_point(
            filled=True, size=26, opacity=0.55, color=theme.OTHERS[4], clip=True
        )
        layers.append(dots.encode(x=at_x, y=at_y))
    if model["line"]:
        line = [{"x": a, "y": b} for a, b in model["line"]]
        drawn = alt.Chart(base.data(line)).mark_line(color=theme.OTHERS[0], strokeWidth=2, clip=True)
        layers.append(drawn.encode(x=at_x, y=at_y))
    layered = views.layer(*layers, width=look.plot, height=look.height(380))
    words = f"{model['n']:,} rows. The line is the least squares fit" + (
        " in the logarithms." if model["log_x"] and model["log_y"] else "."
    )
    return theme.finish(layered, f"{y} against {x}", words, look)
