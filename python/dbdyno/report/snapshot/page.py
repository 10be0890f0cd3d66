"""Sections as parts of the HTML page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dbdyno.pages import format as fmt
from dbdyno.pages import reading
from dbdyno.pages.reading import Analysis
from dbdyno.report.sections import base, pictures
from dbdyno.report.snapshot import cells


def order(model: Mapping[str, Any]) -> tuple[base.Section, ...]:
    """Head, figures, a section for each of the model's, warnings."""
    made = [
        base.Section(
            f"s-{fmt.line(section.get('name') or at)}",
            fmt.line(section.get("title") or section.get("name") or "section"),
            _maker(at),
            "snapshot_section",
        )
        for at, section in enumerate(reading.entries(model, "sections"))
    ]
    return (
        base.Section("snapshot_head", "Interval", cells.head),
        base.Section("warnings", "To know", _warnings, "gates"),
        pictures.SECTION,
        *made,
    )


def _warnings(model: Analysis) -> base.View | None:
    found = [
        {key: fmt.line(one.get(key) or "") for key in ("code", "text", "next")}
        for one in reading.entries(model, "warnings")
    ]
    return {"gates": [], "warnings": found} if found else None


def _maker(at: int) -> Callable[[Analysis], base.View | None]:
    return lambda model: view(reading.entries(model, "sections")[at])


def view(section: Analysis) -> base.View:
    """A section's tables as words."""
    return {
        "about": fmt.line(section.get("about") or ""),
        "tables": [_table(table) for table in reading.entries(section, "tables")],
        "lacks": [
            {key: fmt.line(lack.get(key) or "") for key in ("what", "why", "next")}
            for lack in reading.entries(section, "not_measured")
        ],
        "notes": [fmt.line(note) for note in reading.strings(section, "notes")],
    }


def _table(table: Analysis) -> base.View:
    shown = cells.shown(table)
    rows = []
    for row in reading.entries(table, "rows"):
        word = row.get("verdict")
        rows.append(
            {
                "cells": [
                    {
                        "text": cells.cell(row, column),
                        "left": column["unit"] in cells.LEFT,
                        "sql": column["name"] == "text",
                    }
                    for column in shown
                ],
                "verdict": "" if word in (None, "ok") else fmt.line(word),
                "why": fmt.line(row.get("why") or ""),
            }
        )
    return {
        "title": fmt.line(table.get("title") or ""),
        "columns": [{"label": fmt.line(column["label"]), "left": column["unit"] in cells.LEFT} for column in shown],
        "rows": rows,
        "left_out": fmt.count(table["left_out"]) if table.get("left_out") else "",
    }
