"""Periodic polling of a PostgreSQL server from a separate thread and connection."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dbdyno.base.errors import Error
from dbdyno.bench.poll import Poller

if TYPE_CHECKING:
    import psycopg

    from dbdyno.bench.postgres.server import Postgres

    Connection = psycopg.Connection[tuple[Any, ...]]

LOCK_TIMEOUT_MS = 500


class PostgresPoller(Poller):
    """Poller of a PostgreSQL server."""

    read_only = True

    def __init__(
        self,
        target: Postgres,
        *,
        period_ns: int,
        clock: Callable[[], int] = time.time_ns,
        seed: int = 0,
    ) -> None:
        import psycopg

        super().__init__(period_ns=period_ns, clock=clock, seed=seed)
        self.failures = (psycopg.Error, Error)
        self._target = target

    def _connect(self) -> Connection:
        conn = self._target.connect(
            statement_timeout_ms=2000,
            application_name=self.name,
            lock_timeout_ms=LOCK_TIMEOUT_MS,
            read_only=self.read_only,
            stop=self._stop.is_set,
        )
        conn.prepare_threshold = None if self._target.pooled else 1
        return conn
