"""The result type of a doctor check, and two queries that many checks use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, LiteralString, NamedTuple

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[tuple[Any, ...]]


class Outcome(NamedTuple):
    """What one doctor check found.

    Attributes:
        ok: True if the requirement is met, False if something is missing or worrying, None if the check does not apply
            or its result is unknown.
        found: What was found.
        consequence: What it means for an experiment.
        next: The step that would change it; empty if none is needed.
    """

    ok: bool | None
    found: str
    consequence: str = ""
    next: str = ""


@dataclass(frozen=True, slots=True)
class Check:
    """Result of one doctor check: its name, and the fields of its `Outcome`."""

    name: str
    ok: bool | None
    found: str
    consequence: str
    next: str


def first_value(conn: Connection, sql: LiteralString) -> Any:
    """Return the first column of the query's first row, or None if the query returns no row."""
    row = conn.execute(sql).fetchone()
    return row[0] if row else None


def is_superuser(conn: Connection) -> bool:
    """Return True if the connected role is a superuser."""
    return bool(first_value(conn, "select rolsuper from pg_roles where rolname = current_user"))
