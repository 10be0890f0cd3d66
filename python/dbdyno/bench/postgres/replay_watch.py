"""Activity of a server during a replay: waits of active sessions, WAL, temporary files and checkpoints.

    with watch_server(target) as watch:
        while ...: watch.look()
    watch.report["wal_bytes"]

WAL and checkpoints are those of the whole server, temporary files those of the database, waits those of this role's
sessions in the database. If the role or the server version does not show something, the report names it with the
reason, and the replay continues.

Limits: waits are sampled, so `waits` are numbers of samples; a busy server may be sampled less often than requested.
"""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, LiteralString

if TYPE_CHECKING:
    from dbdyno.base.json_types import JsonObject
    from dbdyno.bench.postgres.server import Connection, Postgres

_SAMPLED_S = 0.1
"""Time between two samples of active sessions [s]."""
_FRESH_SINCE = 150_000
"""Lowest server version in which counters of ended sessions are visible immediately."""
_FRESH_S = 0.6
"""Time after which older servers show the counters of ended sessions [s]."""
_CHECKPOINTER_SINCE = 170_000
_ACTIVE: LiteralString = """
select /* dbdyno */ coalesce(wait_event_type, 'CPU'), count(*) from pg_stat_activity
where state = 'active' and datname = current_database() and usename = current_user and pid <> pg_backend_pid()
group by 1
"""
_WAL: LiteralString = "select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint"
_TEMP: LiteralString = "select temp_bytes, temp_files from pg_stat_database where datname = current_database()"
_CHECKPOINTS: LiteralString = "select num_timed, num_requested from pg_stat_checkpointer"
_CHECKPOINTS_BEFORE: LiteralString = "select checkpoints_timed, checkpoints_req from pg_stat_bgwriter"
_NAMES = {
    "wal": ("wal_bytes",),
    "temp": ("temp_bytes", "temp_files"),
    "checkpoints": ("checkpoints_timed", "checkpoints_requested"),
}


class ReplayWatch:
    """Counters of a server at the start of a replay, and samples of its sessions; `report` is the final result."""

    def __init__(self, conn: Connection) -> None:
        self.conn = conn
        self.missing: dict[str, str] = {}
        self.waits: Counter[str] = Counter()
        self.samples = 0
        self.report: JsonObject = {}
        self.before = self._counters()
        self._sampled_s = time.monotonic()

    def _questions(self) -> dict[str, LiteralString]:
        is_new = self.conn.info.server_version >= _CHECKPOINTER_SINCE
        return {"wal": _WAL, "temp": _TEMP, "checkpoints": _CHECKPOINTS if is_new else _CHECKPOINTS_BEFORE}

    def _counters(self) -> dict[str, tuple[int, ...]]:
        found = {}
        for name, question in self._questions().items():
            rows = self._query(name, question)
            if rows:
                found[name] = tuple(int(value) for value in rows[0])
        return found

    def _query(self, name: str, question: LiteralString) -> list[tuple[Any, ...]]:
        """Return the rows of a query; if the server refuses it, record the reason and return no rows."""
        import psycopg

        if name in self.missing:
            return []
        try:
            return self.conn.execute(question).fetchall()
        except psycopg.Error as error:
            self.missing[name] = str(error).splitlines()[0] if str(error) else type(error).__name__
            return []

    def sample(self) -> None:
        """Sample the active sessions, unless that was done very recently."""
        if time.monotonic() - self._sampled_s < _SAMPLED_S:
            return
        self._sampled_s = time.monotonic()
        rows = self._query("waits", _ACTIVE)
        self.samples += "waits" not in self.missing
        self.waits.update({str(name): int(count) for name, count in rows})

    def end(self) -> None:
        """Read the counters again, and compute the result."""
        if self.conn.info.server_version < _FRESH_SINCE:
            time.sleep(_FRESH_S)
        after = self._counters()
        found: JsonObject = {}
        for name, names in _NAMES.items():
            if name not in self.before or name not in after:
                continue
            grown = [now - then for then, now in zip(self.before[name], after[name], strict=True)]
            if min(grown) < 0:
                self.missing[name] = "the statistics were reset during the replay"
                continue
            found.update(zip(names, grown, strict=True))
        self.report = {
            **found,
            "samples": self.samples,
            "waits": dict(self.waits.most_common()),
            "missing": self.missing,
        }


@contextlib.contextmanager
def watch_server(target: Postgres) -> Iterator[ReplayWatch]:
    """Watch a server until the context ends."""
    with contextlib.closing(target.connect(statement_timeout_ms=2000, lock_timeout_ms=500)) as conn:
        watch = ReplayWatch(conn)
        yield watch
        watch.end()
