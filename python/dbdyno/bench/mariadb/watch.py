"""Sampler of the waits of the load's sessions, read from the performance schema while the load runs.

A sample represents its session's time since the previous sample; the instants are random (see `bench.poll`). A
session's arm is known by its `program_name`, which the load sends when it logs in. The recorded activity is the first
of these that applies: a wait for a row lock, the wait that the performance schema times, the state in the process list.
Statement texts are never read.

Limits: without performance_schema, or without the right to read it, nothing is sampled; only waits whose instruments
are on are seen (by default files, tables and table locks). Background threads are not sampled.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dbdyno.base.errors import Error
from dbdyno.bench.mariadb.address import driver
from dbdyno.bench.mariadb.session import rows
from dbdyno.bench.poll import Poller, columns_of_waits, session_names

if TYPE_CHECKING:
    from dbdyno.bench.mariadb.server import MariaDB

ANSWER_S = 2.0
NAME_BYTES = 60
NO_WAITS = "waits of sessions are not known: performance_schema is off, or this user may not read it"

_SAMPLE = """
select a.attr_value, t.processlist_id,
  case when t.processlist_command = 'Sleep' then 'idle' when x.trx_state = 'LOCK WAIT' then 'lock'
    when w.event_name is not null then 'wait' else 'state' end,
  case when t.processlist_command = 'Sleep' then 'idle in transaction'
    when x.trx_state = 'LOCK WAIT' then 'innodb row lock'
    else coalesce(w.event_name, nullif(t.processlist_state, ''), t.processlist_command) end
from performance_schema.threads t
join performance_schema.session_connect_attrs a
  on a.processlist_id = t.processlist_id and a.attr_name = 'program_name'
left join information_schema.innodb_trx x on x.trx_mysql_thread_id = t.processlist_id
left join performance_schema.events_waits_current w
  on w.thread_id = t.thread_id and w.end_event_id is null and w.event_name <> 'wait/io/table/sql/handler'
where a.attr_value in %s and (t.processlist_command <> 'Sleep' or x.trx_id is not null)
"""


def program_names(arms: list[str]) -> dict[str, str]:
    """Return the program_name of each arm's sessions: `dbdyno/<arm>`, distinct, and short enough for the server."""
    return session_names(arms, NAME_BYTES)


class Watcher(Poller):
    """Sampler of the load's sessions in a separate thread; it never raises an error into the load."""

    def __init__(self, target: MariaDB, names: Mapping[str, str], *, period_ns: int) -> None:
        super().__init__(period_ns=period_ns)
        self.failures = (Error, driver().Error, OSError)
        self._target = target
        self._arm_of = {name: arm for arm, name in names.items()}
        self._rows: list[tuple[Any, ...]] = []
        self._block = 0

    def mark(self, arm: str | None, block: int) -> None:
        """Assign all later samples to this block; `arm` is ignored: each session's program_name identifies it."""
        with self._lock:
            self._block = block
            self._from_here()

    def take(self) -> dict[str, list[Any]]:
        """Return all samples since the last call, as columns."""
        with self._lock:
            found, self._rows = self._rows, []
        return columns_of_waits(found)

    def _connect(self) -> Any:
        return self._target.connect(answer_s=ANSWER_S, name="dbdyno watcher")

    def _look(self, conn: Any) -> None:
        with self._lock:
            block, stretch_ns = self._block, self._stretch_ns()
        at_ns = self._clock()
        seen = rows(conn, _SAMPLE, [list(self._arm_of)])
        found = [
            (self._arm_of[name], block, session, at_ns, stretch_ns, event, kind, "client", "sampled")
            for name, session, kind, event in seen
        ]
        with self._lock:
            self._rows += found
