"""Values as shades: the levels of a heat map with its legend, and values as text."""

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
    """Shades in equal steps from zero to the largest value: twice the value is twice as many steps up.

    If all values are alike, their median is in the middle of a middle shade. The scale of a share ends at 1 at most.
    """

    top: float

    @classmethod
    def of(cls, values: Sequence[float], unit: Any = None) -> Scale:
        """Return the scale for these values."""
        if not values:
            return cls(1.0)
        middle = statistics.median(values) * len(theme.HEAT) / (len(theme.HEAT) / 2 - 0.5)
        top = max(*values, middle) or 1.0
        return cls(min(top, 1.0) if unit == "ratio" else top)

    def level(self, value: float) -> int:
        """Return the index of the shade of a value."""
        last = len(theme.HEAT) - 1
        return max(0, min(last, int(value / self.top * len(theme.HEAT))))

    def colour(self, unit: Any, look: theme.Look, *, columns: int = 8) -> Any:
        """Return the encoding of the field `level`, with a legend of the values at which each shade begins."""
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
            "labelExpr": axes.axis_labels(list(named), named.__getitem__)["labelExpr"],
        }
        return alt.Color("level:O", scale=self._shades(), legend=legend)

    def stroke(self) -> Any:
        """Return the encoding of `colour` for the outline as well, so that there is no seam between neighbours."""
        import altair as alt

        return alt.Stroke("level:O", scale=self._shades(), legend=None)

    def _shades(self) -> dict[str, object]:
        return {"domain": list(range(len(theme.HEAT))), "range": list(theme.HEAT)}


def row_height(rows: int) -> int:
    """Return the height of a raster's row in pixels: large enough to read a few rows, small enough to show a rack."""
    return 18 if rows <= 8 else 12 if rows <= 24 else 8


def short_names(names: Sequence[str], limit: int = 11) -> list[str]:
    """Return names of cells shortened for a narrow place by removing what all have in common.

    A common domain at the end is removed first; if that is not enough, also a common beginning up to a separator.
    """
    ends = {name.partition(".")[2] for name in names}
    if len(ends) == 1 and re.search("[A-Za-z]", next(iter(ends))):
        names = [name.partition(".")[0] for name in names]
    if len(names) > 1 and max(map(len, names)) > limit:
        first, last = min(names), max(names)
        pairs = enumerate(zip(first, last, strict=False))
        common = first[: next((at for at, (a, b) in pairs if a != b), len(first))]
        cut = max(common.rfind(sign) for sign in "_-.:/") + 1
        names = [name[cut:] for name in names]
    return list(names)


def row_axis(names: Sequence[str], look: theme.Look) -> dict[str, object]:
    """Return the labels of rows: as many as there is room for, cut at the beginning."""
    high = row_height(len(names))
    every = 1 if high >= 12 else 2
    return {
        "title": None,
        "domain": False,
        "ticks": False,
        "grid": False,
        "values": list(names[::every]),
        "labelFontSize": 10 if high >= 12 else 8,
        "labelOverlap": False,  # all labels fit; otherwise Vega drops some 10-pixel labels in 18-pixel rows
        "labelLimit": look.left - 8,
        "minExtent": look.left - 6,
        "maxExtent": look.left - 6,
    }


def label(value: float, unit: Any) -> str:
    """Return a value for an axis or a legend: short, with its unit."""
    if unit == "ns":
        return axes.duration_label(value)
    if unit == "ratio":
        return axes.percent_label(value)
    if value == 0:
        return "0"
    shown = f"{value:.3g}" if 0.001 <= abs(value) < 1000 else fmt.significant(value, 2)
    unit = "/s" if unit == "1/s" else fmt.line(unit or "")
    return f"{shown}{fmt.THIN}{unit}".strip()


def value_text(value: float, unit: Any) -> str:
    """Return a value for a tool tip: four digits, with its unit."""
    return fmt.percent(value, 3) if unit == "ratio" else fmt.quantity(value, unit, 4)
