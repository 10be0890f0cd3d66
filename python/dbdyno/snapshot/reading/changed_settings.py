"""Settings that differ between two snapshots, without those that dbdyno's own session sets differently."""

from __future__ import annotations

from collections.abc import Callable

from dbdyno.base.json_types import TableRow
from dbdyno.base.sql_text import literal
from dbdyno.snapshot.store.folder import Snapshot

SETTINGS = {"pg_settings": "setting", "global_variables": "value"}
"""The view that has an engine's settings, and the column with their values."""
OWN_SETTINGS = (
    "transaction_isolation",
    "transaction_read_only",
    "search_path",
    "TimeZone",
    "DateStyle",
    "application_name",
)


def changed_settings(
    before: Snapshot, after: Snapshot, query: Callable[[str], list[TableRow]]
) -> list[tuple[str, str | None, str | None]]:
    """Return name, old value and new value of changed settings, sorted by name; empty if a snapshot cannot be read.

    `query` runs SQL and returns rows.
    """
    view = next((name for name in SETTINGS if name in after.views), None)
    if view is None or before.place(view) == after.place(view) or before.problem(view) or after.problem(view):
        return []
    old, new = before.relation(view), after.relation(view)
    if old is None or new is None:
        return []
    value = SETTINGS[view]
    skipped = ", ".join(literal(name) for name in OWN_SETTINGS)
    rows = query(
        f"select coalesce(a.name, b.name) as name, a.{value} as old, b.{value} as new"
        f" from {old} a full join {new} b using (name) where a.{value} is distinct from b.{value}"
        f" and coalesce(a.name, b.name) not in ({skipped}) order by 1"
    )
    return [(row["name"], row["old"], row["new"]) for row in rows]
