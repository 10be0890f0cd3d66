"""Several commands sent to a PostgreSQL server in one message, without waiting for each answer.

On a busy machine, client and server wait for a processor each time one hands the work to the other. In a pipeline, that
happens once for many commands.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any

from psycopg import generators, pq

from dbdyno.bench.postgres.session import Session

Send = Callable[[Any], None]
"""Function that hands one command of the extended protocol to libpq's connection."""


def run_pipeline(connection: Session, sends: Sequence[Send], *, apart: bool = False) -> list[list[Any]]:
    """Send commands in one message and return their results.

    After an error, the commands up to the next sync have results with the status PIPELINE_ABORTED.

    Args:
        connection: The connection, which is not in pipeline mode.
        sends: The commands.
        apart: True for a sync after each command, so that a failed command does not abort the others.

    Raises:
        psycopg.OperationalError: The connection was lost.
    """
    pgconn = connection.pgconn
    pgconn.enter_pipeline_mode()
    syncs = 0
    for at, send in enumerate(sends, 1):
        send(pgconn)
        if apart or at == len(sends):
            pgconn.pipeline_sync()
            syncs += 1
    found: list[list[Any]] = connection.wait(_receive(pgconn, len(sends), syncs))
    pgconn.exit_pipeline_mode()
    return found


def _receive(pgconn: Any, count: int, syncs: int) -> Generator[Any, Any, list[list[Any]]]:
    """Flush what was sent, and return the results of all commands, without those of the syncs."""
    yield from generators.send(pgconn)
    found = []
    for _ in range(count + syncs):
        results = yield from generators.fetch_many(pgconn)
        if not results or results[0].status != pq.ExecStatus.PIPELINE_SYNC:
            found.append(results)
    return found
