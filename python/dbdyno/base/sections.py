"""The parts of a page as plain dicts with raw numbers, without formatting.

A section holds tables; a table has columns, each with a label and a unit, and rows. A value that is not known is None:
renderers show it as unknown, never as 0. What was not measured is reported with the setting that would measure it.

Units: text, count, per_s, ratio (1.0 is the whole), ns, bytes, bytes_per_s, aas (average active sessions), time
(microseconds since 1970), number.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NotRequired, TypedDict

from dbdyno.base.json_types import JsonObject

Row = JsonObject
"""A row of a query's result: values by column name."""
NOTHING = "nothing in this interval"
"""Note for a section that has no rows, nothing unmeasured and no other note."""


class Heading(TypedDict):
    """A column of a table; one made by `page_only_column` is not shown on a terminal."""

    name: str
    label: str
    unit: str
    page_only: NotRequired[bool]


class Table(TypedDict):
    """A table; `left_out` is the number of rows that are not in it."""

    title: str
    columns: list[Heading]
    rows: list[Row]
    left_out: int


class MissingMeasurement(TypedDict):
    """Something that was not measured, why, and what would measure it."""

    what: str
    why: str
    next: str


class Part(TypedDict):
    """A section of a report.

    `why` says what happened, for the head of the page; `drawn` is the data of the charts in `figures`.
    """

    name: str
    title: str
    about: str
    tables: list[Table]
    not_measured: list[MissingMeasurement]
    notes: list[str]
    why: NotRequired[JsonObject]
    figures: NotRequired[list[str]]
    drawn: NotRequired[dict[str, object]]


def column(name: str, unit: str = "count", label: str | None = None) -> Heading:
    """Return a column of a table; the label defaults to the name."""
    return {"name": name, "label": name if label is None else label, "unit": unit}


def columns(spec: str) -> list[Heading]:
    """Return columns from words `name:unit` or `name:unit:label` (an underscore in a label is a blank)."""
    made = []
    for word in spec.split():
        name, unit, label = [*word.split(":"), "", ""][:3]
        made.append(column(name, unit or "count", label.replace("_", " ") or name))
    return made


def table(title: str, headings: list[Heading], rows: Sequence[Row], *, top: int | None = None) -> Table:
    """Return a table with the first `top` rows; `left_out` counts the others."""
    kept = list(rows[:top]) if top is not None else list(rows)
    return {"title": title, "columns": headings, "rows": kept, "left_out": len(rows) - len(kept)}


def section(
    name: str,
    title: str,
    tables: Iterable[Table | None] = (),
    *,
    about: str = "",
    not_measured: Iterable[MissingMeasurement | None] = (),
    notes: Iterable[str] = (),
) -> Part:
    """Return a section without its empty tables; one without any content gets the note `NOTHING`."""
    shown = [one for one in tables if one is not None and one["rows"]]
    lacks = [one for one in not_measured if one is not None]
    return {
        "name": name,
        "title": title,
        "about": about,
        "tables": shown,
        "not_measured": lacks,
        "notes": list(notes) or ([] if shown or lacks else [NOTHING]),
    }


def page_only_column(heading: Heading) -> Heading:
    """Return a copy of the column that is shown only on pages, not on a terminal."""
    return {**heading, "page_only": True}


def missing_measurement(what: str, why: str, next_step: str | None = None) -> MissingMeasurement:
    """Return an entry for something that was not measured: what, why, and what would measure it."""
    return {"what": what, "why": why, "next": next_step or ""}
