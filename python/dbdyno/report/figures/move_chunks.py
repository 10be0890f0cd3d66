"""Figure of a move over time: a panel for each attempt, with its phases on top and a lane of chunks for each worker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypedDict

from dbdyno.pages import format as fmt
from dbdyno.pages import reading
from dbdyno.pages.reading import Analysis
from dbdyno.report.figures import axes, base, theme, views

LANE = 24
"""Height of a lane in pixels."""
ATTEMPTS_MOST, LANES_MOST, KINDS_MOST, BARS_MOST = 6, 32, 4, 2000
PHASES = "phases"
PHASE_COLOURS = {
    "reading": theme.FAINT,
    "loading": theme.FAINT,
    "publishing": theme.OTHERS[0],
    "checking": theme.OTHERS[2],
}
CHUNK_COLOURS = (theme.OTHERS[4], theme.OTHERS[1], theme.OTHERS[3], theme.OTHERS[5])


class _Chunk(TypedDict):
    """A finished chunk, as stored in the analysis."""

    number: int
    table: int
    worker: int | None
    snapshot: int
    began_ns: int | None
    ended_ns: int | None
    rows: int
    bytes: int


class _Phase(TypedDict):
    """A phase of an attempt: its name, start, end, and how it ended."""

    name: str
    began_ns: int
    ended_ns: int
    ending: str


class _Attempt(TypedDict):
    """An attempt, from its first to its last sign of activity."""

    how: str
    began_ns: int
    ended_ns: int
    phases: list[_Phase]


_Bar = TypedDict("_Bar", {"lane": str, "from": float, "to": float, "kind": str, "tip": str})


def draw(analysis: Analysis, look: theme.Look = theme.WIDE) -> Any | None:
    """Return the chart, or None if no chunk has a known time."""
    attempts = reading.list_of(_Attempt, analysis, "attempts")
    chunks = [
        one for one in reading.list_of(_Chunk, analysis, "chunks") if one["ended_ns"] and one["worker"] is not None
    ]
    if not attempts or not chunks:
        return None
    kinds = _kinds(analysis, chunks)
    panels = []
    for place, attempt in enumerate(attempts):
        until = attempts[place + 1]["began_ns"] if place + 1 < len(attempts) else None
        own = [one for one in chunks if _is_within(one, attempt, until)]
        bars = [*_phase_bars(attempt), *_chunk_bars(own, attempt, kinds)]
        if bars:
            panels.append((f"{place + 1}: {fmt.line(attempt['how'], 40)}", attempt, bars))
    if not panels:
        return None
    shown = [name for name in (*kinds.values(), *PHASE_COLOURS) if any(b["kind"] == name for p in panels for b in p[2])]
    names = list(dict.fromkeys(shown))
    colours = dict(zip(dict.fromkeys(kinds.values()), CHUNK_COLOURS, strict=False)) | PHASE_COLOURS
    scale = {"domain": names, "range": [colours.get(name, theme.FAINT) for name in names]}
    drawn = [_panel(*one, scale, len(attempts) > 1, look) for one in panels[-ATTEMPTS_MOST:]]
    return theme.finish(views.vconcat(*drawn, spacing=18), FIGURE.title, FIGURE.how_to_read, look)


def _kinds(analysis: Analysis, chunks: Sequence[_Chunk]) -> dict[int, str]:
    """Return the name that selects each chunk's colour: that of its snapshot, of its table, or one for all."""
    instants = reading.entries(analysis, "instants")
    if len(instants) > 1:
        names = [f"as of {fmt.line(one.get('at'), 19)}" for one in instants]
        of = {one["number"]: names[min(one["snapshot"], len(names) - 1)] for one in chunks}
    else:
        tables = [fmt.line(one.get("table"), 30) for one in reading.entries(analysis, "tables")]
        several = 1 < len(tables) <= KINDS_MOST
        of = {
            one["number"]: tables[one["table"]] if several and one["table"] < len(tables) else "chunk" for one in chunks
        }
    return of if len(set(of.values())) <= KINDS_MOST else dict.fromkeys(of, "chunk")


def _is_within(chunk: _Chunk, attempt: _Attempt, until: int | None) -> bool:
    ended = chunk["ended_ns"] or 0
    return attempt["began_ns"] <= ended and (until is None or ended < until)


def _phase_bars(attempt: _Attempt) -> list[_Bar]:
    bars: list[_Bar] = []
    for one in attempt["phases"]:
        begun, ended = (one[name] - attempt["began_ns"] for name in ("began_ns", "ended_ns"))
        tip = f"{fmt.line(one['name'])}: {fmt.duration(ended - begun)}, {fmt.line(one['ending'], 100)}"
        kind = one["name"] if one["name"] in PHASE_COLOURS else "reading"
        bars.append({"lane": PHASES, "from": begun / 1e9, "to": ended / 1e9, "kind": kind, "tip": tip})
    return bars


def _chunk_bars(chunks: Sequence[_Chunk], attempt: _Attempt, kinds: dict[int, str]) -> list[_Bar]:
    """Return a bar for each chunk; with very many chunks, one bar for several consecutive chunks of a worker."""
    each = -(-len(chunks) // BARS_MOST)
    bars: list[_Bar] = []
    for worker in sorted({one["worker"] for one in chunks if one["worker"] is not None})[:LANES_MOST]:
        own = sorted((one for one in chunks if one["worker"] == worker), key=lambda one: one["ended_ns"] or 0)
        for at in range(0, len(own), max(each, 1)):
            some = own[at : at + max(each, 1)]
            begun, ended = some[0]["began_ns"] or 0, some[-1]["ended_ns"] or 0
            what = f"chunk {some[0]['number']}" if len(some) == 1 else f"{len(some)} chunks"
            rows, size = (sum(one[name] for one in some) for name in ("rows", "bytes"))
            tip = (
                f"worker {worker + 1}, {what}: {fmt.count(rows)} rows, {fmt.size(size)}, {fmt.duration(ended - begun)}"
            )
            bars.append(
                {
                    "lane": f"worker {worker + 1}",
                    "from": max(begun - attempt["began_ns"], 0) / 1e9,
                    "to": (ended - attempt["began_ns"]) / 1e9,
                    "kind": kinds[some[0]["number"]],
                    "tip": tip,
                }
            )
    return bars


def _panel(title: str, attempt: _Attempt, bars: list[_Bar], scale: Any, titled: bool, look: theme.Look) -> Any:
    import altair as alt

    lanes = list(dict.fromkeys(one["lane"] for one in bars))
    longest = max((attempt["ended_ns"] - attempt["began_ns"]) / 1e9, *(one["to"] for one in bars), 1e-3)
    ticks = axes.seconds_ticks(0, longest, 4 if look.narrow else 9)
    x_scale = {"domain": [0, longest], "nice": False, "clamp": True}
    words = f"time since the start of attempt {title}" if titled else "time since the start"
    names = scale["domain"]
    return (
        alt.Chart(base.data(bars), width=look.plot, height=LANE * len(lanes))
        .mark_rect(stroke=theme.PAPER, strokeWidth=1, aria=len(bars) <= 400)
        .encode(
            x=alt.X("from:Q", scale=x_scale, axis={"title": words, **axes.axis_labels(ticks, axes.seconds_label)}),
            x2=alt.X2("to"),
            y=alt.Y(
                "lane:N",
                sort=lanes,
                scale={"domain": lanes, "paddingInner": 0.2, "paddingOuter": 0.1},
                axis={"title": None, "minExtent": look.left - 6, "maxExtent": look.left - 6, "labelOverlap": False},
            ),
            color=alt.Color(
                "kind:N",
                sort=names,
                scale=scale,
                legend={"symbolType": "square", "symbolSize": 150, "columns": look.columns(names, 6)},
            ),
            description=alt.Description("tip:N"),
        )
    )


FIGURE = base.Figure(
    "move_chunks",
    "Chunks by worker, over time",
    "A bar is a chunk, from its statement to its end; a worker without one had nothing left to do. On top: reading,"
    " publishing, checking. A phase that a kill ended has no bar.",
    draw,
)
