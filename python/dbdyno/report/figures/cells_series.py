"""Figure of a family of cells' metrics over time: a panel per metric, the cells side by side.

Up to six cells are step lines in different colours; more cells are rows of a raster, shaded by value. Nothing is drawn
for a time in which a cell had no new data or its service restarted: no line crosses a gap.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dbdyno.base.json_types import TableRow
from dbdyno.pages import format as fmt
from dbdyno.pages import reading
from dbdyno.pages.reading import Analysis
from dbdyno.report.figures import axes, base, shades, theme, views

LINES_MOST = 6
TIPS_MOST = 240
NEAR = 0.6
"""Share of a panel's largest value; the axis does not begin at 0 if the smallest value is above it."""
COLOURS = (theme.OTHERS[4], theme.OTHERS[0], theme.OTHERS[1], theme.OTHERS[2], theme.OTHERS[3], theme.OTHERS[5])
LINES = (
    "Each step is the mean between two collections of a cell, by the cell's own clock. No line: "
    "nothing new was collected, there were no requests, or the counters were reset. The axis begins "
    "at 0, unless all values are close together: read its numbers."
)
RASTER = (
    "A row is a cell, a field the mean between two of its collections: darker is more. Empty: nothing new was "
    "collected, there were no requests, or the counters were reset."
)


def figures(analysis: Analysis) -> Iterator[base.Figure]:
    """Yield a figure for each family of the analysis."""
    for family in reading.entries(analysis, "families"):
        name = str(family.get("name"))
        many = len(reading.dig(analysis, "facts", "cells") or ()) > LINES_MOST
        yield base.Figure(
            f"cells_{family.get('slug')}",
            f"{name[:1].upper()}{name[1:]} over time",
            RASTER if many else LINES,
            functools.partial(draw, family=name),
        )


def draw(analysis: Analysis, look: theme.Look = theme.WIDE, *, family: str = "") -> Any | None:
    """Return the chart of one family, or None if it has no panel with a step."""
    own = next((f for f in reading.entries(analysis, "families") if f.get("name") == family), None)
    if own is None:
        return None
    panels = [panel for panel in reading.entries(own, "panels") if any(steps_of(panel))]
    if not panels:
        return None
    many = len(panels[0]["cells"]) > LINES_MOST
    ends = (0.0, max(step["to"] for panel in panels for step in steps_of(panel)))
    draw_panel = _raster if many else _lines
    charts = [draw_panel(panel, ends, look, panel is panels[-1]) for panel in panels]
    stacked = views.vconcat(*charts, spacing=14 if not many else 20)
    stacked = stacked.resolve_scale(color="independent" if many else "shared")
    figure = next(f for f in figures(analysis) if f.name == f"cells_{own.get('slug')}")
    return theme.finish(stacked, figure.title, figure.how_to_read, look)


def steps_of(panel: Mapping[str, Any]) -> Iterator[TableRow]:
    """Yield the steps of a panel that have a value, one row each; `run` numbers groups of adjacent steps."""
    unit = panel.get("unit")
    for at, own in enumerate(reading.entries(panel, "cells")):
        run, last = 0, None
        for row in reading.rows(own, f"families.{panel.get('name')}", ("from_s", "to_s", "value")):
            run += last is not None and row["from_s"] > last + 1e-6
            last = row["to_s"]
            cell = fmt.line(own.get("cell"), 40)
            yield {
                "cell": cell,
                "run": f"{at}-{run}",
                "from": row["from_s"],
                "to": row["to_s"],
                "value": row["value"],
                "tip": f"{cell}, {axes.seconds_label(round(row['from_s']))}: {shades.value_text(row['value'], unit)}",
            }


def _title(panel: dict[str, object], look: theme.Look) -> dict[str, object]:
    words = f"{panel.get('name')}  ·  {panel.get('meaning')}"
    return {**base.panel_title(fmt.line(words, 52 if look.narrow else 118)), "fontWeight": "normal"}


def _time_axis(ends: tuple[float, float], look: theme.Look) -> dict[str, object]:
    ticks = axes.seconds_ticks(*ends, 5 if look.narrow else 10)
    return {"title": "time since the recording began", **axes.axis_labels(ticks, axes.seconds_label)}


def _lines(panel: TableRow, ends: tuple[float, float], look: theme.Look, is_last: bool) -> Any:
    import altair as alt

    steps = list(steps_of(panel))
    names = [fmt.line(own.get("cell"), 40) for own in reading.entries(panel, "cells")]
    low, high = axis_ends([step["value"] for step in steps])
    ticks = axes.linear_ticks(low, high, 3)
    unit = panel.get("unit")
    y_axis = {**base.y_title("", look), **axes.axis_labels(ticks, lambda v: shades.label(v, unit))}
    colour = alt.Color(
        "cell:N",
        sort=names,
        scale={"domain": names, "range": [COLOURS[at % len(COLOURS)] for at in range(len(names))]},
        legend={"columns": look.columns(names, 6)} if len(names) > 1 else None,
    )
    x = alt.X(
        "at:Q", scale={"domain": ends, "nice": False, "zero": False}, axis=_time_axis(ends, look) if is_last else None
    )
    y = alt.Y("value:Q", scale={"domain": [low, high], "nice": False, "zero": False}, axis=y_axis)
    lines = alt.Chart(base.data(corners(steps))).mark_line(
        interpolate="step-after", strokeWidth=1.8, strokeJoin="round"
    )
    layers = [lines.encode(x=x, y=y, color=colour, detail="run:N")]
    if len(steps) <= TIPS_MOST:
        spots = [{**step, "at": (step["from"] + step["to"]) / 2} for step in steps]
        marks = alt.Chart(base.data(spots)).mark_point(filled=True, size=20, aria=True, opacity=1)
        layers.append(marks.encode(x=x, y=y, color=colour, description=alt.Description("tip:N")))
    return views.layer(*layers, width=look.plot, height=look.height(84), title=_title(panel, look))


def axis_ends(values: Sequence[float]) -> tuple[float, float]:
    """Return the ends of a panel's vertical axis.

    It begins at 0, unless all values are so close together that the line would be flat at the top; then the values take
    most of the height.
    """
    low, high = min(values, default=0.0), max(values, default=0.0)
    if 0 < NEAR * high < low < high:
        return low - (high - low) * 0.15, high + (high - low) * 0.1
    return min(0.0, low * 1.06), (high or 1.0) * 1.06


def corners(steps: list[dict[str, object]]) -> list[dict[str, object]]:
    """Return the corners of a line: where each step begins, and where the last step of a run ends."""
    corners = []
    for step, after in zip(steps, [*steps[1:], None], strict=True):
        corners.append({**step, "at": step["from"]})
        if after is None or after["run"] != step["run"] or after["cell"] != step["cell"]:
            corners.append({**step, "at": step["to"]})
    return corners


def _raster(panel: TableRow, ends: tuple[float, float], look: theme.Look, is_last: bool) -> Any:
    import altair as alt

    steps = list(steps_of(panel))
    names = [fmt.line(own.get("cell"), 40) for own in reading.entries(panel, "cells")]
    short = dict(zip(names, shades.short_names(names), strict=True))
    names = list(short.values())
    scale = shades.Scale.of([step["value"] for step in steps], panel.get("unit"))
    for step in steps:
        step["level"] = scale.level(step["value"])
        step["cell"] = short[step["cell"]]
    unit = panel.get("unit")
    return (
        alt.Chart(
            base.data(steps),
            width=look.plot,
            title=_title(panel, look),
            height=len(names) * shades.row_height(len(names)),
        )
        .mark_rect(clip=True, aria=len(steps) <= 4 * TIPS_MOST, strokeWidth=0.7)
        .encode(
            x=alt.X(
                "from:Q",
                scale={"domain": ends, "nice": False, "zero": False},
                axis=_time_axis(ends, look) if is_last else None,
            ),
            x2=alt.X2("to"),
            y=alt.Y(
                "cell:N", sort=names, scale={"domain": names, "paddingInner": 0.08}, axis=shades.row_axis(names, look)
            ),
            color=scale.colour(unit, look),
            stroke=scale.stroke(),
            description=alt.Description("tip:N"),
        )
    )
