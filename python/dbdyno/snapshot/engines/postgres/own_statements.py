"""Our own statements, told from others in the server's own books by a mark in their text.

The mark stands behind the first word: version 18 keeps no comment that stands before it. Not to be
told apart are BEGIN, COMMIT (from version 16) and SAVEPOINT (from 17), which the server counts as
one statement whoever sends them.
"""

from __future__ import annotations

import re
from typing import Any, Self

import psycopg

from dbdyno.snapshot.engines.postgres.facts import OWN_MARK


def marked(sql: str) -> str:
    """The statement with the mark behind its first word."""
    return sql if OWN_MARK.strip() in sql else re.sub(r"\A\s*\w+\s", rf"\g<0>{OWN_MARK}", sql)


class MarkedCursor(psycopg.Cursor[Any]):
    """A cursor that marks what it sends."""

    def execute(self, query: Any, params: Any = None, **more: Any) -> Self:
        """As psycopg's, marked."""
        return super().execute(marked(query) if isinstance(query, str) else query, params, **more)
