"""Pages about models: a machine, and the claims that the model is held to.

A page is a dict of kind "model"; `page` says which one. `rows` gives what CSV and JSON lines hold,
`render_text` what a terminal shows; the HTML page is `dbdyno.report.html`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dbdyno.pages import reading
from dbdyno.report import console
from dbdyno.report.model import calibration, claims, drawing, machine
from dbdyno.report.sections.base import Section

if TYPE_CHECKING:
    from rich.console import Console

PAGES = {"machine": machine, "claims": claims, "calibration": calibration}


def order(model: Mapping[str, Any]) -> tuple[Section, ...]:
    """The sections of a model's HTML page."""
    found: tuple[Section, ...] = PAGES[str(model.get("page"))].SECTIONS
    return found


def rows(model: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The page as flat rows: raw numbers, no formatting; all have the same keys, in order."""
    found: list[dict[str, Any]] = PAGES[str(model.get("page"))].rows(reading.read(model))
    return found


def render_text(model: Mapping[str, Any], *, width: int, color: bool) -> str:
    """The page as text, `width` columns wide."""
    safe = reading.read(model)

    def draw(page: Console) -> None:
        PAGES[str(safe["page"])].print_page(safe, page)

    return console.rendered(draw, width=width, color=color)


def own_file(model: Mapping[str, Any], suffix: str) -> str | None:
    """The page as a file of its own kind: a machine's drawing as SVG, a fit as TOML; else None."""
    page = model.get("page")
    if page == "machine" and suffix == "svg":
        return drawing.svg(reading.read(model)) + "\n"
    return str(model["toml"]) if page == "calibration" and suffix == "toml" else None
