"""What the parts of a comparison's page are made of: sections, tables, rows as plain values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from dbdyno.cells.compare import Row

DIFFERENT = ("worse", "better", "more", "less")


def section(
    name: str,
    title: str,
    tables: Iterable[dict[str, Any]] = (),
    *,
    about: str = "",
    notes: Sequence[str] = (),
) -> dict[str, Any]:
    """A section of a page; tables without rows are left out."""
    kept = [one for one in tables if one["rows"]]
    return {"name": name, "title": title, "about": about, "tables": kept, "not_measured": [],
            "notes": list(notes)}  # fmt: skip


def table(
    title: str, columns: str, rows: Sequence[dict[str, Any]], *, top: int | None = None
) -> dict[str, Any]:
    """A table with columns from words `name:unit:label` (a count where no unit is named)."""
    words = [[*word.split(":"), "", ""][:3] for word in columns.split()]
    shown = [
        {"name": name, "unit": unit or "count", "label": (label or name).replace("_", " ")}
        for name, unit, label in words
    ]
    kept = list(rows[:top])
    return {"title": title, "columns": shown, "rows": kept, "left_out": len(rows) - len(kept)}


def listed(names: Sequence[str], most: int = 6) -> str:
    """Names in a row; of many only the first."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def as_dict(row: Row) -> dict[str, Any]:
    """A row as plain values, in its unit."""
    ends: dict[str, Any] = {}
    for side, own in (("first", row.a), ("second", row.b)):
        found = own.interval()
        ends |= {side: own.value * row.scale, f"{side}_rounds": own.rounds,
                 f"{side}_low": found[0] * row.scale if found else None,
                 f"{side}_high": found[1] * row.scale if found else None}  # fmt: skip
    return {
        "metric": row.label, "cell": row.cell, "object": row.object, "measure": row.measure,
        "unit": row.unit, "decision": row.decision, "ratio": row.ratio, "low": row.low,
        "high": row.high, **ends, "p": row.p, "q": row.q, "second_larger": row.larger,
    }  # fmt: skip
