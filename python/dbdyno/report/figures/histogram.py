"""Figure of histograms: the share of values in each bin, with the groups overlaid."""

from __future__ import annotations

from typing import Any

from dbdyno.base.json_types import JsonObject
from dbdyno.report.figures import base, theme
from dbdyno.report.figures.scatter import Model, axis, scale


def group_colour(names: list[str], look: theme.Look) -> Any:
    """Return the colour encoding by group; the first group is grey, and a single group has no legend."""
    import altair as alt

    return alt.Color(
        "group:N",
        scale={"domain": names, "range": theme.arm_colours(len(names), 0)},
        legend={"columns": look.columns(names, 4), "offset": base.LEGEND_OVER_TITLE} if len(names) > 1 else None,
    )


def areas(
    model: Model,
    column: str,
    rows: list[JsonObject],
    ends: tuple[float, float, float],
    words: str,
    area: JsonObject,
    look: theme.Look,
) -> Any:
    """Return the areas of a column's distribution, with the groups overlaid.

    Args:
        model: The model of the figure.
        column: Name of the column on the horizontal axis.
        rows: Points with `group`, `x` and `y`.
        ends: Least and largest x, and largest y.
        words: Title of the vertical axis.
        area: Vega-Lite's properties of the areas.
        look: Sizes and colours.
    """
    import altair as alt

    low, high, most = ends
    y_axis = axis(words, 0, most, False, 6)
    return (
        alt.Chart(base.data(rows))
        .mark_area(**area, clip=True)
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
                axis={**y_axis, **base.y_title(y_axis["title"] or "", look)},
            ),
            color=group_colour([group["name"] for group in model["groups"]], look),
        )
        .properties(width=look.plot, height=look.height(320))
    )


def draw(model: Model, column: str, look: theme.Look = theme.WIDE) -> Any:
    """Return the chart of a model made by `dbdyno.stats.plots.histogram`."""
    rows = [
        {"group": group["name"], "x": low, "x2": high, "y": share}
        for group in model["groups"]
        for low, high, share in group["steps"]
    ]
    names = [group["name"] for group in model["groups"]]
    low, high = min(r["x"] for r in rows), max(r["x2"] for r in rows)
    most = max(r["y"] for r in rows) or 1.0
    outline = []
    for name in names:
        own = [row for row in rows if row["group"] == name]
        outline += [{"group": name, "x": row["x"], "y": row["y"]} for row in own]
        outline.append({"group": name, "x": own[-1]["x2"], "y": 0})
    area = {"interpolate": "step-after", "fillOpacity": 0.2, "line": {"strokeWidth": 1.8}}
    chart = areas(model, column, outline, (low, high, most), "share of the values", area, look)
    counts = ", ".join(f"{g['name']} {g['n']:,}".strip() for g in model["groups"])
    return theme.finish(chart, f"Distribution of {column}", f"Values: {counts}.", look)
