"""Words that pages about traces share: names of statements, places, periods, blanks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from dbdyno.page import Cell
from dbdyno.pages import format as fmt

WALL_CLOCK_FROM = 3e17
"""Nanoseconds since 1970 in 1979: before it no wall clock is known."""


def statement_name(key: object, text: object, longest: int = 60) -> str:
    """A statement on one line: its key and the beginning of its text."""
    name = fmt.line(key or "")
    if name in ("", "unknown:0"):
        return "no statement"
    if name.startswith("unknown:"):
        return f"cursor {name.removeprefix('unknown:')}, text not traced"
    words = fmt.line(text or "", longest)
    return f"{name}  {words}" if words else name


def place(path: object, line: object) -> str:
    """Where something stands: the file's own name and the line."""
    name = fmt.line(path or "").replace("\\", "/").rpartition("/")[2]
    return f"{name}:{line}"


def period(from_ns: Any, to_ns: Any) -> str:
    """From when to when, UTC or the trace's own clock: `2020-06-13 11:20:03 to 11:20:05`."""
    start, end = (_moment(ns) for ns in (from_ns, to_ns))
    if not start or not end:
        return ""
    return f"{start} to {end[11:] if start[:10] == end[:10] else end}"


def _moment(ns: Any) -> str:
    given = fmt.number(ns)
    if given is None or not WALL_CLOCK_FROM <= given < 4e18:
        return ""
    return datetime.fromtimestamp(int(ns) // 1_000_000_000, UTC).strftime("%Y-%m-%d %H:%M:%S")


def anchors(statements: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """The place on the page of each statement that is on it."""
    return {str(entry.get("statement")): f"#s-{at}" for at, entry in enumerate(statements, 1)}


def blank(value: Any, unit: str = "") -> Any:
    """A value, or an empty cell where there is none: not known here means not of this row's kind."""
    return Cell("", "words") if value in (None, 0) and (value is None or unit) else Cell(value)


def part(value: Any) -> float:
    """A share as a part of a bar, 0 to 1."""
    return max(0.0, min(fmt.number(value) or 0.0, 1.0))
