"""Sampler of Oracle's active sessions from V$SESSION: a session history that needs no licence."""

from __future__ import annotations

from typing import Any

from dbdyno.base.errors import Error
from dbdyno.bench.poll import Poller
from dbdyno.snapshot.engines.oracle.connection import Address, connect, driver
from dbdyno.snapshot.engines.oracle.scripts import script
from dbdyno.snapshot.engines.view import View
from dbdyno.snapshot.sessions.samples import QUERIES, Source

TIMEOUT_MS = 2000


class Sampler(Poller):
    """Sampler that looks once per period; `take` returns what was seen since the last `take`."""

    name = "dbdyno snap sampler"
    source = Source(QUERIES)

    def __init__(self, address: Address, *, period_ns: int) -> None:
        super().__init__(period_ns=period_ns)
        self.failures = (Error, driver().Error, OSError)
        self._address = address
        self._seen: list[tuple[Any, ...]] = []
        self._taken = 0

    def take(self) -> tuple[list[View], int]:
        """Return the view `activity`, and the number of looks, since the last call."""
        with self._lock:
            seen, self._seen = self._seen, []
            looks, self._taken = self.samples - self._taken, self.samples
        return [View("activity", "now", script("session").columns, seen)], looks

    def _connect(self) -> Any:
        return connect(self._address, TIMEOUT_MS)

    def _look(self, conn: Any) -> None:
        with conn.cursor() as cursor:
            cursor.execute(script("session").sql)
            rows = [tuple(row) for row in cursor.fetchall()]
        with self._lock:
            self._seen += rows
