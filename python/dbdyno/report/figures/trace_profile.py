"""Figure of the response-time profile: a bar per line, and beside it the lengths of the line's waits."""

from __future__ import annotations

import math
from typing import Any, TypedDict

from dbdyno.pages import format as fmt
from dbdyno.pages import reading
from dbdyno.pages.reading import Analysis
from dbdyno.report.figures import axes, base, theme, views

MOST = 14


_Line = TypedDict(
    "_Line",
    {
        "key": dict[str, object],
        "name": str,
        "what": str,
        "class": str,
        "total_ns": float | None,
        "share": float | None,
        "histogram": list[tuple[float, float, int, float]],
    },
    total=False,
)
"""A line of the profile in the analysis; `histogram` has low, high, count and total of each decade."""


class _Bar(TypedDict):
    """Bar that represents a line of the profile."""

    id: str
    name: str
    seconds: float
    colour: str
    words: str
    tip: str


class _Cell(TypedDict):
    """A line's waits whose lengths are in the same decade."""

    id: str
    low: float
    high: float
    colour: str
    tip: str


def draw(analysis: Analysis, look: theme.Look = theme.WIDE) -> Any | None:
    """Return the chart, or None if the analysis has no `profile`."""
    import altair as alt

    lines = reading.list_of(_Line, analysis, "profile", "rows")[:MOST]
    if not lines:
        return None
    bars = [_bar(at, line) for at, line in enumerate(lines)]
    order = [bar["id"] for bar in bars]
    left = 120 if look.narrow else 200
    cells = [] if look.narrow else _cells(lines)
    room = look.width - left - 40
    width = round(room * 0.58) if cells else room
    y = alt.Y(
        "id:N",
        sort=order,
        axis={
            "title": None,
            "labelLimit": round((left - 22) * 0.88),
            "labelExpr": _labels(bars),
            "minExtent": left - 8,
            "maxExtent": left - 8,
        },
        scale={"paddingInner": 0.3},
    )
    low, high = min(0.0, *(b["seconds"] for b in bars)), max(b["seconds"] for b in bars)
    ticks = axes.linear_ticks(low, high * 1.02, 4 if look.narrow else 5)
    x = alt.X(
        "seconds:Q",
        scale={"domain": [low, high * 1.18 or 1], "nice": False},
        axis={
            "title": "time",
            "grid": True,
            **axes.axis_labels(ticks, lambda s: axes.duration_label(s * 1e9)),
        },
    )
    chart = alt.Chart(base.data(bars))
    drawn = chart.mark_bar(aria=True).encode(
        x=x, y=y, color=alt.Color("colour:N", scale=None), description=alt.Description("tip:N")
    )
    words = chart.mark_text(align="left", dx=4).encode(x=x, y=y, text=alt.Text("words:N"))
    height = alt.Step(24)
    plot = views.layer(drawn, words, width=width, height=height)
    if cells:
        beside = _skew(cells, order, room - width - 10, height)
        plot = views.hconcat(plot, beside, spacing=10).resolve_scale(color="independent")
    return theme.finish(plot, FIGURE.title, FIGURE.how_to_read, look)


def _bar(at: int, line: _Line) -> _Bar:
    key = reading.dig(line, "key") or {}
    name = fmt.line(line.get("name") or " · ".join(str(v) for v in key.values()), 60)
    total = (fmt.number(line.get("total_ns")) or 0.0) / 1e9
    what = {"cpu": "cpu", "wait": str(line.get("class") or "other")}.get(str(line.get("what")), "")
    share = fmt.percent(line.get("share"))
    return {
        "id": f"{at:03d}",
        "name": name,
        "seconds": total,
        "colour": theme.class_colour(what) if what else theme.SOFT,
        "words": share,
        "tip": f"{name}: {fmt.duration(total * 1e9, 4)}, {share}",
    }


def _labels(bars: list[_Bar]) -> str:
    """Return a Vega lookup from the bars' identifiers to their names; names are inserted as JSON text."""
    import json

    looked = "".join(f"datum.value === {json.dumps(b['id'])} ? {_quote(b['name'])} : " for b in bars)
    return looked + "''"


def _quote(name: str) -> str:
    """Return a name as a string of Vega's expression language, with all but plain characters escaped."""
    return (
        '"'
        + "".join(c if c.isalnum() or c in " *#_-.,:" else f"\\u{ord(c):04x}" for c in name if ord(c) < 0x10000)
        + '"'
    )


def _cells(lines: list[_Line]) -> list[_Cell]:
    """Return one cell per line and non-empty decade; its shade is its time relative to the line's largest decade."""
    cells: list[_Cell] = []
    for at, line in enumerate(lines):
        buckets = [b for b in line.get("histogram") or [] if b[2] and b[0] >= 0]
        most = max((b[3] for b in buckets), default=0) or 1
        for low, high, count, total in buckets:
            shade = min(len(theme.HEAT) - 1, int(total / most * (len(theme.HEAT) - 1)))
            cells.append(
                {
                    "id": f"{at:03d}",
                    "low": max(low, 100),
                    "high": max(high, 1000),
                    "colour": theme.HEAT[shade],
                    "tip": f"{fmt.duration(low, 1)} to {fmt.duration(high, 1)}: {fmt.count(count)} ×, "
                    f"{fmt.duration(total)}",
                }
            )
    return cells


def _skew(cells: list[_Cell], order: list[str], width: int, height: Any) -> Any:
    import altair as alt

    low = min(cell["low"] for cell in cells)
    high = max(cell["high"] for cell in cells)
    ticks = [10.0**at for at in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)]
    every = max(1, -(-len(ticks) * 58 // width))
    axis = {"title": "length of a wait", **axes.axis_labels(ticks[::every], axes.duration_label)}
    return (
        alt.Chart(base.data(cells), width=width, height=height)
        .mark_rect(aria=True, stroke=theme.PAPER)
        .encode(
            x=alt.X("low:Q", scale={"type": "log", "domain": [low, high], "nice": False}, axis=axis),
            x2=alt.X2("high"),
            y=alt.Y("id:N", sort=order, axis=None, scale={"domain": order, "paddingInner": 0.3}),
            color=alt.Color("colour:N", scale=None),
            description=alt.Description("tip:N"),
        )
    )


FIGURE = base.Figure(
    name="profile",
    title="Where the time went",
    how_to_read="Each bar is a line of the profile. Beside it are the lengths of its waits: a "
    "stronger shade means that waits of that length took more of the line's time.",
    draw=draw,
)
