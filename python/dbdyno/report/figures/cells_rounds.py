"""Figure of a recording's coverage: a row per cell, a field per round, coloured by the state of the answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

from dbdyno.pages import format as fmt
from dbdyno.pages import reading
from dbdyno.pages.reading import Analysis
from dbdyno.report.figures import axes, base, shades, theme

COLOURS = {
    "collected": theme.HEAT[1],
    "not refreshed": theme.GRID,
    "restart": theme.OTHERS[2],
    "half an answer": theme.OTHERS[3],
    "no answer": theme.OTHERS[0],
}
ROUNDS_MOST = 2000


def draw(analysis: Analysis, look: theme.Look = theme.WIDE) -> Any | None:
    """Return the chart, or None for fewer than two rounds."""
    import altair as alt

    names = reading.strings(analysis, "coverage", "states")
    cells = reading.entries(analysis, "coverage", "cells")
    rounds = fmt.number(reading.dig(analysis, "coverage", "rounds")) or 0
    if rounds < 2 or not cells:
        return None
    labels = shades.short_names([fmt.line(cell.get("name"), 40) for cell in cells])
    rows = [{**run, "cell": label} for label, cell in zip(labels, cells, strict=True) for run in _runs(cell, names)]
    shown = [name for name in names if any(row["state"] == name for row in rows)]
    ticks = [t for t in axes.linear_ticks(1, rounds, 6 if look.narrow else 12) if t == int(t)]
    chart = (
        alt.Chart(base.data(rows), width=look.plot, height=len(labels) * shades.row_height(len(labels)))
        .mark_rect(aria=len(rows) <= ROUNDS_MOST)
        .encode(
            x=alt.X(
                "from:Q",
                scale={"domain": [0.5, rounds + 0.5], "nice": False, "zero": False},
                axis={"title": "round", **axes.axis_labels(ticks, lambda v: f"{v:.0f}")},
            ),
            x2=alt.X2("to"),
            y=alt.Y(
                "cell:N",
                sort=labels,
                axis=shades.row_axis(labels, look),
                scale={"domain": labels, "paddingInner": 0.12},
            ),
            color=alt.Color(
                "state:N",
                sort=shown,
                scale={"domain": shown, "range": [COLOURS.get(n, theme.FAINT) for n in shown]},
                legend=base.square_legend(shown, look, 5),
            ),
            description=alt.Description("tip:N"),
        )
    )
    return theme.finish(chart, FIGURE.title, FIGURE.how_to_read, look)


_Run = TypedDict("_Run", {"state": str, "from": float, "to": float, "tip": str})
"""Consecutive rounds of a cell with the same state."""


def _runs(cell: Mapping[str, Any], names: list[str]) -> list[_Run]:
    """Return one field for each series of consecutive rounds with the same state."""
    name = fmt.line(cell.get("name"), 40)
    found: list[_Run] = []
    for at, number in enumerate(cell.get("states") or [], 1):
        known = isinstance(number, int) and 0 <= number < len(names)
        state = names[number] if known else "?"
        if found and found[-1]["state"] == state:
            found[-1]["to"] = at + 0.5
        else:
            found.append({"state": state, "from": at - 0.5, "to": at + 0.5, "tip": ""})
    for run in found:
        first, last = run["from"] + 0.5, run["to"] - 0.5
        span = f"round {first:.0f}" if first == last else f"rounds {first:.0f} to {last:.0f}"
        run["tip"] = f"{name}, {span}: {run['state']}"
    return found


FIGURE = base.Figure(
    "cells_rounds",
    "Rounds",
    "The result of each query to each cell. Not refreshed: the cell had not collected since the "
    "previous round; this does not mean zero.",
    draw,
)
