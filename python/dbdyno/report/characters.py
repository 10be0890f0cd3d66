"""Small charts made of characters, for a terminal; pure functions."""

from __future__ import annotations

import math
from collections.abc import Sequence

_PARTS = ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")
_EIGHTHS = " ▁▂▃▄▅▆▇█"


def line(values: Sequence[float | None]) -> str:
    """Return one character per value, from the lowest (▁) to the highest (█); a missing value is a blank."""
    known = [value for value in values if value is not None]
    if not known:
        return ""
    low, high = min(known), max(known)
    span = high - low

    def height(value: float) -> int:
        return 4 if span == 0 else 1 + round((value - low) / span * 7)

    return "".join(" " if value is None else _EIGHTHS[height(value)] for value in values)


def interval(ratio: float, low: float | None, high: float | None, reach: float, width: int) -> str:
    """Return an estimate (●) with its interval (━) around the line of no difference (│).

    `reach` is the logarithm of the ratio at the right end; an interval that extends beyond it ends in ‹ or ›. `width`
    is odd.
    """
    last = width - 1

    def place(value: float) -> int:
        return round((math.log(value) / reach + 1) / 2 * last)

    cells = ["·"] * width
    cells[last // 2] = "│"
    if low and high:
        for at in range(max(place(low), 0), min(place(high), last) + 1):
            cells[at] = "━"
        if place(low) < 0:
            cells[0] = "‹"
        if place(high) > last:
            cells[last] = "›"
    cells[min(max(place(ratio), 0), last)] = "●"
    return "".join(cells)


def bars(values: Sequence[float], height: int) -> list[str]:
    """Return a bar chart from zero as `height` lines, top line first, with one column per value."""
    top = max(values, default=0.0)
    if top <= 0:
        return []
    eighths = [round(max(value, 0.0) / top * height * 8) for value in values]
    return [
        "".join(_EIGHTHS[min(max(bar - level * 8, 0), 8)] for bar in eighths).rstrip()
        for level in reversed(range(height))
    ]


def thin_values(values: Sequence[float], limit: int) -> list[float]:
    """Return at most `limit` of the values, picked evenly, so that a chart fits its line."""
    if len(values) <= limit:
        return list(values)
    return [values[at * len(values) // limit] for at in range(limit)]


def bar(share: float, width: int) -> str:
    """Return a bar from the left in eighths of a character; every share above zero is visible."""
    if not share > 0:
        return ""
    eighths = max(1, round(min(share, 1.0) * width * 8))
    return "█" * (eighths // 8) + _PARTS[eighths % 8]


def heights(values: Sequence[float], empty: str = "·") -> str:
    """Return a bar chart of one line: a character for each value, as high as its share of the largest value.

    Every value above zero is visible; all other values are shown as the character `empty`.
    """
    top = max(values, default=0.0)
    if top <= 0:
        return empty * len(values)
    return "".join(empty if value <= 0 else _EIGHTHS[max(1, round(value / top * 8))] for value in values)
