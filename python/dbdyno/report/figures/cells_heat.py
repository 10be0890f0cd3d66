"""Figure of cells over time: a row per cell, shaded by the value of one metric."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

from dbdyno.pages import format as fmt
from dbdyno.pages import reading
from dbdyno.pages.reading import Analysis
from dbdyno.report.figures import axes, base, shades, theme


class _Field(TypedDict):
    """A cell in one step of time; `level` is its shade."""

    cell: str
    low: float
    high: float
    value: float
    level: int
    tip: str


def draw(analysis: Analysis, look: theme.Look = theme.WIDE) -> Any | None:
    """Return the chart of the metric under `panel`, or None if it has no values."""
    import altair as alt

    panel = reading.dig(analysis, "panel") or {}
    entries = reading.entries(panel, "cells")
    names = shades.short_names([fmt.line(one.get("cell"), 40) for one in entries])
    values = [value for one in entries for value in map(fmt.number, one.get("value") or ()) if value is not None]
    if not values:
        return None
    scale = shades.Scale.of(values, panel.get("unit"))
    fields = [
        field
        for one, name in zip(entries, names, strict=True)
        for field in _fields(one, name, panel.get("unit"), scale)
    ]
    low, high = min(one["low"] for one in fields), max(one["high"] for one in fields)
    ticks = axes.seconds_ticks(low, high, 4 if look.narrow else 9)
    across = {"domain": [low, high], "nice": False, "zero": False}
    chart = (
        alt.Chart(base.data(fields), width=look.plot, height=len(names) * shades.row_height(len(names)))
        .mark_rect(aria=len(fields) <= 900, strokeWidth=1)
        .encode(
            x=alt.X(
                "low:Q",
                scale=across,
                axis={"title": "since the recording began", **axes.axis_labels(ticks, axes.seconds_label)},
            ),
            x2=alt.X2("high"),
            y=alt.Y("cell:N", sort=names, axis=shades.row_axis(names, look), scale={"domain": names}),
            color=scale.colour(panel.get("unit"), look),
            stroke=scale.stroke(),
            description=alt.Description("tip:N"),
        )
    )
    return theme.finish(chart, fmt.line(panel.get("name") or FIGURE.title, 60), FIGURE.how_to_read, look)


def _fields(entry: Mapping[str, Any], name: str, unit: Any, scale: shades.Scale) -> list[_Field]:
    found: list[_Field] = []
    for low, high, value in zip(
        entry.get("from_s") or (), entry.get("to_s") or (), entry.get("value") or (), strict=True
    ):
        given = fmt.number(value)
        if given is not None:
            tip = f"{name}, {axes.seconds_label(low)}: {shades.value_text(given, unit)}"
            level = scale.level(given)
            found.append({"cell": name, "low": low, "high": high, "value": given, "level": level, "tip": tip})
    return found


FIGURE = base.Figure(
    "cells_heat",
    "Cells over time",
    "A row is a cell, the shade its value at that time. A dark row is a cell to check, a dark column a time to check."
    " Empty: not collected.",
    draw,
)
