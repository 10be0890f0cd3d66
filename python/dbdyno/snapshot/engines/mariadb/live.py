"""MariaDB's side of the live screen: status counters and statement times by digest."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from typing import Any, cast

from dbdyno.base.errors import SnapshotError
from dbdyno.bench.mariadb import session
from dbdyno.snapshot.engines.live import Live, Progress, Reading, Session
from dbdyno.snapshot.engines.mariadb.connection import address, connect, driver, error_text
from dbdyno.snapshot.engines.mariadb.sampler import Sampler
from dbdyno.snapshot.engines.mariadb.views import STATEMENTS
from dbdyno.snapshot.engines.view import Options

_COUNTERS = {
    "questions": "statements",
    "com_commit": "commits",
    "com_rollback": "rollbacks",
    "innodb_buffer_pool_read_requests": "pages",
    "innodb_buffer_pool_reads": "reads",
    "rows_read": "rows",
    "handler_write": "inserted",
    "handler_update": "updated",
    "handler_delete": "deleted",
    "innodb_os_log_written": "redo",
    "innodb_row_lock_waits": "lock_waits",
    "created_tmp_disk_tables": "disk_tables",
}
_STATES = {
    "threads_connected": "sessions",
    "threads_running": "active",
    "innodb_row_lock_current_waits": "wait for locks",
}


_STATUS = (
    "select lower(g.variable_name), g.variable_value, o.variable_value"
    " from information_schema.global_status g"
    " join information_schema.session_status o using (variable_name)"
)
_DIGESTS = f"performance_schema.{STATEMENTS.name}"
_TIMES = f"""
select digest, cast(sum(count_star) as double), sum(sum_timer_wait) / 1000
from {_DIGESTS} where digest is not null group by 1
"""


_NAMES = (
    *("pid", "user", "database", "application", "client"),
    *("state", "wait", "statement_us", "transaction_us", "state_us", "query"),
)
_SESSIONS = """
select p.id, p.user, p.db, null, substring_index(p.host, ':', 1),
  if(p.command = 'Sleep', 'idle in transaction', 'active'),
  if(x.trx_state = 'LOCK WAIT', 'lock:innodb row lock', nullif(p.state, '')),
  if(p.command = 'Sleep', null, cast(p.time_ms * 1000 as signed)),
  timestampdiff(microsecond, x.trx_started, sysdate(6)), cast(p.time_ms * 1000 as signed), left(p.info, 4000)
from information_schema.processlist p
left join information_schema.innodb_trx x on x.trx_mysql_thread_id = p.id
where p.id <> connection_id() and p.command not in ('Daemon', 'Binlog Dump', 'Slave_IO', 'Slave_SQL', 'Slave_worker')
  and (p.command <> 'Sleep' or x.trx_id is not null)
"""
_PAIRS = """
select r.trx_mysql_thread_id, b.trx_mysql_thread_id from information_schema.innodb_lock_waits w
join information_schema.innodb_trx r on r.trx_id = w.requesting_trx_id
join information_schema.innodb_trx b on b.trx_id = w.blocking_trx_id
"""
_PROGRESS = """
select id, coalesce(state, command), stage, max_stage, progress / 100, null
from information_schema.processlist where max_stage > 0
"""
_QUOTED = re.compile(r"'(?:[^'\\]|''|\\(?:.|\Z))*+(?:'|\Z)|\"(?:[^\"\\]|\"\"|\\(?:.|\Z))*+(?:\"|\Z)", re.DOTALL)
"""Pattern of texts in either kind of quotes; one without a closing quote extends to the end."""


class MariadbLive(Live):
    """MariaDB's side of the live screen."""

    engine = "mariadb"
    lines = (
        ("statements", "statements", "per_s"),
        ("commits", "commits", "per_s"),
        ("rollbacks", "rollbacks", "per_s"),
        ("pages asked for", "pages", "per_s"),
        ("pages read", "reads", "per_s"),
        ("rows read", "rows", "per_s"),
        ("rows changed", "changes", "per_s"),
        ("redo", "redo", "bytes_per_s"),
        ("row lock waits", "lock_waits", "per_s"),
        ("temporary tables on disk", "disk_tables", "per_s"),
    )

    def __init__(self, dsn: str, options: Options) -> None:
        self._address = address(dsn)
        self._connection: Any = connect(self._address, options)
        self._texts: dict[str, str] = {}
        self.lacks: list[str] = []
        ((version, measured),) = self._rows("select version(), @@performance_schema")
        self._measured = bool(measured)
        if not self._measured:
            self.lacks.append("top SQL is not measured: set performance_schema=ON and restart")
        self.title = f"{self._address.name}  MariaDB {str(version).split('-')[0]}"

    def read(self) -> Reading:
        """Take a reading now, without the statements of dbdyno's own session.

        Raises:
            SnapshotError: The server is gone.
        """
        names = ", ".join(f"'{name}'" for name in (*_COUNTERS, *_STATES))
        try:
            rows = self._rows(f"{_STATUS} where lower(g.variable_name) in ({names})")
            at_ns = time.monotonic_ns()
            statements = self._times()
        except (driver().Error, OSError) as error:
            raise self._gone(error_text(error), self._address.safe) from error
        found: dict[str, float | None] = {}
        states: dict[str, float | None] = {}
        for name, value, own in rows:
            if name in _STATES:
                states[_STATES[name]] = float(value)
            else:
                ours = 0.0 if name.startswith("innodb") else float(own)
                found[_COUNTERS[name]] = float(value) - ours
        changed = [found.get(name) for name in ("inserted", "updated", "deleted")]
        found["changes"] = None if None in changed else sum(one or 0 for one in changed)
        pages, read = found.get("pages"), found.get("reads")
        found["hits"] = None if pages is None or read is None else pages - read
        return Reading(at_ns, found, states, statements)

    def _times(self) -> Mapping[str, tuple[float, float]] | None:
        if not self._measured:
            return None
        rows = self._rows(_TIMES)
        return {str(name): (float(calls), float(spent)) for name, calls, spent in rows}

    def texts(self, statements: Sequence[str]) -> Mapping[str, str]:
        """Return texts by digest, each queried once; the server has replaced their literals."""
        unknown = [one for one in statements if one not in self._texts]
        if unknown:
            marks = ", ".join(["%s"] * len(unknown))
            sql = f"select digest, min(digest_text) from {_DIGESTS} where digest in ({marks}) group by 1"
            self._texts |= {str(one): str(text) for one, text in self._rows(sql, unknown)}
        return self._texts

    def sampler(self, period_s: float) -> Sampler:
        """Return a sampler of the sessions with its own connection."""
        return Sampler(self._address, period_ns=round(period_s * 1e9))

    def sessions(self) -> list[Session]:
        """Return the sessions that run a statement or have an open transaction.

        Raises:
            SnapshotError: The sessions cannot be read.
        """
        try:
            blockers: dict[int, list[int]] = {}
            for waiter, blocker in self._rows(_PAIRS):
                blockers.setdefault(int(waiter), []).append(int(blocker))
            rows = self._rows(_SESSIONS)
        except driver().Error as error:
            raise SnapshotError(
                f"the sessions cannot be read: {error_text(error)}", where=self._address.safe
            ) from error
        found = [dict(zip(_NAMES, row, strict=True)) for row in rows]
        return [
            cast(
                "Session",
                {**one, "blockers": blockers.get(one["pid"]), "query": without_values(one["query"] or "")},
            )
            for one in found
        ]

    def progress(self) -> list[Progress]:
        """Return the commands that report their progress, such as ALTER TABLE."""
        rows = self._rows(_PROGRESS)
        return [
            {"pid": int(pid), "what": str(state), "phase": f"stage {stage} of {most}", "done": float(done), "on": name}
            for pid, state, stage, most, done, name in rows
        ]

    def plan(self, pid: int) -> list[str]:
        """Return the plan that a session's statement runs with, as lines.

        Raises:
            SnapshotError: The server does not report the plan.
        """
        try:
            rows = self._rows("show explain for %s", [int(pid)])
        except driver().Error as error:
            raise SnapshotError(f"the plan cannot be read: {error_text(error)}") from error
        return ["  ".join(str(value) for value in row if value is not None) for row in rows]

    def cancel(self, pid: int) -> bool:
        """Return True if the server accepted the request to cancel a session's statement (KILL QUERY).

        Raises:
            SnapshotError: The request failed.
        """
        try:
            self._rows("kill query %s", [int(pid)])
        except driver().Error as error:
            raise SnapshotError(f"the statement was not cancelled: {error_text(error)}") from error
        return True

    def _rows(self, sql: str, parameters: Any = None) -> list[tuple[Any, ...]]:
        return session.rows(self._connection, sql, parameters)


def without_values(text: str) -> str:
    """Return a text with everything in quotes replaced by `?`."""
    return _QUOTED.sub("'?'", text)


open_live = MariadbLive
