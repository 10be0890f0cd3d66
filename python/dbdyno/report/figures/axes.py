"""Axes labelled in units for readers, so that no chart shows `1e+6`.

A tick is a number in the unit of the evidence (ns, bytes, ratio, seconds); its label is passed to the chart as a lookup
by value. Foreign text never becomes part of a Vega expression.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from typing import TypedDict

from dbdyno.pages import format as fmt

Label = Callable[[float], str]


def log_ticks(low: float, high: float, limit: int) -> list[float]:
    """Return logarithmic ticks within [low, high] (both > 0), at most `limit`.

    The densest of the patterns 1-2-5, 1-3 and decades that fits is used; evenly spaced ticks if the range is less than
    a decade and contains fewer than three of those.
    """
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    found: list[float] = []
    for steps in ((1, 2, 5), (1, 3), (1,)):
        found = [
            step * 10.0**decade
            for decade in decades
            for step in steps
            if low * 0.999 <= step * 10.0**decade <= high * 1.001
        ]
        if len(found) <= limit:
            break
    if len(found) < 3 and high < 10 * low:
        # Between neighbouring floats, several multiples are the same float.
        found = list(dict.fromkeys(linear_ticks(low, high, min(limit, 6) - 1)))
    every = -(-len(found) // limit) if found else 1
    return found[::every] or [low, high]


def linear_ticks(low: float, high: float, limit: int, base: int = 10) -> list[float]:
    """Return at most `limit` multiples of 1, 2 or 5 x 10^k within [low, high]; with base 2 multiples of 2^k."""
    if high <= low:
        return [low]
    need = (high - low) / limit
    if base == 2:
        step = 2.0 ** math.ceil(math.log2(need))
    else:
        power = 10.0 ** math.floor(math.log10(need))
        step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= need * 0.9999)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [at * step for at in range(first, last + 1)]


def ratio_ticks(low: float, high: float, limit: int) -> tuple[list[float], Label]:
    """Return ticks for ratios on a log axis, with their label function.

    Near 1 they are even steps of change (`+5 %`), otherwise factors (`×3`).
    """
    if low < 0.35 or high > 2.6:
        return log_ticks(low, high, limit), factor_label
    even = linear_ticks((low - 1) * 100, (high - 1) * 100, limit)
    return [1 + points / 100 for points in even], change_label


def change_label(ratio: float) -> str:
    """Return a ratio as a change: `0 %`, `+5 %`, `−2.5 %`."""
    points = round((ratio - 1) * 100, 3)
    sign = "+" if points > 0 else fmt.MINUS if points < 0 else ""
    return f"{sign}{abs(points):.4g}{fmt.THIN}%"


def factor_label(ratio: float) -> str:
    """Return a ratio as a factor: `×0.5`, `×1`, `×20`."""
    return f"×{ratio:.6g}"


def duration_label(ns: float) -> str:
    """Return a time in ns as `50 ns`, `2 ms` or `1.5 s`, without the trailing zeros of a table."""
    for factor, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
        if abs(ns) >= factor * 0.9999:
            return f"{ns / factor:.4g}{fmt.THIN}{unit}"
    return "0" if ns == 0 else f"{ns:.4g}{fmt.THIN}ns"


def size_label(size: float) -> str:
    """Return a size in bytes as `0`, `256 KiB` or `1.5 MiB`."""
    for factor, unit in ((2.0**40, "TiB"), (2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB")):
        if size >= factor:
            return f"{size / factor:.4g}{fmt.THIN}{unit}"
    return "0" if size == 0 else f"{size:.4g}{fmt.THIN}B"


def count_label(plain_below: float) -> Label:
    """Return a label of counts: rounded for readers, below `plain_below` with all digits."""
    return lambda value: fmt.count(value) if value >= plain_below else f"{value:g}"


def percent_label(share: float) -> str:
    """Return a share as `0` or `2.5 %`."""
    return "0" if share == 0 else f"{share * 100:.4g}{fmt.THIN}%"


def seconds_label(seconds: float) -> str:
    """Return a time in seconds as `0`, `30 s`, `2 min`, `1:30 min` or `1 h 05`."""
    if abs(seconds) < 60:
        return duration_label(seconds * 1e9)
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes}:{rest:02d}{fmt.THIN}min" if rest else f"{minutes}{fmt.THIN}min"
    return f"{minutes // 60}{fmt.THIN}h" + (f"{fmt.THIN}{minutes % 60:02d}" if minutes % 60 else "")


def seconds_ticks(low: float, high: float, limit: int) -> list[float]:
    """Return ticks on whole seconds, minutes or hours if the range is long enough, otherwise linear ticks."""
    for step in (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400):
        if (high - low) / step <= limit and (high - low) >= 3:
            return [float(at * step) for at in range(math.ceil(low / step), math.floor(high / step) + 1)]
    return linear_ticks(low, high, limit)


class Axis(TypedDict, total=False):
    """Options of an axis that several figures use, under Vega-Lite's names."""

    title: str | None
    grid: bool
    labels: bool
    titleAngle: int
    titleAlign: str
    titleBaseline: str
    titleAnchor: str
    titleX: float
    titleY: float
    minExtent: float
    maxExtent: float
    values: list[float]
    labelExpr: str


class Scale(TypedDict):
    """Scale of an axis under Vega-Lite's names, with its range."""

    type: str
    domain: list[float]
    nice: bool


def axis_labels(ticks: Sequence[float], label: Label) -> Axis:
    """Return the axis options that show exactly these ticks with these labels.

    The label is looked up by the nearest tick, because a scale may return 0.30000000000000004 for 0.3.
    """
    near = (f"abs(datum.value - {tick!r}) <= {abs(tick) * 1e-9!r} ? {json.dumps(label(tick))} : " for tick in ticks)
    return {"values": list(ticks), "labelExpr": "".join(near) + "''"}


def padded_range(values: Iterable[float], fraction: float, *, log: bool) -> tuple[float, float]:
    """Return the range of the values, extended at both ends by a fraction of it (with `log`, of its logarithm)."""
    given = [math.log(value) if log else value for value in values]
    low, high = min(given), max(given)
    room = (high - low) * fraction or (0.05 if log else abs(high) * 0.05 or 1.0)
    return (math.exp(low - room), math.exp(high + room)) if log else (low - room, high + room)


def nonempty_range(low: float, high: float) -> tuple[float, float]:
    """Return a non-empty range for values > 0: a single value gets room at both ends."""
    return (low, high) if high > low else (low / 1.1, low * 1.1)
