"""Figure of cells by disks: a field per disk, shaded by its mean over the recording; a panel per metric."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any, NotRequired, TypedDict

from dbdyno.pages import format as fmt
from dbdyno.pages import reading
from dbdyno.pages.reading import Analysis
from dbdyno.report.figures import base, shades, theme, views

HOW = (
    "A row is a cell, a column a disk; the shade shows the mean of the recording. Similar values have "
    "a medium shade. A single field that stands out is a disk to check; a row that stands out is a "
    "cell to check. Empty: no such request."
)

NUMBER = "slice(datum.label, indexof(datum.label, '_') + 1)"
"""Vega expression that shortens an axis label: CD_03 becomes 03."""


def figures(analysis: Analysis) -> Iterator[base.Figure]:
    """Yield a figure for each kind of disk."""
    kinds = dict.fromkeys(str(one.get("kind")) for one in reading.entries(analysis, "disks"))
    for kind in kinds:
        yield base.Figure(
            f"cells_map_{kind.replace(' ', '-')}",
            f"{kind[:1].upper()}{kind[1:]}, one by one",
            HOW,
            functools.partial(draw, kind=kind),
        )


def draw(analysis: Analysis, look: theme.Look = theme.WIDE, *, kind: str = "") -> Any | None:
    """Return the chart of one kind of disk, or None if the analysis has no map of that kind."""
    maps = [one for one in reading.entries(analysis, "disks") if one.get("kind") == kind]
    charts = [chart for one in maps if (chart := _panel(one, look)) is not None]
    if not charts:
        return None
    stacked = views.concat(*charts, columns=1 if look.narrow else 2, spacing=18)
    stacked = stacked.resolve_scale(color="independent", stroke="independent", y="independent")
    title = next(f.title for f in figures(analysis) if kind in f.name.replace("-", " "))
    return theme.finish(stacked, title, HOW, look)


class _Field(TypedDict):
    """A disk of a cell; `level` is its shade."""

    cell: str
    disk: str
    value: float
    tip: str
    level: NotRequired[int]


def _panel(one: Mapping[str, Any], look: theme.Look) -> Any | None:
    import altair as alt

    fields = _fields(one)
    if not fields:
        return None
    cells = shades.short_names([fmt.line(c, 40) for c in reading.strings(one, "cells")])
    disks = [fmt.line(disk, 20) for disk in reading.strings(one, "disks")]
    scale = shades.Scale.of([field["value"] for field in fields], one.get("unit"))
    for field in fields:
        field["level"] = scale.level(field["value"])
    wide = look.plot if look.narrow else look.width // 2 - look.left - 22
    axis = {
        "title": "disk",
        "labelAngle": 0,
        "domain": False,
        "ticks": False,
        "labelOverlap": True,
        "labelExpr": NUMBER,
    }
    title = {
        "text": fmt.line(one.get("name")),
        "subtitle": fmt.line(one.get("meaning"), 64),
        "fontSize": 12,
        "fontWeight": 600,
        "subtitleFontSize": 11,
        "offset": 6,
        "anchor": "start",
        "frame": "group",
    }
    return (
        alt.Chart(
            base.data(fields),
            width=wide,
            height=len(cells) * shades.row_height(len(cells)),
            title=title,
        )
        .mark_rect(aria=len(fields) <= 900)
        .encode(
            x=alt.X("disk:N", sort=disks, axis=axis, scale={"domain": disks, "paddingInner": 0.08}),
            y=alt.Y(
                "cell:N", sort=cells, axis=shades.row_axis(cells, look), scale={"domain": cells, "paddingInner": 0.12}
            ),
            color=scale.colour(one.get("unit"), look, columns=4),
            description=alt.Description("tip:N"),
        )
    )


def _fields(one: Mapping[str, Any]) -> list[_Field]:
    cells, disks = reading.strings(one, "cells"), reading.strings(one, "disks")
    found: list[_Field] = []
    short = shades.short_names([fmt.line(cell, 40) for cell in cells])
    for cell, name, line in zip(cells, short, one.get("values") or [], strict=False):
        for disk, value in zip(disks, line, strict=False):
            given = fmt.number(value)
            if given is not None:
                words = shades.value_text(given, one.get("unit"))
                tip = f"{fmt.line(cell, 40)} {fmt.line(disk, 20)}: {words}"
                found.append({"cell": name, "disk": fmt.line(disk, 20), "value": given, "tip": tip})
    return found
