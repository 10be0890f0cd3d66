"""One finding of the doctor, and the two questions that its checks ask all the time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, LiteralString

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Check:
    """One finding. `ok`: True given, False missing or worrying, None not applicable or not known.

    `consequence` is what it means for an experiment; `next` the step that changes it, empty where
    none is needed.
    """

    name: str
    ok: bool | None
    found: str
    consequence: str
    next: str


def value(conn: Connection, sql: LiteralString) -> Any:
    """The first value of the first row, or None."""
    row = conn.execute(sql).fetchone()
    return row[0] if row else None


def is_superuser(conn: Connection) -> bool:
    """Whether the connected role is a superuser."""
    return bool(value(conn, "select rolsuper from pg_roles where rolname = current_user"))
