"""Figure of two plans of a data flow side by side, with a line from each condition that moved to its new step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypedDict

from dbdyno.pages import format as fmt
from dbdyno.pages import reading
from dbdyno.pages.reading import Analysis
from dbdyno.report.figures import base, theme, views

ROW, INDENT, GAP = 34, 16, 70
COLOURS = {"moved": theme.OTHERS[0], "merged": theme.OTHERS[1], "dropped": theme.OTHERS[2], "added": theme.OTHERS[4]}


class _Node(TypedDict, total=False):
    """A step of a plan, as stored in the analysis."""

    level: int
    text: str
    rows: int | None
    mark: str | None
    atoms: list[str]


class _Line(TypedDict):
    """A line or a box between two corners."""

    x: float
    x2: float
    y: float
    y2: float


class _Move(_Line):
    """Line from the step where a condition was written to the step where it is applied."""

    colour: str


class _Box(_Move):
    """A step with its text."""

    middle: float
    words: str


def draw(analysis: Analysis, look: theme.Look = theme.WIDE) -> Any | None:
    """Return the chart, or None if the analysis has no plans."""
    import altair as alt

    sides = [reading.list_of(_Node, analysis, side) for side in ("written", "executed")]
    if not all(sides):
        return None
    width = look.width - 30
    room = (width - GAP) / 2
    boxes = [box for at, nodes in enumerate(sides) for box in _boxes(nodes, at * (room + GAP), room)]
    lines = [line for at, nodes in enumerate(sides) for line in _branches(nodes, at * (room + GAP))]
    heads = [
        {"x": at * (room + GAP), "y": -0.75, "words": words} for at, words in enumerate(("as written", "as executed"))
    ]
    deepest = max(len(nodes) for nodes in sides)
    x = alt.X("x:Q", scale={"domain": [0, width], "nice": False}, axis=None)
    heights: Any = {"domain": [deepest, -1], "nice": False}
    y = alt.Y("y:Q", scale=heights, axis=None)
    to, down = alt.X2("x2"), alt.Y2("y2")
    colour = alt.Color("colour:N", scale=None)
    parts = [
        alt.Chart(base.data(lines)).mark_rule(color=theme.FAINT).encode(x=x, x2=to, y=y, y2=down),
        alt.Chart(base.data(_moves(sides, room)))
        .mark_rule(strokeDash=[4, 3], strokeWidth=1.5)
        .encode(x=x, x2=to, y=y, y2=down, color=colour),
        alt.Chart(base.data(boxes))
        .mark_rect(fill=theme.PAPER, cornerRadius=3)
        .encode(x=x, x2=to, y=y, y2=down, stroke=alt.Stroke("colour:N", scale=None)),
        alt.Chart(base.data(boxes))
        .mark_text(align="left", dx=6, fontSize=11)
        .encode(x=x, y=alt.Y("middle:Q", scale=heights, axis=None), text="words:N", color=colour),
        alt.Chart(base.data(heads))
        .mark_text(align="left", fontWeight="bold", color=theme.SOFT)
        .encode(x=x, y=y, text="words:N"),
    ]
    plot = views.layer(*parts, width=width, height=ROW * (deepest + 1))
    return theme.finish(plot, FIGURE.title, FIGURE.how_to_read, look)


def _boxes(nodes: Sequence[_Node], left: float, room: float) -> list[_Box]:
    found: list[_Box] = []
    for at, node in enumerate(nodes):
        start = left + INDENT * int(node.get("level") or 0)
        rows = "" if node.get("rows") is None else f" · {fmt.count(node['rows'])} row{'' if node['rows'] == 1 else 's'}"
        letters = max(8, int((left + room - start - 12) / 6.1))
        words = fmt.line(f"{node.get('text') or ''}", max(4, letters - len(rows))) + rows
        found.append(
            {
                "x": start,
                "x2": left + room,
                "y": at - 0.36,
                "y2": at + 0.36,
                "middle": at,
                "words": words,
                "colour": COLOURS.get(str(node.get("mark")), theme.INK),
            }
        )
    return found


def _branches(nodes: Sequence[_Node], left: float) -> list[_Line]:
    """Return the lines from each step to the one above it: down, then to the right."""
    found: list[_Line] = []
    above: dict[int, int] = {}
    for at, node in enumerate(nodes):
        level = int(node.get("level") or 0)
        if level:
            x = left + INDENT * (level - 1) + INDENT / 2
            found.append({"x": x, "x2": x, "y": above[level - 1] + 0.36, "y2": at})
            found.append({"x": x, "x2": left + INDENT * level, "y": at, "y2": at})
        above[level] = at
    return found


def _moves(sides: Sequence[Sequence[_Node]], room: float) -> list[_Move]:
    """Return the lines from where a condition was written to where it is applied."""
    places = [
        {str(atom): (at, node) for at, node in reversed(list(enumerate(nodes))) for atom in node.get("atoms") or []}
        for nodes in sides
    ]
    found: list[_Move] = []
    for atom, (at, node) in places[0].items():
        if atom in places[1] and node.get("mark") in COLOURS:
            there, target = places[1][atom]
            found.append(
                {
                    "x": room,
                    "x2": room + GAP + INDENT * int(target.get("level") or 0),
                    "y": at,
                    "y2": there,
                    "colour": COLOURS[str(node["mark"])],
                }
            )
    return found


FIGURE = base.Figure(
    name="flow",
    title="What the optimizer made of the written order",
    how_to_read="The result is at the top, the tables read are at the bottom. A dashed line leads from a condition as "
    "written to the step that applies it. A coloured step was moved.",
    draw=draw,
)
