"""Sampler of active sessions, which is needed because PostgreSQL does not add up wait times.

    with collector.sampler(0.1) as sampler:
        ...
        views = sampler.take()      # `activity` and `blocked`, ready for the store

If the server is on this machine and its memory may be read, sessions are read from there, about once per millisecond,
and summed up per period (`memory.py`). Otherwise each look is a query.

A query returns one row: the server itself formats the sessions as CSV, so looking ten times a second at a hundred
sessions costs the client next to nothing. It sees clients that are active or have an open transaction, and background
processes unless they are idle. Texts of statements are never read. Who blocks whom is queried at most once per second,
and only while a session waits for a lock.

Limits of queries: a wait shorter than the period is only seen by chance; averages over many looks are right. Without
pg_read_all_stats, sessions of other roles are invisible.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dbdyno.base.errors import TraceError
from dbdyno.bench.postgres.poll import PostgresPoller
from dbdyno.snapshot.engines.postgres.memory import SessionMemory
from dbdyno.snapshot.engines.view import Column, View
from dbdyno.snapshot.sessions.samples import MEMORY, QUERIES, SampleBuffer, Source, activity_columns, blocked_columns

if TYPE_CHECKING:
    import psycopg

    from dbdyno.bench.postgres.server import Postgres

    Connection = psycopg.Connection[tuple[Any, ...]]

PERIOD_NS = 1_000_000_000

ACTIVITY = activity_columns("BIGINT")

BLOCKED = blocked_columns(
    "BIGINT", Column("datid", "text", "count", "BIGINT"), Column("relation", "text", "count", "BIGINT")
)
"""Columns of blocked sessions, with one row per waiter and blocker; blocker 0 is a prepared transaction."""


def _csv(*fields: str) -> str:
    return " || ',' || ".join(f"coalesce({field}, '')" for field in fields)


def _quoted(name: str) -> str:
    return f"""'"' || replace(({name})::text, '"', '""') || '"'"""


def _age(start: str) -> str:
    return f"(extract(epoch from clock_timestamp() - {start}) * 1000000)::bigint::text"


def _client(of: str) -> str:
    """Return SQL for the client's address: `local` for a local socket, NULL for the server's own processes."""
    local = f"case when {of}.backend_type = 'client backend' then 'local' end"
    return _quoted(f"coalesce(host({of}.client_addr), {local})")


def horizon_age(of: str) -> str:
    """Return SQL for the age of a session's vacuum horizon; NULL for autovacuum, whose horizon other vacuums ignore."""
    return (
        f"case when {of}.backend_type <> 'autovacuum worker'"
        f" then greatest(age({of}.backend_xmin), age({of}.backend_xid)) end"
    )


_NOW = "(extract(epoch from statement_timestamp()) * 1000000)::bigint::text"
"""SQL for the time of a look, the same for all of its rows."""


def _looking(statement: str) -> str:
    fields = _csv(
        _NOW,
        "a.pid::text",
        _quoted("a.backend_type"),
        _quoted("a.datname"),
        _quoted("a.usename"),
        _quoted("a.application_name"),
        statement.format("a"),
        _quoted("a.state"),
        _quoted("a.wait_event_type"),
        _quoted("a.wait_event"),
        _age("a.xact_start"),
        _client("a"),
        _age("a.query_start"),
        _age("a.state_change"),
        f"({horizon_age('a')})::text",
        *("null",) * 2,
    )
    return f"""
select /* dbdyno */ string_agg({fields}, E'\\n'),
  array_agg(a.pid) filter (where a.wait_event_type = 'Lock')
from pg_stat_activity a
where a.pid <> pg_backend_pid()
  and (a.state in ('active', 'idle in transaction', 'idle in transaction (aborted)',
                   'fastpath function call')
       or a.state is null and a.backend_type <> 'client backend'
          and a.wait_event_type is distinct from 'Activity')
"""


def _blocking(statement: str) -> str:
    fields = _csv(
        _NOW,
        "w.pid::text",
        "by.pid::text",
        _quoted("l.locktype"),
        _quoted("l.mode"),
        "l.database::bigint::text",
        "l.relation::bigint::text",
        _quoted("w.usename"),
        _quoted("case when by.pid = 0 then 'prepared transaction' else coalesce(b.state, b.backend_type) end"),
        _quoted("b.usename"),
        _age("b.xact_start"),
        statement.format("w"),
        statement.format("b"),
        _quoted("w.application_name"),
        _client("w"),
        _quoted("b.application_name"),
        _client("b"),
        _age("b.state_change"),
    )
    return f"""
select /* dbdyno */ string_agg({fields}, E'\\n')
from pg_stat_activity w
  cross join lateral (select distinct pid from unnest(pg_blocking_pids(w.pid)) as p(pid)) by
  left join pg_stat_activity b on b.pid = by.pid
  left join lateral (select * from pg_locks where pg_locks.pid = w.pid and not granted limit 1) l
    on true
where w.pid = any(%s)
"""


class Sampler(PostgresPoller):
    """Sampler that looks once per period; `take` returns what was seen since the last `take`.

    `by_memory` is False to sample by queries even if the server's memory may be read. `queries` is the number of
    queries sent so far.
    """

    name = "dbdyno snap sampler"

    def __init__(
        self,
        target: Postgres,
        *,
        period_ns: int = PERIOD_NS,
        clock: Callable[[], int] = time.time_ns,
        seed: int = 0,
        by_memory: bool = True,
    ) -> None:
        super().__init__(target, period_ns=period_ns, clock=clock, seed=seed)
        self._by_memory = by_memory
        self._statement: str | None = None
        self._seen = SampleBuffer(ACTIVITY, BLOCKED)
        self._memory: SessionMemory | None = None
        self._looks = 0
        self.queries = 0
        self.source: Source | None = None

    def take(self) -> tuple[list[View], int]:
        """Return the views `activity` and `blocked`, and the number of looks, since the last call."""
        return self._seen.take(self._looks)

    def stop(self) -> None:
        """Stop sampling; samples taken so far remain available."""
        super().stop()
        self._release()

    def _release(self) -> None:
        memory, self._memory = self._memory, None
        if memory is not None:
            memory.stop()

    def _connect(self) -> Connection:
        self._release()
        conn = super()._connect()
        if self._by_memory:
            try:
                self._memory = SessionMemory(self._target, conn, self._period_ns)
                self.source = Source(MEMORY)
            except TraceError as error:
                self.source = Source(QUERIES, _refusal(error))
        else:
            self.source = Source(QUERIES)
        return conn

    def _look_until_stopped(self, conn: Connection) -> None:
        super()._look_until_stopped(conn)
        if self._memory is not None:
            self._look(conn)  # the periods since the last call

    def _look(self, conn: Connection) -> None:
        if self._statement is None:
            self._statement = _identifier(conn)
        if self._memory is not None:
            sessions, looks = self._memory.take(conn)
            waiters = self._memory.waiters
        else:
            sessions, waiters = conn.execute(_looking(self._statement)).fetchone() or (None, None)
            looks, self.queries = 1, self.queries + 1
        blocked = None
        if waiters and self._seen.is_blocking_query_due():
            self.queries += 1
            found = conn.execute(_blocking(self._statement), [waiters]).fetchone()
            blocked = found[0] if found else None
        self._seen.add(sessions, blocked)
        self._looks += looks


def _refusal(error: TraceError) -> str:
    """Return why the server's memory is not read, and what would allow it, in one line."""
    reason = error.message.splitlines()[0]
    return f"{reason}; to read its memory, {error.next_step}" if error.next_step else reason


def _identifier(conn: Connection) -> str:
    """Return SQL for the identifier of a session's statement (PostgreSQL 14 and later), otherwise NULL."""
    row = conn.execute(
        "select /* dbdyno */ 1 from pg_attribute"
        " where attrelid = 'pg_catalog.pg_stat_activity'::regclass"
        " and attname = 'query_id'"
    ).fetchone()
    return "{}.query_id::text" if row else "null"
