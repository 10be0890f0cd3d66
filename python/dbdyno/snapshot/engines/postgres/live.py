"""PostgreSQL's side of the live screen: sums over all databases, and the statements' times."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from dbdyno.base.errors import SnapshotError, TargetError
from dbdyno.bench.postgres.server import Postgres
from dbdyno.snapshot.engines.live import Live, Progress, Reading, Session
from dbdyno.snapshot.engines.postgres import facts, live_sessions
from dbdyno.snapshot.engines.postgres.sampler import Sampler
from dbdyno.snapshot.engines.postgres.texts import without_literals
from dbdyno.snapshot.engines.view import Options

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[tuple[Any, ...]]

T = TypeVar("T")

LONGEST = 400
OWN_COMMITS = 5
"""Number of dbdyno's transactions in each reading."""

_COUNTERS = (
    "commits",
    "rollbacks",
    "hits",
    "reads",
    "rows",
    "changes",
    "temp_bytes",
    "deadlocks",
    "wal_bytes",
)
_SQL = """
select sum(xact_commit), sum(xact_rollback), sum(blks_hit), sum(blks_read),
  sum(tup_returned + tup_fetched), sum(tup_inserted + tup_updated + tup_deleted),
  sum(temp_bytes), sum(deadlocks),
  case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_insert_lsn() end
    - '0/0'::pg_lsn
from pg_stat_database
"""
_STATES = ("sessions", "active", "in transaction", "wait for locks")
_SESSIONS = """
select count(*), count(*) filter (where state = 'active'),
  count(*) filter (where state like 'idle in transaction%'),
  count(*) filter (where wait_event_type = 'Lock')
from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()
"""


class PostgresLive(Live):
    """PostgreSQL's side of the live screen."""

    engine = "postgresql"
    lines = (
        ("transactions", "commits", "per_s"),
        ("rollbacks", "rollbacks", "per_s"),
        ("blocks asked for", "asked", "per_s"),
        ("blocks read", "reads", "per_s"),
        ("rows read", "rows", "per_s"),
        ("rows changed", "changes", "per_s"),
        ("WAL", "wal_bytes", "bytes_per_s"),
        ("temporary files", "temp_bytes", "bytes_per_s"),
        ("deadlocks", "deadlocks", "per_s"),
    )

    def __init__(self, dsn: str, options: Options) -> None:
        from dbdyno.snapshot.engines.postgres.own_statements import MarkedCursor

        try:
            self._target = Postgres.open(dsn)
            self._connection: Connection = self._target.connect(
                statement_timeout_ms=options.statement_timeout_ms,
                lock_timeout_ms=options.lock_timeout_ms,
                read_only=True,
                application_name="dbdyno snap top",
            )
            self._connection.cursor_factory = MarkedCursor
        except TargetError as error:
            raise SnapshotError(error.message, where=error.where, next_step=error.next_step) from error
        self.lacks: list[str] = []
        self._texts: dict[str, str] = {}
        self._readings = 0
        self._sampler: Sampler | None = None
        self._schema, self._time = self._statements()
        self._progress = live_sessions.progress_sql(self._connection)
        version = self._connection.info.server_version
        self.title = f"{facts.name_of(self._target)}  PostgreSQL {version // 10000}.{version % 100}"

    def _statements(self) -> tuple[str | None, str]:
        """Return the schema of pg_stat_statements, and its column with the time."""
        found = self._connection.execute(
            "select n.nspname, a.attname from pg_extension e"
            " join pg_namespace n on n.oid = e.extnamespace join pg_class c"
            "   on c.relnamespace = n.oid and c.relname = 'pg_stat_statements'"
            " join pg_attribute a on a.attrelid = c.oid"
            "   and a.attname in ('total_exec_time', 'total_time')"
            " where e.extname = 'pg_stat_statements'"
        ).fetchone()
        if found is not None:
            return str(found[0]), str(found[1])
        self.lacks.append(
            "top SQL is not measured: put pg_stat_statements into shared_preload_libraries,"
            f" restart, create extension pg_stat_statements in {self._connection.info.dbname}"
        )
        return None, ""

    def read(self) -> Reading:
        """Take a reading now; `own` is the number of transactions of the readings themselves.

        Raises:
            SnapshotError: The server is gone.
        """
        import psycopg

        try:
            row = self._connection.execute(_SQL).fetchone()
            states = self._connection.execute(_SESSIONS).fetchone()
            at_ns = time.monotonic_ns()
            statements = self._times()
        except psycopg.Error as error:
            raise self._gone(str(error).strip().splitlines()[0], self._target.safe_dsn) from error
        values = {
            name: None if value is None else float(value) for name, value in zip(_COUNTERS, row or (), strict=True)
        }
        queries = self._sampler.queries if self._sampler else 0
        own = self._readings * OWN_COMMITS + queries
        self._readings += 1
        now = dict(zip(_STATES, states or (), strict=True))
        return Reading(at_ns, values, now, statements, own)

    def _times(self) -> Mapping[str, tuple[float, float]] | None:
        if self._schema is None:
            return None
        rows = self._connection.execute(
            f"select queryid::text, sum(calls)::float8, sum({self._time}) * 1e6"
            f' from "{self._schema}".pg_stat_statements(false) where queryid is not null group by 1'
        )
        return {str(name): (float(calls), float(spent)) for name, calls, spent in rows}

    def texts(self, statements: Sequence[str]) -> Mapping[str, str]:
        """Return texts by identifier, each queried once: reading any makes the extension load all of them."""
        import psycopg

        unknown = [int(one) for one in statements if one not in self._texts]
        if unknown and self._schema:
            self._texts |= {str(one): "(text not readable)" for one in unknown}
            try:
                rows = self._connection.execute(
                    f"select queryid, min(left(query, {LONGEST}))"
                    f' from "{self._schema}".pg_stat_statements where queryid = any(%s) group by 1',
                    [unknown],
                ).fetchall()
            except psycopg.Error:
                rows = []
            self._texts |= {str(one): without_literals(text) for one, text in rows if text}
        return self._texts

    def sampler(self, period_s: float) -> Sampler:
        """Return a sampler of the sessions with its own connection."""
        self._sampler = Sampler(self._target, period_ns=round(period_s * 1e9))
        return self._sampler

    def sessions(self) -> list[Session]:
        """Return the sessions that run a statement, have an open transaction, or block others."""
        return self._asked(lambda: live_sessions.sessions(self._connection))

    def progress(self) -> list[Progress]:
        """Return the commands whose progress the server reports."""
        return self._asked(lambda: live_sessions.progress(self._connection, self._progress))

    def plan(self, pid: int) -> list[str]:
        """Return the plan of the statement that a session runs, without executing anything.

        Raises:
            SnapshotError: The plan is not available.
        """
        return live_sessions.plan(self._target, self._connection, pid)

    def cancel(self, pid: int) -> bool:
        """Return True if the server accepted the request to cancel a session's statement.

        Raises:
            SnapshotError: The request failed.
        """
        return live_sessions.cancel(self._connection, pid)

    def _asked(self, ask: Callable[[], list[T]]) -> list[T]:
        """Return the result of a query, or an empty list if it is refused or takes too long.

        Raises:
            SnapshotError: The server is gone.
        """
        import psycopg

        try:
            return ask()
        except psycopg.Error:
            if self._connection.broken:
                raise SnapshotError("the server closed the connection", where=self._target.safe_dsn) from None
            return []


open_live = PostgresLive
