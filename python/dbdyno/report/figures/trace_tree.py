"""Figure of the recursion tree of one execution as an icicle plot: time to the right, depth downwards."""

from __future__ import annotations

from typing import Any

from dbdyno.base.json_types import TableRow
from dbdyno.pages import format as fmt
from dbdyno.pages import reading
from dbdyno.pages.reading import Analysis
from dbdyno.report.figures import axes, base, theme, views

LEVELS_MOST = 10
SMALLEST = 0.0008


def draw(analysis: Analysis, look: theme.Look = theme.WIDE) -> Any | None:
    """Return the chart, or None for fewer than two nodes."""
    import altair as alt

    nodes = reading.entries(analysis, "nodes")
    if len(nodes) < 2 or not nodes[0].get("elapsed_ns"):
        return None
    whole = float(nodes[0]["elapsed_ns"])
    width = look.width - 30
    boxes = _boxes(nodes, whole, width)
    deepest = max(box["level"] for box in boxes)
    ticks = axes.linear_ticks(0, whole, 4 if look.narrow else 8)
    x = alt.X(
        "from:Q",
        scale={"domain": [0, whole], "nice": False},
        axis={"title": "time, inclusive", "orient": "top", **axes.axis_labels(ticks, axes.duration_label)},
    )
    y = alt.Y("level:O", axis=None, scale={"domain": list(range(deepest + 1)), "paddingInner": 0.04})
    chart = alt.Chart(base.data(boxes))
    bars = chart.mark_bar(stroke=theme.PAPER, strokeWidth=1, aria=True).encode(
        x=x,
        x2=alt.X2("to"),
        y=y,
        color=alt.Color("colour:N", scale=None),
        description=alt.Description("tip:N"),
    )
    named = alt.Chart(base.data([box for box in boxes if box["words"]]))
    text = named.mark_text(align="left", dx=4, fontSize=11).encode(
        x=x, y=y, text=alt.Text("words:N"), color=alt.Color("ink:N", scale=None)
    )
    plot = views.layer(bars, text, width=width, height=alt.Step(24))
    return theme.finish(plot, FIGURE.title, FIGURE.how_to_read, look)


def _boxes(nodes: list[TableRow], whole: float, width: int) -> list[TableRow]:
    """Return a box for each node, from the left end of its parent, siblings side by side.

    The part of a parent that is its exclusive time is not covered by children.
    """
    boxes: list[TableRow] = []
    reached: list[float] = []
    for at, node in enumerate(nodes):
        level = int(node.get("level") or 0)
        span = float(node.get("elapsed_ns") or 0)
        start = reached[level] if level < len(reached) else (boxes[-1]["from"] if boxes else 0.0)
        reached[level:] = [start + span, start]
        pixels = span / whole * width
        if level > LEVELS_MOST or (span < whole * SMALLEST and at):
            boxes.append({"from": start, "hidden": True})
            continue
        name = fmt.line(node.get("text") or node.get("statement") or "", 120)
        own = fmt.number(node.get("self_share")) or 0.0
        shade = min(len(theme.HEAT) - 1, int(max(own, 0.0) * (len(theme.HEAT) + 1)))
        letters = int((pixels - 10) / 6.1)
        boxes.append(
            {
                "from": start,
                "to": start + span,
                "level": level,
                "colour": theme.HEAT[shade],
                "ink": theme.PAPER if shade >= 3 else theme.INK,
                "words": fmt.line(name, letters) if letters >= 6 else "",
                "tip": f"{fmt.line(node.get('statement'))}: {fmt.duration(span)}, own "
                f"{fmt.duration(node.get('self_elapsed_ns'))}, {fmt.line(name, 80)}",
            }
        )
    return [box for box in boxes if "hidden" not in box]


FIGURE = base.Figure(
    name="tree",
    title="One execution, and the calls inside it",
    how_to_read="The width of a box is its time, with the calls inside it, which are the boxes below. "
    "A stronger shade means that more of the time is its own.",
    draw=draw,
)
