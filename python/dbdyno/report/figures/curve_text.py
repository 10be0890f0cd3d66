"""Curves drawn with characters: for each curve the medians of its bins as bars from zero."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dbdyno.pages import format as fmt
from dbdyno.pages import reading
from dbdyno.report import characters, console

if TYPE_CHECKING:
    from rich.text import Text

_BARS = 8


def lines(model: Mapping[str, Any], width: int) -> list[Text]:
    """Return the curves, one below the other."""
    curves = reading.curves(dict(model))
    names = reading.arm_names(dict(model))
    made: list[Text] = []
    for curve in curves:
        bins = [
            (x, y)
            for entry in reading.entries(curve, "bins")
            if (x := fmt.number(entry.get("redo_bytes"))) is not None
            and (y := fmt.number(entry.get("median_ns"))) is not None
        ]
        chart = characters.bars(characters.thin_values([y for _, y in bins], width - 14), _BARS)
        if not chart:
            continue
        if len(curves) > 1:
            made.append(console.plain_text(reading.arm_name(names, curve.get("arm"))))
        labels = [fmt.duration(max(y for _, y in bins)), *[""] * (_BARS - 2), "0"]
        made += [console.plain_text(f"{label:>9} │{bar}") for label, bar in zip(labels, chart, strict=True)]
        ends = f"{fmt.size(bins[0][0])} to {fmt.size(bins[-1][0])}, {len(bins)} bins"
        made.append(console.plain_text(f"{'':>9} └ {ends}", "dim"))
    return made
