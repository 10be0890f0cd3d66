"""Axis in clock time: ticks on whole seconds, minutes, hours and days, with the date where it changes.

The zone is UTC unless the program that draws has set `ZONE`, as the pages in a browser do for their reader.
"""

from __future__ import annotations

import math
from contextvars import ContextVar
from datetime import UTC, datetime, tzinfo

from dbdyno.report.figures import axes

STEPS_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800)
DAY_S = 86400
ZONE: ContextVar[tzinfo] = ContextVar("zone", default=UTC)


def axis(from_us: float, to_us: float, *, narrow: bool) -> axes.Axis:
    """Return the options of a horizontal axis in seconds since 1970: ticks, and a title with the date."""
    low, high = from_us / 1e6, to_us / 1e6
    found, step = ticks(low, high, most_ticks(narrow=narrow))
    words = {tick: label(tick, step) for tick in found}
    return {"title": title(from_us, to_us), **axes.axis_labels(found, lambda tick: words[tick])}


def most_ticks(*, narrow: bool) -> int:
    """Return how many ticks fit on an axis."""
    return 4 if narrow else 9


def title(from_us: float, to_us: float) -> str:
    """Return the title of an axis: the zone, and the date or dates."""
    first, last = day(from_us), day(to_us)
    return f"clock time, {zone_name()}, {first}" + (f" to {last}" if last != first else "")


def ticks(low: float, high: float, limit: int) -> tuple[list[float], int]:
    """Return at most `limit` times on a whole step within [low, high] (seconds since 1970), and the step [s]."""
    span = max(high - low, 1e-6)
    step = next((one for one in STEPS_S if span / one <= limit), STEPS_S[-1])
    while span / step > limit:
        step *= 2
    ahead = _ahead_s(low)
    first, last = math.ceil((low + ahead) / step), math.floor((high + ahead) / step)
    return [float(at * step) - ahead for at in range(first, last + 1)] or [low], step


def label(at: float, step: float) -> str:
    """Return the label of a time: `10:42`; `10:42:05` for steps below a minute; `11-21` at midnight."""
    moment = datetime.fromtimestamp(at, ZONE.get())
    if step >= DAY_S or ((at + _ahead_s(at)) % DAY_S == 0 and step >= 60):
        return moment.strftime("%m-%d")
    return moment.strftime("%H:%M:%S" if step < 60 else "%H:%M")


def moment(at_us: float) -> str:
    """Return the time of day, such as `10:42:05`, for tool tips."""
    return datetime.fromtimestamp(at_us / 1e6, ZONE.get()).strftime("%H:%M:%S")


def day(at_us: float) -> str:
    """Return the date, such as `2026-11-21`."""
    return datetime.fromtimestamp(at_us / 1e6, ZONE.get()).strftime("%Y-%m-%d")


def zone_name() -> str:
    """Return the name of the zone, such as `UTC` or `Europe/Berlin`."""
    return str(ZONE.get())


def _ahead_s(at: float) -> float:
    """Return by how much the zone's clock is ahead of UTC, in seconds."""
    offset = datetime.fromtimestamp(at, ZONE.get()).utcoffset()
    return offset.total_seconds() if offset is not None else 0.0
