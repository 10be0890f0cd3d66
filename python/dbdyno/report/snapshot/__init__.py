"""Pages about snapshots: any engine's sections, as text, HTML and flat rows.

The model names its columns and their units, so that nothing here knows an engine: `cells` turns a
row into words, `lines` prints sections on a terminal, `page` gives them to the HTML page.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dbdyno.pages import reading
from dbdyno.report import console
from dbdyno.report.sections.base import Section
from dbdyno.report.snapshot import lines, page

BY_ROW = ("number", "quantity")
"""Units of columns whose values have the unit of their row."""

__all__ = ["order", "render_text", "rows"]


def order(model: Mapping[str, Any]) -> tuple[Section, ...]:
    """The sections of the HTML page: head, figures, each section of the model, warnings."""
    return page.order(model)


def render_text(model: Mapping[str, Any], *, width: int, color: bool) -> str:
    """The report as text, `width` columns wide."""
    safe = reading.read(model)
    return console.rendered(lambda out: lines.draw(safe, out), width=width, color=color)


def rows(model: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One flat row per number: section, table, row, column, value, unit, verdict."""
    found = []
    for section in reading.entries(model, "sections"):
        for table in reading.entries(section, "tables"):
            shown = reading.entries(table, "columns")
            for row in reading.entries(table, "rows"):
                first = shown[0]["name"] if shown else ""
                found += [
                    {
                        "section": section["name"],
                        "table": table["title"],
                        "row": row.get(first),
                        "column": column["name"],
                        "value": row.get(column["name"]),
                        "unit": row.get("unit") if column["unit"] in BY_ROW else column["unit"],
                        "verdict": row.get("verdict") or "ok",
                    }
                    for column in shown[1:]
                    if column["name"] != "unit"
                ]
    return found
