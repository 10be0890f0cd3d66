"""Values as shades: the levels of a heat map with its legend, and how a value is told in words."""

from __future__ import annotations

import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dbdyno.pages import format as fmt
from dbdyno.report.figures import axes, theme


@dataclass(frozen=True)
class Scale:
    """Shades from zero to the largest value, in equal steps: twice the value, twice the step. The
    median of values that are alike lies in the middle of a middle shade; a share has 1 at most."""

    top: float

    @classmethod
    def of(cls, values: Sequence[float], unit: Any = None) -> Scale:
        """The scale of these values."""
        if not values:
            return cls(1.0)
        middle = statistics.median(values) * len(theme.HEAT) / (len(theme.HEAT) / 2 - 0.5)
        top = max(*values, middle) or 1.0
        return cls(min(top, 1.0) if unit == "ratio" else top)

    def level(self, value: float) -> int:
        """The number of the shade of a value."""
        last = len(theme.HEAT) - 1
        return max(0, min(last, int(value / self.top * len(theme.HEAT))))

    def colour(self, unit: Any, look: theme.Look, *, columns: int = 8) -> Any:
        """The encoding of field `level`, with a legend that says where each shade begins."""
        import altair as alt

        levels = list(range(len(theme.HEAT)))
        named = {float(at): label(self.top * at / len(levels), unit) for at in levels}
        legend = {
            "orient": "bottom",
            "direction": "horizontal",
            "title": "from",
            "titleAnchor": "start",
            "symbolType": "square",
            "symbolSize": 110,
            "symbolStrokeWidth": 0,
            "offset": 4,
            "columns": 4 if look.narrow else columns,
            "columnPadding": 10,
            "values": levels,
            "labelExpr": axes.labelled(list(named), named.__getitem__)["labelExpr"],
        }
        return alt.Color("level:O", scale=self._shades(), legend=legend)

    def stroke(self) -> Any:
        """The same as the outline, so that neighbours leave no seam."""
        import altair as alt

        return alt.Stroke("level:O", scale=self._shades(), legend=None)

    def _shades(self) -> dict[str, object]:
        return {"domain": list(range(len(theme.HEAT))), "range": list(theme.HEAT)}


def row_height(rows: int) -> int:
    """Pixels for a row of a raster: high enough to read a few, low enough to see a rack."""
    return 18 if rows <= 8 else 12 if rows <= 24 else 8


def short_names(names: Sequence[str], most: int = 11) -> list[str]:
    """Names of cells for a narrow place: without what all have in common: a domain at the end, and
    if that is not enough a beginning up to a sign between words."""
    ends = {name.partition(".")[2] for name in names}
    if len(ends) == 1 and re.search("[A-Za-z]", next(iter(ends))):
        names = [name.partition(".")[0] for name in names]
    if len(names) > 1 and max(map(len, names)) > most:
        first, last = min(names), max(names)
        pairs = enumerate(zip(first, last, strict=False))
        common = first[: next((at for at, (a, b) in pairs if a != b), len(first))]
        cut = max(common.rfind(sign) for sign in "_-.:/") + 1
        names = [name[cut:] for name in names]
    return list(names)


def row_axis(names: Sequence[str], look: theme.Look) -> dict[str, object]:
    """The labels of rows: as many as there is room for, cut at the beginning."""
    high = row_height(len(names))
    every = 1 if high >= 12 else 2
    return {
        "title": None,
        "domain": False,
        "ticks": False,
        "grid": False,
        "values": list(names[::every]),
        "labelFontSize": 10 if high >= 12 else 8,
        "labelOverlap": False,  # there is room for these; Vega leaves some out at 10 pixels of 18
        "labelLimit": look.left - 8,
        "minExtent": look.left - 6,
        "maxExtent": look.left - 6,
    }


def label(value: float, unit: Any) -> str:
    """A value on an axis or in a legend: short, with its unit."""
    if unit == "ns":
        return axes.duration_label(value)
    if unit == "ratio":
        return axes.percent_label(value)
    if value == 0:
        return "0"
    shown = f"{value:.3g}" if 0.001 <= abs(value) < 1000 else fmt.significant(value, 2)
    unit = "/s" if unit == "1/s" else fmt.line(unit or "")
    return f"{shown}{fmt.THIN}{unit}".strip()


def words(value: float, unit: Any) -> str:
    """A value in a tip: four digits, with its unit."""
    return fmt.percent(value, 3) if unit == "ratio" else fmt.quantity(value, unit, 4)
