"""What this engine, role and machine can give to an experiment, and what falls away without it.

A role without superuser and a server without access to its machine are normal: each check says
what was found, what follows from it, and the step that would change it. Nothing is changed.

To add a check, write a function that returns a `Check` and put it in `CHECKS`; it fails alone.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dbdyno.bench import check_host, check_left
from dbdyno.bench.check import Check
from dbdyno.bench.postgres import check_engine

if TYPE_CHECKING:
    import psycopg

    from dbdyno.bench.postgres.server import Postgres

    Connection = psycopg.Connection[tuple[Any, ...]]

CHECKS: dict[str, Callable[[Any, Any], Check]] = {
    "version": check_engine.version,
    "role": check_engine.role,
    "primary or standby": check_engine.recovery,
    "direct connection": check_engine.pooler,
    "connections": check_engine.connections,
    "session settings": check_engine.session_settings,
    "server settings": check_engine.alter_system,
    "left by runs": check_left.left_by_runs,
    "own schema": check_engine.schema,
    "WAL position": check_engine.wal_position,
    "durability": check_engine.durability,
    "statistics views": check_engine.views,
    "waits of others": check_engine.other_sessions,
    "I/O timing": check_engine.io_timing,
    "pg_stat_statements": check_engine.pg_stat_statements,
    "server's machine": check_host.machine,
    "data folder": check_host.data_folder,
    "host counters": check_host.proc,
    "CPU frequency": check_host.governor,
    "stolen CPU time": check_host.steal,
    "clock": check_host.clock,
}
"""Name and function (of target and connection) of each check, in the order of the report."""


def examine(target: Postgres) -> list[Check]:
    """All checks, in the order of `CHECKS`.

    Raises `TargetError` only if the server does not answer.
    """
    import psycopg

    found = []
    with contextlib.closing(target.connect(statement_timeout_ms=5000, read_only=True)) as conn:
        for name, check in CHECKS.items():
            try:
                found.append(check(target, conn))
            except (psycopg.Error, OSError) as error:
                said = str(error).splitlines()[0]
                found.append(Check(name, None, f"could not be found out: {said}", "", ""))
    return found
