"""Helpers of snapshot reports: sections in order, texts for statements and instants (see `dbdyno.base.sections`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import TypeVar

from dbdyno.base.errors import Error
from dbdyno.base.sections import Heading, Part, columns, missing_measurement, section

T = TypeVar("T")
_TITLES = {"sql": "Top SQL", "io": "I/O", "wal": "WAL and checkpoints", "slru": "SLRU caches"}
"""Headings of sections that could not be read, where the heading is not the capitalised name."""


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


def sql_columns(spec: str) -> list[Heading]:
    """Return the columns of a table of statements: the start of the text first, those of `spec`, the identifier."""
    return columns(f"begins:text:statement {spec.replace('statement:text ', '')} statement:code:identifier")


def instant_text(at_us: int | None) -> str:
    """Return an instant as readable text, such as `2026-11-21 10:42:05 UTC`; `an unknown time` for None."""
    if at_us is None:
        return "an unknown time"
    return datetime.fromtimestamp(at_us / 1e6, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
