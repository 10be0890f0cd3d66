"""Parsing of times written by users: durations (`1s`, `500ms`) and moments (`2026-11-21T10:02:11`)."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from dbdyno.base.errors import TraceError

LONGEST_NS = 10 * 365 * 86_400 * 10**9
"""Longest time that evidence can store: ten years [ns]."""

_UNITS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "min": 60_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}


def length_ns(text: str, where: str) -> int:
    """Parse a duration such as `1s`, `0.5 ms` or `2min`, and return it in nanoseconds.

    A number without a unit is in seconds. The range is 1 ns to ten years.

    Raises:
        TraceError: the text is not a duration, or is out of range.
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-zµ]*)\s*", text)
    unit = found[2] or "s" if found else ""
    if found is None or unit not in _UNITS:
        raise TraceError(f"{text!r} is not a duration", where=where, next_step="write 500us, 20ms, 1s or 5min")
    length = float(found[1]) * _UNITS[unit]
    if not 1 <= length <= LONGEST_NS:
        raise TraceError(f"{text!r} is out of range", where=where, next_step="write a time from 1ns to 87600h")
    return round(length)


def moment_ns(text: str, where: str) -> int:
    """Parse an ISO 8601 moment and return it in ns since 1970.

    Without a zone the moment is in UTC, like the time stamps of traces without a zone (Oracle before 12.2).

    Raises:
        TraceError: the text is not a moment.
    """
    try:
        at = datetime.fromisoformat(text)
    except ValueError as error:
        raise TraceError(
            f"{text!r} is not a time",
            where=where,
            next_step="write 2026-11-21T10:02:11, or with a zone 2026-11-21T10:02:11+01:00",
        ) from error
    if at.tzinfo is None:
        at = at.replace(tzinfo=UTC)
    since = at - datetime(1970, 1, 1, tzinfo=UTC)
    return ((since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds) * 1_000
