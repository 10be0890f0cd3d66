"""The figure of active sessions as SVG for a page, written without Vega: it is drawn on every zoom in a browser.

The layout is that of the chart in `session_history`, which is used for files; a test compares the rectangles of both.
Vega would take ten times the processor time, and more than a hundred megabytes of memory.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from html import escape

from dbdyno.pages import format as fmt
from dbdyno.pages import reading
from dbdyno.pages.reading import Analysis
from dbdyno.report.figures import axes, clock, session_history, theme
from dbdyno.report.figures.session_history import LANE, LANES, Bar, Class, Event

TIPS_MOST = 400
"""Maximum number of rectangles with their own tool tip; more are drawn as one path per class."""
HEIGHT, GAP, ROW, PAD = 210, 10, 14, 8
"""Sizes in pixels: height of the wide plot, gap between plot and lanes, row of the legend, padding."""
RIGHT = 17


@dataclass(frozen=True)
class _Frame:
    """Conversion of times and numbers of sessions to pixels in the plot."""

    look: theme.Look
    low_s: float
    high_s: float
    top: float

    @property
    def height(self) -> int:
        return self.look.height(HEIGHT)

    @property
    def size(self) -> int:
        return 11 if self.look.narrow else 12

    def x(self, at_s: float) -> float:
        share = (at_s - self.low_s) / max(self.high_s - self.low_s, 1e-9)
        return min(max(share, 0.0), 1.0) * self.look.plot

    def y(self, sessions: float) -> float:
        return self.height * (1 - sessions / self.top)


def svg(analysis: Analysis, look: theme.Look, label: str) -> str | None:
    """Return the figure as one `<svg>` element, or None if no session was active; `label` is for a screen reader."""
    at = reading.dig(analysis, "at_us") or []
    classes = session_history.order_classes(reading.list_of(Class, analysis, "classes"))
    if not at or not classes:
        return None
    low, high = (float(reading.dig(analysis, name)) / 1e6 for name in ("from_us", "to_us"))
    bars, highest = session_history.bars(at, classes, float(reading.dig(analysis, "width_us") or 1) / 1e6)
    frame = _Frame(look, low, high, max(highest, 0.001) * 1.05)
    events = [one for one in reading.list_of(Event, analysis, "events") if one["kind"] in LANES]
    events = events[: session_history.EVENTS_MOST]
    kinds = [kind for kind in LANES if any(one["kind"] == kind for one in events)]
    names = [one["name"] for one in classes]
    columns = look.columns(names, 6)
    above = PAD + ROW * -(-len(names) // columns) + frame.size + 20
    lanes_at = frame.height + GAP
    axis_at = lanes_at + LANE * len(kinds) if kinds else frame.height
    below, axis_height = _clock_axis(frame)
    width, height = look.left + look.plot + RIGHT, above + axis_at + axis_height + PAD
    inside = [
        *_grid(frame),
        f'<g shape-rendering="crispEdges">{"".join(_stacks(bars, frame, names))}</g>',
        *(_lane_marks(events, kinds, frame, lanes_at) if kinds else ()),
        _group(below, 0, axis_at),
        _group(_legend(names, columns, frame), 0, PAD - above),
    ]
    body = _group(inside, look.left, above)
    return f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{escape(label)}">{body}</svg>'


def _group(parts: Iterable[str], x: float, y: float) -> str:
    return f'<g transform="translate({_px(x)},{_px(y)})">{"".join(parts)}</g>'


def _px(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _text(words: str, x: float, y: float, size: int, colour: str = theme.SOFT, anchor: str = "start") -> str:
    place = f'x="{_px(x)}" y="{_px(y)}" text-anchor="{anchor}" font-size="{size}px" fill="{colour}"'
    return f"<text {place}>{escape(words)}</text>"


def _line(x: float, y: float, x2: float, y2: float, colour: str) -> str:
    ends = " ".join(
        f'{name}="{_px(value)}"' for name, value in zip(("x1", "y1", "x2", "y2"), (x, y, x2, y2), strict=True)
    )
    return f'<line {ends} stroke="{colour}"/>'


def _grid(frame: _Frame) -> Iterator[str]:
    """Yield the lines and labels of the vertical axis."""
    yield _text("active sessions", 4 - frame.look.left, -12, frame.size)
    for tick in axes.linear_ticks(0, frame.top, 4):
        y = frame.y(tick)
        yield _line(0, y, frame.look.plot, y, theme.GRID)
        yield _text(f"{tick:.4g}", -4, y + 4, frame.size, anchor="end")


def _stacks(bars: list[Bar], frame: _Frame, names: list[str]) -> Iterator[str]:
    """Yield a path for each rectangle with its tool tip, or one per class if there are many."""
    if len(bars) < TIPS_MOST:
        for bar in bars:
            tip = f' data-tip="{escape(bar["tip"])}"'
            yield f'<path{tip} d="{_rectangle(bar, frame)}" fill="{theme.class_colour(bar["class"])}"/>'
        return
    for name in names:
        course = "".join(_rectangle(bar, frame) for bar in bars if bar["class"] == name)
        yield f'<path d="{course}" fill="{theme.class_colour(name)}"/>'


def _rectangle(bar: Bar, frame: _Frame) -> str:
    left, right = (round(frame.x(at), 2) for at in (bar["from"], bar["to"]))
    top, bottom = frame.y(bar["high"]), frame.y(bar["low"])
    return f"M{_px(left)},{_px(top)}h{_px(right - left)}v{_px(bottom - top)}h{_px(left - right)}Z"


def _lane_marks(events: list[Event], kinds: list[str], frame: _Frame, below: int) -> Iterator[str]:
    """Yield a lane for each kind: its name, and for each event a line over its time span, with a diamond."""
    for at, kind in enumerate(kinds):
        middle = below + LANE * at + LANE / 2
        yield _line(0, middle, frame.look.plot, middle, theme.GRID)
        yield _text(kind, -4, middle + 3, 10 if frame.look.narrow else 12, anchor="end")
        own = [one for one in events if one["kind"] == kind]
        yield f'<path d="{"".join(_span(one, frame, middle) for one in own)}" fill="{theme.FAINT}"/>'
        for one in own:
            tip = escape(f"{clock.moment(one['at_us'])}: {fmt.line(one['what'], 120)}")
            place = f"M{_px(frame.x(one['at_us'] / 1e6) - 3.24)},{_px(middle)}"
            diamond = "l3.24,-3.24l3.24,3.24l-3.24,3.24Z"
            yield f'<path data-tip="{tip}" d="{place}{diamond}" fill="{theme.INK}"/>'


def _span(event: Event, frame: _Frame, middle: float) -> str:
    since = event["after_us"] if event["after_us"] is not None else event["at_us"]
    left, right = frame.x(since / 1e6), frame.x(event["at_us"] / 1e6)
    return f"M{_px(left)},{_px(middle - 2)}h{_px(right - left)}v4h{_px(left - right)}Z"


def _clock_axis(frame: _Frame) -> tuple[list[str], int]:
    """Return the parts of the horizontal axis, and its height in pixels."""
    plot, size = frame.look.plot, frame.size
    found, step = clock.ticks(frame.low_s, frame.high_s, clock.most_ticks(narrow=frame.look.narrow))
    parts = [_line(0, 0.5, plot, 0.5, theme.FAINT)]
    taken = -1e9
    for tick in found:
        x, words = frame.x(tick), clock.label(tick, step)
        half = len(words) * size * theme.LETTER / 2
        parts.append(_line(x, 0, x, 4, theme.FAINT))
        anchor = "start" if x < half else "end" if x > plot - half else "middle"
        if x - half > taken:
            parts.append(_text(words, x, 17, size, anchor=anchor))
            taken = x + half
    lines = textwrap.wrap(clock.title(frame.low_s * 1e6, frame.high_s * 1e6), int(plot / (size * theme.LETTER)))
    parts += [
        _text(words, plot / 2, 25 + size + at * (size + 3), size, anchor="middle") for at, words in enumerate(lines)
    ]
    return parts, 28 + size + (len(lines) - 1) * (size + 3)


def _legend(names: list[str], columns: int, frame: _Frame) -> Iterator[str]:
    widest = max(map(len, names)) * frame.size * theme.LETTER + 17 + 28
    for at, name in enumerate(names):
        x, y = (at % columns) * widest, (at // columns) * ROW
        yield f'<path d="M{_px(x + 1.5)},{y + 1.5}h10v10h-10Z" fill="{theme.class_colour(name)}"/>'
        yield _text(fmt.line(name, 60), x + 17, y + 10, frame.size, theme.INK)
