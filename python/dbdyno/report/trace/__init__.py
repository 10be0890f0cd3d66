"""Pages about traces: each file picks and formats for one page, for HTML, terminal and flat rows.

A page is a dict of kind "trace"; `page` says which one. `rows` gives what CSV and JSON lines hold,
`render_text` what a terminal shows; the HTML page is `dbdyno.report.html`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dbdyno.pages import reading
from dbdyno.report import console
from dbdyno.report.sections.base import Section
from dbdyno.report.trace import check, events, head, profile, report, sql, timeline, tree, waits

if TYPE_CHECKING:
    from rich.console import Console

PAGES = {
    "profile": profile,
    "sql": sql,
    "events": events,
    "waits": waits,
    "tree": tree,
    "timeline": timeline,
    "check": check,
    "report": report,
}


def order(model: Mapping[str, Any]) -> tuple[Section, ...]:
    """The sections of a trace's HTML page."""
    return (head.SECTION, *PAGES[_name(model)].SECTIONS, head.WARNINGS)


def rows(model: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The page as flat rows: raw numbers, no formatting; all have the same keys, in order."""
    found: list[dict[str, Any]] = PAGES[_name(model)].rows(reading.read(model))
    return found


def render_text(model: Mapping[str, Any], *, width: int, color: bool, skew: bool = False) -> str:
    """The page as text, `width` columns wide; `skew` adds a profile's full skew tables."""
    safe = reading.read(model)

    def draw(page: Console) -> None:
        head.print_head(safe, page)
        PAGES[_name(safe)].print_page(safe, page)
        if skew and _name(safe) == "profile":
            profile.print_skew(safe, page)
        head.print_warnings(safe, page)

    return console.rendered(draw, width=width, color=color)


def _name(model: Mapping[str, Any]) -> str:
    name = str(model.get("page"))
    return name if name in PAGES else "profile"
