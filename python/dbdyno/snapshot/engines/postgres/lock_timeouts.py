"""Short lock timeouts for logins and catalog reads, and a message about the session that holds the lock.

A login opens system tables. While a session has an exclusive lock on pg_class (`vacuum full` of it, `lock table`,
`reindex system`), a login waits without limit unless a lock timeout is sent in the startup packet. A session that is
already open can still query who holds the lock, using functions only: a query that needs a view's definition would wait
too.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from dbdyno.base.errors import TargetError
from dbdyno.bench.postgres.server import Postgres

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[tuple[Any, ...]]

LOGIN_LOCK_MS = 1500
"""Timeout of a login's wait for a lock, in milliseconds."""
NEXT_READ_LOCK_MS = 50
"""Lock timeout of each read that follows one that timed out, in milliseconds."""

LOCKED = "55P03"
_NOT_TAKEN = ("unsupported startup parameter", "unrecognized startup option", "options")
"""Parts of the messages with which a connection pooler refuses startup options."""
_SYSTEM = {1259: "pg_class", 1249: "pg_attribute", 2610: "pg_index", 1247: "pg_type", 1255: "pg_proc"}
_HOLDERS = """
select /* dbdyno */ l.pid, l.relation::bigint, pg_get_userbyid(a.usesysid)::text, a.application_name, a.state,
  extract(epoch from clock_timestamp() - a.xact_start)::bigint
from pg_lock_status() l, pg_stat_get_activity(l.pid) a
where l.locktype = 'relation' and l.granted and l.mode = 'AccessExclusiveLock' and l.pid <> pg_backend_pid()
  and l.relation::bigint < 16384 order by 6 desc nulls last limit 3
"""


def open_with_lock_timeout(dsn: str) -> Postgres:
    """Return the server that a connection string names, with a short lock timeout for its logins.

    Raises:
        TargetError: The server does not answer, or a session holds a lock on a system catalog.
    """
    limited = _limited(dsn)
    if limited is None:
        return Postgres.open(dsn)
    try:
        return Postgres.open(limited)
    except TargetError as error:
        if "lock timeout" in error.message:
            raise TargetError(
                f"a session holds a lock on a system catalog such as pg_class: the login waited {LOGIN_LOCK_MS} ms",
                where=error.where,
                next_step="find the session in the output of a running `dbdyno snap watch`, or run in an open "
                "session: select pid, relation from pg_lock_status() where granted and mode = "
                "'AccessExclusiveLock'",
            ) from error
        if not any(word in error.message for word in _NOT_TAKEN):
            raise
        return Postgres.open(dsn)


def _limited(dsn: str) -> str | None:
    """Return the connection string with the lock timeout added to its options.

    Returns None if that would hide options set elsewhere, or the string is not valid.
    """
    import psycopg
    from psycopg.conninfo import conninfo_to_dict, make_conninfo

    try:
        given = conninfo_to_dict(dsn)
    except (psycopg.Error, UnicodeError):
        return None  # opening it reports what is wrong
    if "service" in given or "PGSERVICE" in os.environ:
        return None
    options = str(given.get("options") or os.environ.get("PGOPTIONS") or "")
    return make_conninfo("", **{**given, "options": f"{options} -c lock_timeout={LOGIN_LOCK_MS}".strip()})


def shorten_lock_timeout(connection: Connection) -> str:
    """Shorten the lock timeout for the rest of this transaction, and return in words who holds the lock."""
    import psycopg

    try:
        with connection.transaction():
            connection.execute("select /* dbdyno */ set_config('lock_timeout', %s, true)", [str(NEXT_READ_LOCK_MS)])
            rows = connection.execute(_HOLDERS).fetchall()
    except psycopg.Error:
        if connection.broken:
            raise
        return "the lock's holder could not be queried"
    said = [
        f"session {pid} of {user}{f' ({application})' if application else ''}, {state}"
        f"{'' if seconds is None else f', its transaction {seconds} s old'}, holds {_SYSTEM.get(number, number)}"
        for pid, number, user, application, state, seconds in rows
    ]
    return "; ".join(said) or "the lock has been released since"
