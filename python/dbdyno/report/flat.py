"""A page as flat rows for CSV, JSON lines or a data frame: raw unformatted numbers, all rows with the same keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dbdyno.base.json_types import TableRow
from dbdyno.page import BY_ROW, Cell, Page, Section
from dbdyno.pages import page_of


def rows(given: Page | Mapping[str, Any]) -> list[TableRow]:
    """Return the rows of the page's data table, or else one row per number of all its tables.

    A row per number has the keys section, table, row, column, value, unit and verdict.
    """
    page = page_of(given)
    if page.data is not None:
        table = page.data()
        return [{one.name: _raw(row.cells.get(one.name)) for one in table.columns} for row in table.rows]
    return [row for section in page.sections for row in _numbers(section)]


def _numbers(section: Section) -> Iterator[dict[str, object]]:
    for table in section.tables:
        first = table.columns[0].name if table.columns else ""
        for row in table.rows:
            for column in table.columns[1:]:
                if column.name == "unit" or column.kind != "value":
                    continue
                yield {
                    "section": section.name.removeprefix("s-"),
                    "table": table.title,
                    "row": _raw(row.cells.get(first)),
                    "column": column.name,
                    "value": _raw(row.cells.get(column.name)),
                    "unit": row.cells.get("unit") if column.unit in BY_ROW else column.unit.replace("code", "text"),
                    "verdict": row.verdict or "ok",
                }
    for part in (*section.parts, *section.rest()):
        yield from _numbers(part)


def _raw(value: Any) -> Any:
    return value.value if isinstance(value, Cell) else value
