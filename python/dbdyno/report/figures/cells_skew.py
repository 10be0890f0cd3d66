"""Siblings that differ: times the median of their kind, with the 95 % interval."""

from __future__ import annotations

from typing import Any

from dbdyno.report import format as fmt
from dbdyno.report import reading
from dbdyno.report.figures import axes, base, theme
from dbdyno.report.reading import Analysis

MOST = 24


def draw(analysis: Analysis, look: theme.Look = theme.WIDE) -> Any | None:
    """The chart of those that differ most, or None where none does."""
    import altair as alt

    source = analysis if analysis.get("page") == "skew" else analysis.get("skew") or {}
    given = [row for row in reading.entries(source, "rows") if row.get("differs")][:MOST]
    rows = [_row(row, at) for at, row in enumerate(given)]
    if not rows:
        return None
    low, high = axes.padded([1.0, *(r[k] for r in rows for k in ("low", "high"))], 0.06, log=True)
    ticks, label = axes.ratio_ticks(low, high, 5 if look.narrow else 9)
    x_axis = {"title": "against the median of the siblings", "grid": True,
              **axes.labelled(ticks, label)}  # fmt: skip
    x: dict[str, Any] = {
        "scale": {"type": "log", "domain": [low, high], "nice": False},
        "axis": x_axis,
    }
    names = [row["name"] for row in rows]
    left = 150 if look.narrow else 330
    y = alt.Y("name:N", sort=names, scale={"domain": names},
              axis={"title": None, "labelLimit": left - 8, "minExtent": left, "maxExtent": left,
                    "domain": False, "ticks": False})  # fmt: skip
    chart = alt.Chart(base.data(rows))
    line = alt.Chart(base.data([{"one": 1}])).mark_rule(color=theme.INK, strokeWidth=1)
    layers = alt.layer(
        line.encode(x=alt.X("one:Q", **x)),
        chart.mark_rule(strokeWidth=2.4, color=theme.OTHERS[0]).encode(
            x=alt.X("low:Q", **x), x2=alt.X2("high"), y=y
        ),
        chart.mark_point(filled=True, size=60, color=theme.OTHERS[0], opacity=1, aria=True).encode(
            x=alt.X("ratio:Q", **x), y=y, description=alt.Description("tip:N")
        ),
        width=look.width - left - 30,
        height=22 * len(rows),
    )
    return theme.finish(layers, FIGURE.title, FIGURE.how_to_read, look)


def _row(row: dict[str, Any], at: int) -> dict[str, Any]:
    ratio = fmt.number(row.get("ratio")) or 1.0
    low, high = (fmt.number(row.get(key)) or ratio for key in ("low", "high"))
    name = f"{fmt.line(row.get('name'), 48)} · {fmt.line(row.get('metric'), 32)}"
    words = f"{name}: ×{ratio:.2f} (95 % {low:.2f} to {high:.2f})"
    return {"name": name, "at": at, "ratio": ratio, "low": low, "high": high, "tip": words}


FIGURE = base.Figure(
    "cells_skew",
    "Siblings that differ",
    "A dot is a cell or disk against the median of its siblings, the line its 95 % interval over "
    "the rounds. Shown are the largest of those that the table lists.",
    draw,
)
