"""Active sessions from the memory of a server on this machine: a look per millisecond, which costs the server nothing.

From shared memory, the core reads what each session waits for and works on, and sums it up per period
(`reading/activity.rs` of crates/dyno-record). Each period has a row per session and state, with the number of looks
that found the session in the state. The server is asked only for the names of new sessions, once for each.
"""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Any, NamedTuple

from dbdyno.base.errors import SnapshotError, TraceError

if TYPE_CHECKING:
    import psycopg

    from dbdyno.bench.postgres.server import Postgres

    Connection = psycopg.Connection[tuple[Any, ...]]

LOOK_NS = 1_000_000
"""Shortest time between two looks in ns.

Looks come less often if they would take more than 2 % of the machine, or 0.25 % of it while no processor is idle.
"""
NOT_LOCAL = "the server is not on this machine"
_SINCE_US = 946_684_800_000_000
"""Microseconds from 1970 to 2000, from which the server counts."""
_CLIENT = "client backend"
_WHO = """
select /* dbdyno */ pid, backend_type, datname, usename,
  coalesce(host(client_addr), case when backend_type = 'client backend' then 'local' end)
from pg_stat_activity where pid = any(%s)
"""


class _Sum(NamedTuple):
    """Number of looks of a period that found a session in one state.

    `since_us` are the starts of its transaction, statement and state in microseconds since 2000, or zeros if the state
    did not last until the end of the period. `horizon_age` is the greatest age of its vacuum horizon in the period, in
    transactions; only the last state of a session has it.
    """

    number: int
    pid: int
    kind: str
    user: str
    database: str
    application: str | None
    state: str | None
    query_id: int | None
    event_type: str | None
    event: str | None
    looks: int
    since_us: tuple[int, int, int]
    horizon_age: int | None


class SessionMemory:
    """Reader of a server's sessions from its shared memory.

    Raises:
        TraceError: The memory cannot be read; the message says why.
    """

    def __init__(self, target: Postgres, conn: Connection, period_ns: int) -> None:
        from dbdyno import _core

        if not target.is_here(conn):
            raise TraceError(NOT_LOCAL)
        self._own = conn.info.backend_pid
        self._reader = _core.SessionReader(self._own, min(LOOK_NS, period_ns), period_ns)
        self._names: dict[int, tuple[str | None, ...]] = {}
        self.looks = 0
        self.waiters: list[int] = []

    def take(self, conn: Connection) -> tuple[str | None, int]:
        """Return the rows of the periods since the last call as CSV (None for no rows), and the number of periods.

        It also sets the attributes `looks` (the number of looks) and `waiters` (the sessions that waited for a lock at
        the end).

        Raises:
            SnapshotError: The server ended, or restarted after a crash.
        """
        periods = json.loads(self._reader.take())
        if not periods and self._reader.is_over():
            raise SnapshotError("the server ended, or restarted after a crash")
        for period in periods:
            period["rows"] = [_Sum._make(row) for row in period["rows"]]
        self._name(conn, periods)
        lines = io.StringIO()
        writer = csv.writer(lines, lineterminator="\n")
        for period in periods:
            self.looks += period["looks"]
            writer.writerows(self._rows(period))
        if periods:
            self.waiters = sorted({row.pid for row in periods[-1]["rows"] if row.event_type == "Lock"})
        return lines.getvalue().removesuffix("\n") or None, len(periods)

    def stop(self) -> None:
        """Stop reading and detach from the server's memory."""
        self._reader.stop()

    def _name(self, conn: Connection, periods: list[Any]) -> None:
        """Query the names of new sessions, and forget the sessions that ended."""
        there = {row.number: row.pid for period in periods for row in period["rows"]}
        new = [number for number in there if number not in self._names]
        self._names = {number: found for number, found in self._names.items() if number in there}
        if new:
            rows = conn.execute(_WHO, [[there[number] for number in new]]).fetchall()
            names = {int(pid): who for pid, *who in rows}
            self._names |= {number: tuple(names.get(there[number], (None,) * 4)) for number in new}

    def _rows(self, period: dict[str, Any]) -> list[tuple[Any, ...]]:
        """Return the `ACTIVITY` rows of a period."""
        at_us, looks = period["at_us"], max(period["looks"], 1)
        rows = []
        for row in period["rows"]:
            kind, database, user, client = self._names[row.number]
            kind = kind or row.kind or _CLIENT
            if row.pid == self._own or (row.state is None and kind == _CLIENT):
                continue
            # A session that was gone before it could be asked for has the names of its title.
            who = (kind, database or row.database or None, user or row.user or None, row.application)
            does = (row.query_id, row.state, row.event_type, row.event)
            transaction_us, statement_us, state_us = (_age(at_us, since) for since in row.since_us)
            ages = (transaction_us, client, statement_us, state_us, row.horizon_age)
            rows.append((at_us, row.pid, *who, *does, *ages, row.looks, looks))
        return rows


def _age(at_us: int, since_us: int) -> int | None:
    """Return how long something has lasted, in whole milliseconds, which is the resolution of looks."""
    return max(at_us - since_us - _SINCE_US, 0) // 1000 * 1000 if since_us else None
