"""Wording shared by pages about traces: names of statements, places, periods, empty cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from dbdyno.page import Cell
from dbdyno.pages import format as fmt

WALL_CLOCK_FROM = 3e17
"""Smallest value, in nanoseconds since 1970 (it is in 1979), that is taken for a wall clock time."""


def statement_name(key: object, text: object, longest: int = 60) -> str:
    """Return a statement on one line: its key and the beginning of its text."""
    name = fmt.line(key or "")
    if name in ("", "unknown:0"):
        return "no statement"
    if name.startswith("unknown:"):
        return f"cursor {name.removeprefix('unknown:')}, text not traced"
    words = fmt.line(text or "", longest)
    return f"{name}  {words}" if words else name


def place(path: object, line: object) -> str:
    """Return a place in a trace: the file's name without folders, and the line."""
    name = fmt.line(path or "").replace("\\", "/").rpartition("/")[2]
    return f"{name}:{line}"


def period(from_ns: Any, to_ns: Any) -> str:
    """Return a period in UTC, such as `2020-06-13 11:20:03 to 11:20:05`; "" if its ends are not wall clock times."""
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
    """Return the link target of each statement that is on the page."""
    return {str(entry.get("statement")): f"#s-{at}" for at, entry in enumerate(statements, 1)}


def cell_or_blank(value: Any, unit: str = "") -> Any:
    """Return a cell with the value, or an empty cell if the figure does not apply to this kind of row.

    If a unit is given, the value is a count, and zero also gives an empty cell.
    """
    return Cell("", "words") if value in (None, 0) and (value is None or unit) else Cell(value)


def bar_share(value: Any) -> float:
    """Return a share limited to 0 to 1, as the length of a bar."""
    return max(0.0, min(fmt.number(value) or 0.0, 1.0))
