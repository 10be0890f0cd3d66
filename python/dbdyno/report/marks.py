"""Small drawings inside tables: SVG for a page, characters for a terminal; made only from numbers, never from text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from dbdyno.base.json_types import JsonObject
from dbdyno.page import Strip
from dbdyno.pages import format as fmt
from dbdyno.report import characters

STRIP = 168
"""Width of the strip that draws an interval, in CSS pixels."""
_STRIP_SIGNS, _BAR_SIGNS, _HALF = 21, 10, 10


def svg(kind: str, value: Any, tone: str) -> str:
    """Return a mark as `<svg>`, or "" if there is no value."""
    if value is None:
        return ""
    drawn: JsonObject = {"bar": _bar, "side": _side, "heights": _heights, "spark": _spark, "strip": _strip}
    return str(drawn[kind](value, tone)) if kind in drawn else ""


def mark_text(kind: str, value: Any, room: int, wide: int = 0) -> str:
    """Return a mark as characters; a line over time takes all the `room`."""
    if value is None:
        return ""
    if kind == "bar":
        most = min(wide, room + 20) if wide else _BAR_SIGNS
        return characters.bar(float(value), most)
    if kind == "side":
        return _sided_bar(float(value))
    if kind == "heights":
        return characters.heights(characters.thin_values(value, max(room, 12)))
    if kind == "spark":
        return characters.line(characters.thin_values(value, max(room, 12)))
    strip: Strip = value
    return characters.interval(strip.ratio, strip.low, strip.high, strip.reach, _STRIP_SIGNS)


def _sided_bar(part: float) -> str:
    """Return a bar to the right of the centre line for more, to the left for less."""
    filled = min(round(abs(part) * _HALF), _HALF)
    if part >= 0:
        return " " * _HALF + "│" + "█" * filled
    return " " * (_HALF - filled) + "█" * filled + "│"


def _bar(share: Any, tone: str) -> str:
    width = max(0.0, min(fmt.number(share) or 0.0, 1.0))
    name = f"bar {tone}".strip() if tone.isalpha() or not tone else "bar"
    return (
        f'<svg class="{name}" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect width="{round(width * 100, 1)}" height="8"/></svg>'
    )


def _side(part: float, tone: str) -> str:
    x = 84 if part > 0 else round(84 + part * 82, 1)
    return (
        '<svg class="strip" viewBox="0 0 168 22" aria-hidden="true"><path class="one" d="M84 2V20"/>'
        f'<rect class="{"more" if part > 0 else "less"}" x="{x}" y="7" width="{round(abs(part) * 82, 1)}"'
        ' height="8"/></svg>'
    )


def _heights(values: Sequence[float], tone: str) -> str:
    most = max(values, default=0.0) or 1.0
    bars = "".join(
        f'<rect x="{at * 10}" y="{round(20 - value / most * 20, 1) if value else 19.2}" width="8"'
        f' height="{round(value / most * 20, 1) if value else 0.8}"/>'
        for at, value in enumerate(values)
    )
    return f'<svg class="skew" viewBox="0 0 {len(values) * 10} 20" aria-hidden="true">{bars}</svg>'


def _spark(values: Sequence[float], tone: str) -> str:
    """Return a line over time with the area below it, from zero to its highest value."""
    most = max(values, default=0.0) or 1.0
    points = [
        f"{round(at * 100 / max(len(values) - 1, 1), 1)} {round(19 - v / most * 18, 1)}" for at, v in enumerate(values)
    ]
    line = "L".join(points)
    return (
        '<svg class="spark" viewBox="0 0 100 20" preserveAspectRatio="none" aria-hidden="true">'
        f'<path class="area" d="M0 20L{line}L100 20Z"/><path class="line" d="M{line}"/></svg>'
    )


def _place(ratio: float, reach: float) -> float:
    """Return the position of a ratio on the strip in pixels, limited to the strip."""
    share = (math.log(ratio) / reach + 1) / 2
    return round(min(max(share, 0.0), 1.0) * STRIP, 1)


def _strip(strip: Strip, tone: str) -> str:
    """Return an estimate with its interval; an arrow marks an end that lies beyond the strip."""
    reach = strip.reach
    known = strip.low is not None and strip.high is not None and strip.low > 0 and strip.high > 0
    low, high = (strip.low or strip.ratio, strip.high or strip.ratio) if known else (strip.ratio, strip.ratio)
    left, right, at = _place(low, reach), _place(high, reach), _place(strip.ratio, reach)
    parts = [f'<svg class="strip themed {strip.tone}" viewBox="0 0 {STRIP} 22" aria-hidden="true">']
    if strip.band:
        start, end = _place(1 / (1 + strip.band), reach), _place(1 + strip.band, reach)
        parts.append(f'<rect class="band" x="{start}" y="0" width="{round(end - start, 1)}" height="22"/>')
    parts.append(f'<line class="one" x1="{STRIP / 2}" x2="{STRIP / 2}" y1="0" y2="22"/>')
    width = round(max(right - left, 1.0), 1)
    parts.append(f'<rect class="whisker" x="{left}" y="7" width="{width}" height="8" rx="2"/>')
    if math.log(low) < -reach:
        parts.append('<path class="cut" d="M5 6L1 11L5 16"/>')
    if math.log(high) > reach:
        parts.append(f'<path class="cut" d="M{STRIP - 5} 6L{STRIP - 1} 11L{STRIP - 5} 16"/>')
    parts.append(f'<line class="dot" x1="{at}" x2="{at}" y1="4" y2="18"/></svg>')
    return "".join(parts)
