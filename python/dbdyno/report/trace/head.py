"""What every page about traces begins and ends with: what was read, and what to know about it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from dbdyno.pages import reading
from dbdyno.report import console
from dbdyno.pages import format as fmt
from dbdyno.pages.reading import Analysis
from dbdyno.report.sections import base

if TYPE_CHECKING:
    from rich.console import Console

_WARNINGS_MOST = 4
_LINES_MOST = 3
KINDS = {
    "profile": "Response-time profile",
    "sql": "Statements",
    "events": "Waits by event",
    "waits": "Waits of one event",
    "tree": "Recursion tree of one execution",
    "timeline": "Timeline of sessions",
    "check": "Check of traces",
    "report": "Trace report",
}


def view(model: Analysis) -> base.View:
    """Title and facts; always there."""
    facts = reading.dig(model, "facts") or {}
    return {
        "kind": KINDS.get(str(model.get("page")), "Trace"),
        "title": fmt.line(facts.get("title") or "traces"),
        "period": period(facts.get("from_ns"), facts.get("to_ns")),
        "chips": chips(facts),
        "alerts": len(reading.entries(model, "warnings")),
    }


def chips(facts: dict[str, Any]) -> list[str]:
    """The facts, one short phrase each; what is not known is left out."""
    found = [
        _counted(facts.get("files"), "file"),
        fmt.size(facts["bytes"]) if facts.get("bytes") else "",
        _counted(facts.get("lines"), "line"),
        _counted(facts.get("sessions"), "session"),
        f"{fmt.span(facts['elapsed_ns'] / 1e9)} of session time" if facts.get("elapsed_ns") else "",
        *(f"Oracle {fmt.line(version, 30)}" for version in facts.get("versions") or []),
        *(f"level {fmt.line(level, 20)}" for level in facts.get("levels") or []),
    ]
    return [phrase for phrase in found if phrase]


def period(from_ns: Any, to_ns: Any) -> str:
    """From when to when, UTC or the trace's own clock: `2020-06-13 11:20:03 to 11:20:05`."""
    start, end = (_moment(ns) for ns in (from_ns, to_ns))
    if not start or not end:
        return ""
    return f"{start} to {end[11:] if start[:10] == end[:10] else end}"


def _moment(ns: Any) -> str:
    given = fmt.number(ns)
    if given is None or not 0 < given < 4e18 or given < 3e17:  # before 1979: no wall clock known
        return ""
    return datetime.fromtimestamp(int(ns) // 1_000_000_000, UTC).strftime("%Y-%m-%d %H:%M:%S")


def clock(ns: Any, every_ns: float = 1e9) -> str:
    """The time of day of a moment, with as many digits as intervals of `every_ns` need."""
    given = fmt.number(ns)
    if given is None:
        return fmt.NONE
    whole, rest = divmod(int(ns), 1_000_000_000)
    text = datetime.fromtimestamp(whole, UTC).strftime("%H:%M:%S")
    if every_ns >= 1e9:
        return text
    return f"{text}.{rest // 1_000_000:03d}" if every_ns >= 1e6 else f"{text}.{rest // 1000:06d}"


def _counted(number: Any, noun: str) -> str:
    if number is None or number == 0:
        return ""
    return f"{fmt.count(number)} {noun}{'' if number == 1 else 's'}"


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


def warnings(model: Analysis) -> base.View | None:
    """The warnings, or None without any."""
    found = [
        {
            "code": fmt.line(warning.get("code") or ""),
            "text": fmt.line(warning.get("text") or ""),
            "next": fmt.line(warning.get("next") or ""),
        }
        for warning in reading.entries(model, "warnings")
    ]
    return {"gates": [], "warnings": found} if found else None


def print_head(model: Analysis, page: Console) -> None:
    """Title and facts."""
    shown = view(model)
    page.print(console.plain(shown["title"], "bold"))
    facts = " · ".join([*shown["chips"], *([shown["period"]] if shown["period"] else [])])
    if facts:
        page.print(console.plain(facts, "dim"))
    page.print()


def print_warnings(model: Analysis, page: Console) -> None:
    """Each warning with its next step."""
    shown = warnings(model)
    if shown is None:
        return
    page.print()
    for warning in shown["warnings"][:_WARNINGS_MOST]:
        console.item(page, "!", console.plain(fmt.line(warning["text"], _LINES_MOST * (page.width - 3)), "yellow"))
        if warning["next"]:
            console.item(page, " ", console.plain(f"next: {warning['next']}"))
    left = len(shown["warnings"]) - _WARNINGS_MOST
    if left > 0:
        noun = "warning" if left == 1 else "warnings"
        console.item(page, "!", console.plain(f"{left} more {noun}; --format json has all", "yellow"))


SECTION = base.Section("trace_head", "Trace", view)
WARNINGS = base.Section("gates", "Warnings", warnings)
