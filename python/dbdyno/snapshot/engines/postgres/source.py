"""A view of PostgreSQL that snapshots read: where it is read from, its keys, and the meaning of its rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


def text_column(name: str, sql: str = "", kind: str = "text") -> tuple[str, str, str, str, str]:
    """Return an `extra` column of text; without `sql`, it is the relation's column of that name."""
    return sql or name, name, kind, "text", "VARCHAR"


@dataclass(frozen=True, slots=True)
class Source:
    """One view to read.

    Attributes:
        name: Name of the view.
        keys: Columns that identify a row.
        scope: The epoch by which its rows are judged.
        appearance: What a row means that only the later snapshot has, as in `View`.
        relation: The relation whose columns are probed.
        rows: The SQL relation from which it is read, if that differs.
        where: SQL condition that selects the rows.
        scope_by: Column that says which instance of the scope a row belongs to.
        states: True if nothing in it accumulates.
        skip: Columns to leave out.
        only: Columns to read; empty for all.
    """

    name: str
    keys: tuple[str, ...]
    scope: str
    appearance: str = "object"
    relation: str = ""
    rows: str = ""
    where: str = ""
    scope_by: str | None = None
    states: bool = False
    skip: frozenset[str] = frozenset()
    only: frozenset[str] = frozenset()
    extra: tuple[tuple[str, str, str, str, str], ...] = field(default=())
    """Columns added by dbdyno: (SQL, name, kind, unit, type)."""
    instead: Mapping[str, str] = field(default_factory=dict)
    """SQL that is read instead of a column, by the name of the column."""
