"""Pages about storage cells: a recording's report, what the cells say now, before and after, skew.

A page is a dict of kind "cells"; `page` says which one. `rows` gives what CSV and JSON lines hold,
`render_text` what a terminal shows; the HTML page is `dbdyno.report.html`. Tables have the shape of
those of snapshots and are drawn as those are. A comparison of two recordings is such a page whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dbdyno.pages import reading
from dbdyno.report import console, snapshot
from dbdyno.report.cells import arranged, lines, page
from dbdyno.report.sections.base import Section

__all__ = ["order", "render_text", "rows"]

COMPARISON = "compare"


def order(model: Mapping[str, Any]) -> tuple[Section, ...]:
    """The sections of the HTML page."""
    if model.get("page") == COMPARISON:
        return snapshot.order(model)
    return page.order(model)


def rows(model: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The page as flat rows: raw numbers, no formatting; all have the same keys, in order."""
    if model.get("page") == COMPARISON:
        return snapshot.rows(model)
    return snapshot.rows({"sections": arranged.sections(reading.read(model))})


def render_text(model: Mapping[str, Any], *, width: int, color: bool) -> str:
    """The page as text, `width` columns wide."""
    if model.get("page") == COMPARISON:
        return snapshot.render_text(model, width=width, color=color)
    safe = reading.read(model)
    return console.rendered(lambda out: lines.draw(safe, out), width=width, color=color)
