"""A view of PostgreSQL that snapshots read: what it is read from, its keys, what its rows mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Source:
    """One view to read. `relation` is what its columns are probed on, `rows` what it is read
    from where that differs. `states`: nothing in it accumulates. `where`: which rows, `skip` and
    `only`: which columns."""

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
    """Columns of our own: (SQL, name, kind, unit, type)."""
    instead: Mapping[str, str] = field(default_factory=dict)
    """SQL that is read in place of a column."""
