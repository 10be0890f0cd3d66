"""Sessions of a load from many hosts at a PostgreSQL server: how the server notices lost clients and ends them."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, LiteralString

from dbdyno.base.errors import Error
from dbdyno.bench.engine.remaining_sessions import end_after_grace

if TYPE_CHECKING:
    from dbdyno.bench.postgres.server import Postgres

KEEPALIVES = {
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": "25000",
    "client_connection_check_interval": "5000",
}
"""Session settings with which the server ends a session within 30 s of losing its client, even in a statement.

The last two exist since PostgreSQL 12 and 14.
"""
_IDENTIFY: LiteralString = """
select /* dbdyno */ pid, to_char(backend_start at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS.US') from pg_stat_activity
where pid = any(%s) and usename = current_user and backend_start is not null
"""
_REMAINING: LiteralString = """
select /* dbdyno */ a.pid from pg_stat_activity a join unnest(%s::int[], %s::text[]) as known(pid, start)
on a.pid = known.pid and to_char(a.backend_start at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS.US') = known.start
where a.usename = current_user
"""


class PostgresSessions:
    """Sessions of an arm at a PostgreSQL server."""

    def __init__(self, target: Postgres) -> None:
        self.target = target

    def with_keepalives(self, connection: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the connection with those `KEEPALIVES` that the server accepts; the user's own options win."""
        import psycopg

        if self.target.pooled:
            return connection
        accepted = []
        with contextlib.closing(self.target.connect()) as conn:
            for name, value in KEEPALIVES.items():
                with contextlib.suppress(psycopg.Error):
                    conn.execute("select /* dbdyno */ set_config(%s, %s, false)", [name, value])
                    accepted.append(f"-c {name}={value}")
        return {**connection, "options": " ".join([*accepted, *filter(None, [connection.get("options")])]) or None}

    def identify(self, numbers: Sequence[int]) -> dict[int, str]:
        """Return the start time of each of these backends that still exists; empty behind a pooler.

        Raises:
            TargetError: The server does not answer.
        """
        if self.target.pooled or not numbers:
            return {}
        with contextlib.closing(self.target.connect()) as conn:
            return dict(conn.execute(_IDENTIFY, [list(numbers)]).fetchall())

    def end(self, known: Mapping[int, str]) -> None:
        """End the known backends that do not end by themselves, if the server answers."""
        import psycopg

        with contextlib.suppress(Error, psycopg.Error), contextlib.closing(self.target.connect()) as conn:
            values = [list(known), list(known.values())]

            def remaining() -> list[int]:
                return [pid for (pid,) in conn.execute(_REMAINING, values).fetchall()]

            end_after_grace(remaining, lambda pid: conn.execute("select /* dbdyno */ pg_terminate_backend(%s)", [pid]))
