"""The parts that a report is made of: plain dicts, raw numbers, no formatting.

A section holds tables; a table names its columns with a label and a unit, and has rows. A value
that is not known is None: renderers print it as such, never as 0. What was not measured is told
with the setting that would measure it.

Units: text, count, per_s, ratio (1.0 is the whole), ns, bytes, bytes_per_s, aas (average active
sessions), time (microseconds since 1970), number.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

Row = dict[str, Any]
NOTHING = "nothing in this interval"
"""What a section says that has no row, no lack and no note."""


def column(name: str, unit: str = "count", label: str | None = None) -> dict[str, str]:
    """A column of a table: the label is the name unless given."""
    return {"name": name, "label": name if label is None else label, "unit": unit}


def columns(spec: str) -> list[dict[str, str]]:
    """Columns from words `name:unit` or `name:unit:label` (an underscore in a label is a blank)."""
    made = []
    for word in spec.split():
        name, unit, label = [*word.split(":"), "", ""][:3]
        made.append(column(name, unit or "count", label.replace("_", " ") or name))
    return made


def table(title: str, shown: list[dict[str, str]], rows: Sequence[Row], *, top: int | None = None) -> dict[str, Any]:
    """A table with the first `top` rows; `left_out` counts the others."""
    kept = list(rows[:top]) if top is not None else list(rows)
    return {"title": title, "columns": shown, "rows": kept, "left_out": len(rows) - len(kept)}


def section(
    name: str,
    title: str,
    tables: Iterable[dict[str, Any] | None] = (),
    *,
    about: str = "",
    not_measured: Iterable[dict[str, Any] | None] = (),
    notes: Iterable[str] = (),
) -> dict[str, Any]:
    """A section; tables without rows are left out, and one that has nothing says so."""
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


def beginning(text: str | None) -> str | None:
    """How a statement begins, in 40 characters: enough to know it by, beside its identifier."""
    words = " ".join((text or "").split())
    return (words if len(words) <= 40 else words[:39] + "…") or None


def sql_columns(spec: str) -> list[dict[str, str]]:
    """As `columns`, for an order of statements: how each `begins` comes first, its identifier last."""
    return columns(f"begins:text:statement {spec.replace('statement:text ', '')} statement:code:identifier")


def lacking(what: str, why: str, next_step: str | None = None) -> dict[str, Any]:
    """Something that was not measured, why, and what would measure it."""
    return {"what": what, "why": why, "next": next_step or ""}


def moment_us(at_us: int | None) -> str:
    """An instant for people: `2026-11-21 10:42:05 UTC`."""
    if at_us is None:
        return "an unknown time"
    return datetime.fromtimestamp(at_us / 1e6, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
