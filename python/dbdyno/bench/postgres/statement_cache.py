"""Statement cache of a session: the number of its statements, and their memory.

PostgreSQL shows a session's memory (`pg_backend_memory_contexts`) and its prepared statements only to that session; but
any session can be asked to write its memory to the server's log (`pg_log_backend_memory_contexts`, since 14). So the
cache is read only from embedded servers, whose log dbdyno can read; any client may run the sessions.

A statement that is parsed in advance (prepared, or the unnamed one of the extended protocol) is a context
CachedPlanSource with its CachedPlanQuery; its generic plan is a CachedPlan.

Limits: the server writes at most 100 child contexts of each context and sums up the rest, so only a part of a large
number of statements is counted; `whole` says whether all were. Plans of PL/pgSQL functions are included.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import psycopg

    from dbdyno.bench.postgres.embedded import EmbeddedPostgres

SINCE = 140000
PATIENCE_S = 2.0
_STATEMENT = "CachedPlanSource"
_PARTS = (_STATEMENT, "CachedPlanQuery", "CachedPlan")
_CONTEXT = re.compile(r"level: \d+; ([^:]+): (\d+) total in ")
_TOTAL = re.compile(r"Grand total: (\d+) bytes in ")
_MORE = re.compile(r"level: \d+; \d+ more child contexts ")


@dataclass(frozen=True)
class StatementCache:
    """Statement cache of one session.

    Attributes:
        statements: Number of statements.
        statement_bytes: Memory of these statements in bytes.
        session_bytes: All memory of the session in bytes.
        whole: True if all statements were counted.
    """

    statements: int
    statement_bytes: int
    session_bytes: int
    whole: bool

    def as_row(self) -> dict[str, int]:
        """Return the values by the names that a load's report uses."""
        return {
            "kept_statements": self.statements,
            "kept_bytes": self.statement_bytes,
            "session_bytes": self.session_bytes,
            "kept_whole": int(self.whole),
        }


def cache_in_log(log: str, pid: int) -> StatementCache | None:
    """Return the session's memory report from the log, or None if the report's last line has not been written yet."""
    statements = size = 0
    whole = True
    for line in log.splitlines():
        if f"[{pid}]" not in line:
            continue
        if context := _CONTEXT.search(line):
            statements += context[1] == _STATEMENT
            size += int(context[2]) if context[1] in _PARTS else 0
        elif _MORE.search(line):
            whole = False
        elif total := _TOTAL.search(line):
            return StatementCache(statements, size, int(total[1]), whole)
    return None


def read_session_cache(
    connection: psycopg.Connection[tuple[Any, ...]], engine: EmbeddedPostgres, pid: int
) -> StatementCache | None:
    """Ask a session of an embedded server for its memory, and return its statement cache; None after `PATIENCE_S`."""
    if connection.info.server_version < SINCE:
        return None
    begin = engine.log_file.stat().st_size
    connection.execute("select pg_log_backend_memory_contexts(%s)", [pid])
    deadline = time.monotonic() + PATIENCE_S
    with engine.log_file.open("rb") as file:
        while True:
            file.seek(begin)
            if (found := cache_in_log(file.read().decode(errors="replace"), pid)) is not None:
                return found
            if time.monotonic() > deadline:
                return None
            time.sleep(0.005)
