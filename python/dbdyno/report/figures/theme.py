"""Appearance of all figures: colours, sizes and fonts in one table, with the colours of dark mode.

Figures are drawn in the light colours. On the page the style sheet replaces each of them by its dark counterpart, using
attribute selectors on the inline SVG; therefore a figure uses no colour that is not in this file. The arms' colours are
distinguishable under the common forms of colour blindness (after Okabe and Ito, "Color Universal Design", 2008,
darkened until each has a contrast of at least 3:1 on white); the baseline is a quiet slate.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import Any

from dbdyno.base.json_types import JsonObject

INK, SOFT, FAINT, GRID, PAPER = "#1b2430", "#52606d", "#98a4b0", "#e4e8ed", "#fffffe"
BAND = "#7b8ea3"
BASELINE = "#5b7089"
_GROUND_DARK = {
    INK: "#e8ebf0",
    SOFT: "#a9b4c2",
    FAINT: "#66727f",
    GRID: "#2a323d",
    PAPER: "#14191f",
    BAND: "#8396ab",
    BASELINE: "#9db4cf",
}
# Light and dark colour of each arm after the baseline.
_ARMS = (
    ("#cf4f0b", "#ff8f52"),
    ("#00847b", "#37c3b5"),
    ("#93489a", "#d691d8"),
    ("#a07400", "#dfb241"),
    ("#1c71c8", "#6ab2f7"),
    ("#7a4b2b", "#cb9f7e"),
)
# Light and dark shades of a heat map, from few to many.
_HEAT = (
    ("#b4d5e9", "#27506f"),
    ("#8fc0dd", "#2b6287"),
    ("#66a8d0", "#33789f"),
    ("#438fc2", "#438fb4"),
    ("#2c74b0", "#5ea7c4"),
    ("#265a98", "#84c0d1"),
    ("#25407d", "#b0d9dd"),
    ("#221a58", "#e3f6ea"),
)
_CLASSES = {
    "commit": ("#cf4f0c", "#ff8f53"),
    "log write": ("#a07401", "#dfb242"),
    "data read": ("#1c71c9", "#6ab2f8"),
    "data write": ("#00847c", "#37c3b6"),
    "free buffer": ("#7a4b2c", "#cb9f7f"),
    "lock": ("#b3243b", "#f0707f"),
    "latch": ("#93489b", "#d691d9"),
    "network": ("#66752a", "#b1c05f"),
    "cpu": ("#3b9150", "#74cc86"),
    "cluster": ("#5a57c6", "#a3a1f4"),
    "scheduler": ("#b8467c", "#ee8fbc"),
    "other": ("#8a94a0", "#8c97a4"),
    "idle": ("#d3dae2", "#39424e"),
}
OTHERS = tuple(light for light, _ in _ARMS)
CURVES = (BASELINE, *OTHERS)
HEAT = tuple(light for light, _ in _HEAT)
CLASSES = {name: light for name, (light, _) in _CLASSES.items()}
DARK = _GROUND_DARK | dict([*_ARMS, *_HEAT, *_CLASSES.values()])
"""The dark counterpart of every colour that a figure may use."""
FONT = "system-ui, sans-serif"
LETTER = 0.58
"""Mean width of a letter relative to the font size, in the widest of the common fonts."""


@dataclass(frozen=True)
class Look:
    """The space available for a figure: its total `width` in CSS pixels; `narrow` is for a phone."""

    width: int
    narrow: bool

    @property
    def left(self) -> int:
        """Return the room for the labels of a vertical axis in pixels."""
        return 64 if self.narrow else 72

    @property
    def plot(self) -> int:
        """Return the width of the drawing area in pixels."""
        return self.width - self.left - (22 if self.narrow else 24)

    def columns(self, names: list[str], limit: int) -> int:
        """Return the number of legend entries that fit side by side, at most `limit`."""
        widest = max((len(name) for name in names), default=1) * 7 + 56
        return max(1, min(limit, self.width // widest))

    def height(self, wide: int) -> int:
        """Return the drawing height for this look, given the height for the wide look."""
        return round(wide * 0.82) if self.narrow else wide


WIDE = Look(width=880, narrow=False)
NARROW = Look(width=350, narrow=True)


def arm_colours(count: int, baseline: int | None) -> list[str]:
    """Return one colour per arm in the order of the arms; the colours repeat after the last one."""
    colours: list[str] = []
    others = 0
    for at in range(count):
        if at == (baseline if baseline is not None else 0):
            colours.append(BASELINE)
        else:
            colours.append(OTHERS[others % len(OTHERS)])
            others += 1
    return colours


def class_colour(name: str) -> str:
    """Return the colour of a class of waits; an unknown class gets the colour of `other`."""
    return CLASSES.get(name.lower(), CLASSES["other"])


def finish(chart: Any, title: str, how_to_read: str, look: Look) -> Any:
    """Set the title, the subtitle (how to read it) and the common style of a chart, and return it.

    The chart itself is changed: Altair's own `properties` and `configure` copy everything each time.
    """
    size = 11 if look.narrow else 12
    letters = round(look.width / (size * 0.51))
    chart.title = {
        "text": textwrap.wrap(title, round(letters * 0.72)),
        "subtitle": textwrap.wrap(how_to_read, letters),
    }
    chart.background = "transparent"
    chart.padding = {"left": 2, "right": 14, "top": 4, "bottom": 4}
    chart.config = _config(size)
    return chart


def fit_titles(spec: JsonObject) -> dict[str, object]:
    """Return a chart's specification with the titles of axes and panels broken into lines that fit its width.

    A browser clips what extends beyond the drawing. The width of a line is estimated from the font size: fonts differ,
    so a little room is left.
    """
    size = spec.get("config", {}).get("axis", {}).get("titleFontSize", 12)
    _fit(spec, _width_of(spec) or WIDE.plot, size)
    return spec


def _width_of(spec: Any) -> int | None:
    """Return the width of the first view in a specification."""
    if isinstance(spec, dict):
        if isinstance(spec.get("width"), int):
            return int(spec["width"])
        parts: Any = [spec.get(key) for key in ("vconcat", "hconcat", "layer", "spec")]
    else:
        parts = spec if isinstance(spec, list) else []
    return next((width for part in parts if (width := _width_of(part))), None)


def _fit(part: Any, width: int, size: int) -> None:
    if isinstance(part, list):
        for entry in part:
            _fit(entry, width, size)
    elif isinstance(part, dict):
        width = part["width"] if isinstance(part.get("width"), int) else width
        axis = part.get("axis")
        if isinstance(axis, dict):
            axis["title"] = _lines(axis.get("title"), width, size)
        title = part.get("title")
        if isinstance(title, dict) and "text" in title:
            title["text"] = _lines(title["text"], width, title.get("fontSize", size), weight=1.1)
            title["subtitle"] = _lines(title.get("subtitle"), width, title.get("subtitleFontSize", size))
        for key, entry in part.items():
            if key not in ("data", "datasets", "config"):
                _fit(entry, width, size)


def _lines(words: Any, width: int, size: int, weight: float = 1.0) -> Any:
    if not isinstance(words, str) or len(words) * size * LETTER * weight <= width:
        return words
    return textwrap.wrap(words, max(12, int(width / (size * LETTER * weight))))


def _config(size: int) -> dict[str, object]:
    label = {"labelFontSize": size, "titleFontSize": size, "titleFontWeight": "normal"}
    return {
        "font": FONT,
        "view": {"stroke": None},
        "mark": {"aria": False},
        "text": {"color": SOFT, "fontSize": size},
        "axis": {
            **label,
            "aria": False,
            "labelColor": SOFT,
            "titleColor": SOFT,
            "gridColor": GRID,
            "gridWidth": 1,
            "domainColor": FAINT,
            "tickColor": FAINT,
            "tickSize": 4,
            "labelPadding": 4,
            "labelOverlap": "greedy",
            "labelSeparation": 8,
            "titlePadding": 8,
        },
        "axisX": {"grid": False},
        "axisY": {"domain": False, "ticks": False},
        "legend": {
            **label,
            "aria": False,
            "orient": "top",
            "title": None,
            "labelColor": INK,
            "titleColor": SOFT,
            "labelLimit": 300,
            "symbolStrokeWidth": 2.5,
            "symbolOpacity": 1,
            "columnPadding": 28,
            "offset": 8,
        },
        "title": {
            "anchor": "start",
            "frame": "bounds",
            "color": INK,
            "fontSize": size + 5,
            "fontWeight": 600,
            "subtitleColor": SOFT,
            "subtitleFontSize": size,
            "subtitleLineHeight": size + 4,
            "subtitlePadding": 5,
            "offset": 14,
        },
    }
