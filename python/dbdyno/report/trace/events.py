"""All events of a trace, one line each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dbdyno.pages import reading
from dbdyno.report import characters, console
from dbdyno.pages import format as fmt
from dbdyno.pages.reading import Analysis
from dbdyno.report.sections import base
from dbdyno.report.trace.profile import seconds, share

if TYPE_CHECKING:
    from rich.console import Console

COLUMNS = ("event", "class", "count", "total_ns", "share", "mean_ns", "p50_ns", "p99_ns", "max_ns")


def view(model: Analysis) -> base.View | None:
    """The events as text, or None without any."""
    given = reading.entries(model, "events")
    if not given:
        return None
    return {
        "rows": [
            {
                "event": fmt.line(event.get("event") or ""),
                "class": fmt.line(event.get("class") or ""),
                "count": fmt.count(event.get("count")),
                "seconds": seconds(event.get("total_ns")),
                "share": share(event.get("share")),
                "width": max(0.0, min(fmt.number(event.get("share")) or 0.0, 1.0)),
                **{n: fmt.duration(event.get(f"{n}_ns")) for n in ("mean", "p50", "p99", "max")},
            }
            for event in given
        ]
    }


def rows(model: Analysis) -> list[dict[str, Any]]:
    """One row per event."""
    return [{name: event.get(name) for name in COLUMNS} for event in reading.entries(model, "events")]


def print_page(model: Analysis, page: Console) -> None:
    """The events, and how to look at one."""
    shown = view(model)
    if shown is None:
        return
    names = ["class", "count", "seconds", "share", "mean", "p50", "p99", "max"]
    for name, least in (("class", 96), ("mean", 104), ("p50", 88)):
        if page.width < least:
            names.remove(name)
    table = console.table("Waits by event", ["event"], names, narrowest=27, padding=(0, 2, 0, 0))
    if page.width >= 120:
        table.add_column("")
    for row in shown["rows"]:
        cells = [row["event"], *(row[name] for name in names)]
        drawn = [characters.bar(row["width"], 10)] if page.width >= 120 else []
        table.add_row(*(console.plain(cell) for cell in [*cells, *drawn]))
    page.print(table)
    page.print()
    first = shown["rows"][0]["event"]
    page.print(console.plain(f"--event '{first}' shows the waits of one event", "dim"))


SECTIONS = (base.Section("trace_events", "Waits by event", view),)
