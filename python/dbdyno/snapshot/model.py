"""The parts of a report as plain dicts with raw numbers, without formatting.

A section holds tables; a table has columns, each with a label and a unit, and rows. A value that is not known is None:
renderers show it as unknown, never as 0. What was not measured is reported with the setting that would measure it.

Units: text, count, per_s, ratio (1.0 is the whole), ns, bytes, bytes_per_s, aas (average active sessions), time
(microseconds since 1970), number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import NotRequired, TypedDict, TypeVar

from dbdyno.base.errors import Error
from dbdyno.base.json_types import JsonObject

T = TypeVar("T")
Row = JsonObject
"""A row of a query by column name."""
NOTHING = "nothing in this interval"
"""Note of a section that has no row, nothing unmeasured and no note."""
_TITLES = {"sql": "Top SQL", "io": "I/O", "wal": "WAL and checkpoints", "slru": "SLRU caches"}
"""Headings of sections that could not be read, where the heading is not the capitalised name."""


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

    `why` is what happened, for the head of the page; `drawn` is the data of the charts in `figures`.
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


def build_sections(order: Iterable[tuple[str, Callable[[T, int], Part]]], interval: T, top: int) -> list[Part]:
    """Return all sections in order; one whose evidence cannot be read says so and does not prevent the others."""
    found = []
    for name, make in order:
        try:
            found.append(make(interval, top))
        except Error as error:
            why = f"{error.where}: {error.message}" if error.where else error.message
            title = _TITLES.get(name, name.capitalize())
            found.append(section(name, title, not_measured=[missing_measurement(title, why, error.next_step)]))
    return found


def statement_beginning(text: str | None) -> str | None:
    """Return the beginning of a statement in at most 40 characters, to recognize it next to its identifier."""
    words = " ".join((text or "").split())
    return (words if len(words) <= 40 else words[:39] + "…") or None


def page_only_column(heading: Heading) -> Heading:
    """Return the column as one that only a page shows, not a terminal."""
    return {**heading, "page_only": True}


def sql_columns(spec: str) -> list[Heading]:
    """Return columns as `columns` does for a table of statements: the text `begins` first, the identifier last."""
    return columns(f"begins:text:statement {spec.replace('statement:text ', '')} statement:code:identifier")


def missing_measurement(what: str, why: str, next_step: str | None = None) -> MissingMeasurement:
    """Return an entry on something not measured: what, why, and what would measure it."""
    return {"what": what, "why": why, "next": next_step or ""}


def instant_text(at_us: int | None) -> str:
    """Return an instant as readable text, such as `2026-11-21 10:42:05 UTC`; `an unknown time` for None."""
    if at_us is None:
        return "an unknown time"
    return datetime.fromtimestamp(at_us / 1e6, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
