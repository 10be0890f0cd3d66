"""Marking of dbdyno's own statements, so that they can be recognized in the server's statistics.

The mark is after the first word, because PostgreSQL 18 does not keep a comment before it. BEGIN, COMMIT (from version
16) and SAVEPOINT (from 17) cannot be distinguished: the server counts each as one statement whoever sends it.
"""

from __future__ import annotations

import re
from typing import Any, Self

import psycopg

from dbdyno.snapshot.engines.postgres.facts import OWN_MARK


def with_mark(sql: str) -> str:
    """Return the statement with the mark after its first word."""
    return sql if OWN_MARK.strip() in sql else re.sub(r"\A\s*\w+\s", rf"\g<0>{OWN_MARK}", sql)


class MarkedCursor(psycopg.Cursor[Any]):
    """A cursor that marks the statements it sends."""

    def execute(self, query: Any, params: Any = None, **more: Any) -> Self:
        """Execute a statement with the mark added; otherwise the same as psycopg's method."""
        return super().execute(with_mark(query) if isinstance(query, str) else query, params, **more)
