"""Sampler of the waits of the load's sessions, read from pg_stat_activity while the load runs.

    with Watcher(target, arms=["base", "try"]) as watcher:
        watcher.mark(None, block=3)     # arms alternate in slices: a session's name says whose it is
        ...
        rows = watcher.take()           # columns for the `waits` evidence, fidelity `sampled`

A sample represents its session's time since the previous sample, about one period. The instants are random (uniform,
half to one and a half periods apart): a fixed period of 100 ms would synchronize with slices of 50 ms and see one arm
only.

It samples the load's sessions while they work or hold a transaction open, and the background processes that write the
log or the data, unless they are idle. The `object` of a background process is PostgreSQL's backend type; `arm` is empty
if it is unknown. Statement texts are never read. Limits: without pg_read_all_stats the background processes are
invisible.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dbdyno.bench.poll import columns_of_waits, session_names
from dbdyno.bench.postgres.poll import PostgresPoller
from dbdyno.evidence.events import ON_CPU

if TYPE_CHECKING:
    import psycopg

    from dbdyno.bench.postgres.server import Postgres

    Connection = psycopg.Connection[tuple[Any, ...]]

APPLICATION_NAME_BYTES = 63
PERIOD_NS = 100_000_000

_SAMPLE = """
select pid, application_name, coalesce(backend_type, 'client backend'), wait_event_type, wait_event
from pg_stat_activity
where (application_name = any(%s)
       and state in ('active', 'idle in transaction', 'idle in transaction (aborted)', 'fastpath function call'))
   or (backend_type in ('walwriter', 'checkpointer', 'background writer', 'io worker')
       and wait_event_type is distinct from 'Activity')
"""


def application_names(arms: Sequence[str]) -> dict[str, str]:
    """Return the application_name of each arm's sessions: `dbdyno/<arm>`, distinct, and as PostgreSQL stores it.

    The engine truncates names to 63 bytes and replaces characters that are not printable ASCII, so this function does
    the same beforehand.
    """
    return session_names(arms, APPLICATION_NAME_BYTES)


class Watcher(PostgresPoller):
    """Sampler of the load's sessions in a separate thread; it never raises an error into the load."""

    def __init__(
        self,
        target: Postgres,
        arms: Sequence[str],
        *,
        period_ns: int = PERIOD_NS,
        clock: Callable[[], int] = time.time_ns,
        seed: int = 0,
        names: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(target, period_ns=period_ns, clock=clock, seed=seed)
        self._arm_of = {name: arm for arm, name in (names or application_names(arms)).items()}
        self._rows: list[tuple[Any, ...]] = []
        self._arm: str | None = None
        self._block = 0

    def mark(self, arm: str | None, block: int) -> None:
        """Assign all later samples to this block, and to `arm` if it runs alone (None if arms alternate)."""
        with self._lock:
            self._arm, self._block = arm, block
            self._from_here()

    def take(self) -> dict[str, list[Any]]:
        """Return all samples since the last call, as columns."""
        with self._lock:
            rows, self._rows = self._rows, []
        return columns_of_waits(rows)

    def _look(self, conn: Connection) -> None:
        with self._lock:
            arm, block = self._arm, self._block
            stretch_ns = self._stretch_ns()
        at_ns = self._clock()
        seen = conn.execute(_SAMPLE, [list(self._arm_of)]).fetchall()
        rows = [
            (
                self._arm_of.get(name, arm or ""),
                block,
                pid,
                at_ns,
                stretch_ns,
                event or ON_CPU,
                event_type or ON_CPU,
                backend,
                "sampled",
            )
            for pid, name, backend, event_type, event in seen
        ]
        with self._lock:
            self._rows += rows
