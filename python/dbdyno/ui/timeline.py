"""The chart of active sessions with its controls: the visible window, and the interval selected in it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dbdyno.base.json_types import JsonObject
from dbdyno.ui.places import Server
from dbdyno.ui.result_cache import ResultCache
from dbdyno.ui.stretch import CURRENT_INTERVALS, Stretch, iso
from dbdyno.ui.view import address

_WHOLE = re.compile(r'viewBox="0 0 ([\d.]+) ([\d.]+)"')
_CORNER = re.compile(r"translate\(([\d.]+),([\d.]+)\)")
_DRAWN: ResultCache[dict[str, str] | None] = ResultCache(64)
FACTOR = 2
"""Factor by which one zoom step changes the length of the window."""


@dataclass(frozen=True)
class Timeline:
    """A window of a server's time, the interval selected in it, and the data of its chart."""

    server: Server
    window: Stretch
    stretch: Stretch | None
    drawn: Mapping[str, Any] | None


def timeline(timeline: Timeline, named: Mapping[str, str], path: str = "/server") -> JsonObject:
    """Return the values for the chart's template; `named` has the address's other parameters, `path` its path."""
    window = timeline.window
    low, high = window.low_us, window.high_us
    width = high - low
    shown = timeline.stretch or window
    moves = {
        "Earlier": (low - width // 2, high - width // 2),
        "Later": (low + width // 2, high + width // 2),
        "Zoom in": (shown.low_us, shown.high_us) if timeline.stretch else (low + width // 4, high - width // 4),
        "Zoom out": (low - width // FACTOR, high + width // FACTOR),
    }
    lasting = [(name, address(path, **named, window=name)) for name in CURRENT_INTERVALS]
    return {
        "low_us": low,
        "high_us": high,
        "stretch": [timeline.stretch.low_us, timeline.stretch.high_us] if timeline.stretch else [],
        "words": f"{iso(shown.low_us).replace('T', ' ')} to {iso(shown.high_us).replace('T', ' ')} UTC",
        "lasting": lasting,
        "moves": [
            (words, address(path, **named, window=f"{iso(a)}..{iso(b)}"))
            for words, (a, b) in moves.items()
            if b - a >= 2e6
        ],
        "pictures": _pictures(timeline),
    }


def _pictures(timeline: Timeline) -> list[JsonObject]:
    """Return the chart for a wide window and for a phone, each with the position of its plot."""
    if timeline.drawn is None:
        return []
    from dbdyno.report.figures import clock

    drawn = timeline.drawn
    where = f"{timeline.server.store.folder} {timeline.server.target} {timeline.window.numbers}"
    name = f"{where} {hash(str((drawn['classes'], drawn['events'])))} {clock.zone_name()}"
    found = _DRAWN.get(name, len(timeline.window.chain), lambda: _draw(drawn))
    return [_place_plot(look, found[look], timeline.drawn) for look in ("wide", "narrow")] if found else []


def _draw(drawn: Mapping[str, Any]) -> dict[str, str] | None:
    from dbdyno.report import figures

    return figures.draw_figure("session_history", drawn)


def _place_plot(look: str, svg: str, drawn: Mapping[str, Any]) -> JsonObject:
    """Return a chart with the position of its plot as fractions of the picture, and the times at the plot's ends."""
    from markupsafe import Markup

    from dbdyno.report.figures import NARROW, WIDE
    from dbdyno.report.figures.session_svg import HEIGHT

    whole, corner = _WHOLE.search(svg), _CORNER.search(svg)
    wide, high = map(float, whole.groups()) if whole else (1.0, 1.0)
    left, top = map(float, corner.groups()) if corner else (0.0, 0.0)
    size = WIDE if look == "wide" else NARROW
    across = {"left": left / wide, "width": size.plot / wide}
    down = {"top": top / high, "height": size.height(HEIGHT) / high}
    ends = {"from_us": drawn["from_us"], "to_us": drawn["to_us"]}
    return {"look": look, "svg": Markup(svg), **across, **down, **ends}  # noqa: S704 - our own drawing, through the allow list
