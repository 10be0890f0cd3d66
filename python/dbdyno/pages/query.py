"""Builder of the page about a query's answer: its rows, and a chart of the last numeric column."""

from __future__ import annotations

from dbdyno.page import Column, Head, Page, Row, Section, Table
from dbdyno.pages import common, reading
from dbdyno.pages import format as fmt
from dbdyno.pages.reading import Analysis


def page(model: Analysis) -> Page:
    """Return the page about a query's answer."""
    names = [fmt.line(one.get("name") or "", 60) for one in reading.entries(model, "columns")]
    units = [str(one.get("unit") or "text") for one in reading.entries(model, "columns")]
    columns = tuple(Column(f"c{at}", name, unit) for at, (name, unit) in enumerate(zip(names, units, strict=True)))
    rows = tuple(Row({f"c{at}": value for at, value in enumerate(row)}) for row in reading.dig(model, "rows") or ())
    count = int(model.get("count") or 0)
    shown = Table("", columns, rows, left_out=int(model.get("left_out") or 0), look="loose")
    head = Head("SQL", "", name="sql", headline=common.with_noun(count, "row") or "no row", section="SQL")
    answer = Section(
        "answer",
        common.with_noun(count, "row") or "No row",
        tables=(shown,) if rows else (),
        figures=common.figures(model, "query") if model.get("points") else (),
        notes=tuple(fmt.line(one) for one in reading.strings(model, "notes")),
    )
    return Page(head, (answer,))
