"""A lock, visible to the whole server, that lets only one run at a time alter a server's settings.

Two runs that alter one setting would each take the other's value for the previous value, and the server would keep it.
Therefore an advisory lock is taken before the first ALTER SYSTEM, by a session of the guardian: it is held exactly as
long as there is a process that will restore the settings.

PostgreSQL's advisory locks belong to a database, but `pg_locks` shows the locks of all databases. So the lock is taken
first, and then searched for in other databases. If two runs begin at the same instant in two databases, both may be
refused, but at least one is. A pooler in between would pass the lock to other clients; targets behind a pooler are
refused earlier.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dbdyno.base.errors import TargetError

if TYPE_CHECKING:
    from dbdyno.bench.postgres.session import Session

KEYS = (0x6462, 0x64796E6F)
"""The two numbers of the advisory lock: "db" and "dyno" in ASCII."""

NAME = "dbdyno guardian"
NAME_MOST = 63

_TAKE = "select /* dbdyno */ pg_try_advisory_lock(%s, %s)"
_HELD = """
select /* dbdyno */ 1 from pg_locks where locktype = 'advisory' and classid = %s and objid = %s
and objsubid = 2 and granted and pid = pg_backend_pid()
"""
_OTHERS = """
select /* dbdyno */ l.pid, coalesce(a.application_name, ''), coalesce(a.usename, '?'),
  coalesce(a.datname, '?'), to_char(a.backend_start at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS')
from pg_locks l left join pg_stat_activity a on a.pid = l.pid
where l.locktype = 'advisory' and l.classid = %s and l.objid = %s and l.objsubid = 2
  and l.granted and l.pid <> pg_backend_pid()
"""


class Claim:
    """The lock on one server's settings and the session that holds it."""

    def __init__(self, parameters: Mapping[str, str]) -> None:
        self._parameters = dict(parameters)
        self._session: Session | None = None

    def acquire(self, run: str = "") -> Session:
        """Take the lock, or confirm that it is still held, and return its session.

        Args:
            run: Name of the run, shown to runs that are refused.

        Raises:
            TargetError: Another run holds the lock.
            psycopg.Error: The server does not answer.
        """
        from dbdyno.bench.postgres.session import open_session

        if self._session is not None and not self._still_held(self._session):
            self.close()
        if self._session is None:
            session = open_session({**self._parameters, "application_name": NAME})
            try:
                _take(session)
            except BaseException:
                session.close()
                raise
            self._session = session
        if run:
            name = f"{NAME}, run {run[-(NAME_MOST - len(NAME) - 6) :]}"
            self._session.execute("select /* dbdyno */ set_config('application_name', %s, false)", [name])
        return self._session

    def close(self) -> None:
        """Release the lock by closing its session."""
        session, self._session = self._session, None
        if session is not None:
            session.close()

    def _still_held(self, session: Session) -> bool:
        import psycopg

        with contextlib.suppress(psycopg.Error):
            return session.execute(_HELD, KEYS).fetchone() is not None
        return False


def _take(session: Session) -> None:
    row = session.execute(_TAKE, KEYS).fetchone()
    others = session.execute(_OTHERS, KEYS).fetchall()
    if others or not (row and row[0]):
        raise TargetError(
            f"another dbdyno run alters settings of this server: {_holder_names(others)}",
            where=session.info.host,
            next_step="wait until that run has ended, or stop it with Ctrl-C (it restores what it changed), "
            "then run again",
        )


def _holder_names(others: list[tuple[Any, ...]]) -> str:
    if not others:  # the other run ended between the two statements
        return "it ended just now"
    pid, name, role, database, since = others[0]
    run = name.partition(", run ")[2] or "a run that is about to begin"
    return f"{run} (held by its guardian, session {pid} of '{role}' in {database} since {since} UTC)"
