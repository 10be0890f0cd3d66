"""Durations as plans write them: a number and a unit."""

from __future__ import annotations

import re

_UNITS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9, "h": 3600 * 10**9}


def duration_ns(text: str) -> int | None:
    """Return the nanoseconds of a duration such as '50ms', '1.5s' or '2min'; `None` for any other text.

    >>> duration_ns("50ms")
    50000000
    """
    match = re.fullmatch(r"\s*(\d{1,18}(?:\.\d{1,18})?)\s*(ns|us|ms|s|min|h)\s*", text)
    return round(float(match[1]) * _UNITS[match[2]]) if match else None
