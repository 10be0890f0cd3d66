"""Checks of what engine, role and machine provide for an experiment, and of what an experiment lacks if it is missing.

A role without superuser rights and a server whose machine is not accessible are normal cases: each check reports what
was found, the consequence, and the step that would change it. Nothing is changed on the server or the machine.

To add a check, write a function that returns an `Outcome` and add it to `CHECKS`. A check that fails does not affect
the others.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from dbdyno.base.errors import TargetError
from dbdyno.bench import check_host, check_leftovers, check_record
from dbdyno.bench.check import Check, Outcome
from dbdyno.bench.kinds import ENGINE, kind_of
from dbdyno.bench.postgres import check_engine

if TYPE_CHECKING:
    import psycopg

    from dbdyno.bench.postgres.server import Postgres

    Connection = psycopg.Connection[tuple[Any, ...]]

CHECKS: dict[str, Callable[[Any, Any], Outcome]] = {
    "version": check_engine.version,
    "role": check_engine.role,
    "primary or standby": check_engine.recovery,
    "direct connection": check_engine.pooler,
    "connections": check_engine.connections,
    "session settings": check_engine.session_settings,
    "server settings": check_engine.alter_system,
    "left by runs": check_leftovers.leftover_settings,
    "own schema": check_engine.schema,
    "WAL position": check_engine.wal_position,
    "durability": check_engine.durability,
    "statistics views": check_engine.views,
    "waits of others": check_engine.other_sessions,
    "I/O timing": check_engine.io_timing,
    "pg_stat_statements": check_engine.pg_stat_statements,
    "exact waits": check_record.exact_waits,
    "server's machine": check_host.machine,
    "data folder": check_host.data_folder,
    "host counters": check_host.proc,
    "CPU frequency": check_host.governor,
    "stolen CPU time": check_host.steal,
    "clock": check_host.clock,
}
"""Name of each check of a PostgreSQL server and its function of (target, connection), in report order."""
_OF_MACHINES = ("server's machine", "data folder", "host counters", "CPU frequency", "stolen CPU time", "clock")


def examine_server(dsn: str | None) -> list[Check]:
    """Run all checks that apply to the kind of server that `dsn` names.

    Raises:
        TargetError: `dsn` names no server, or the server does not answer.
    """
    kind = kind_of(dsn)
    if kind.name == "mariadb":
        return _examine_mariadb(dsn)
    if kind is not ENGINE:
        raise TargetError(
            f"{kind.word} is not a server that can be checked",
            where=dsn or "",
            next_step="name a server: postgresql://user@host/db or mariadb://user@host/db",
        )
    from dbdyno.bench.postgres.server import open_target

    with open_target(dsn) as target:
        return examine(target)


def _examine_mariadb(dsn: str | None) -> list[Check]:
    from dbdyno.bench.mariadb.address import driver, error_text
    from dbdyno.bench.mariadb.server import open_target

    own = None if dsn is None or "://" not in dsn else dsn
    with open_target(own) as target, contextlib.closing(target.connect()) as connection:
        return _all(mariadb_checks(), target, connection, driver().Error, error_text)


def mariadb_checks() -> dict[str, Callable[[Any, Any], Outcome]]:
    """Return the name and function of each check of a MariaDB server, in report order."""
    from dbdyno.bench.mariadb import check_engine as own

    return {
        "version": own.version,
        "user": own.user,
        "load's login": own.login,
        "primary or replica": own.replica,
        "connections": own.connections,
        "server settings": own.server_settings,
        "left by runs": own.leftover_settings,
        "durability": own.durability,
        "waits": own.waits,
        **{name: CHECKS[name] for name in _OF_MACHINES},
    }


def examine(target: Postgres) -> list[Check]:
    """Run all checks of a PostgreSQL server in the order of `CHECKS`.

    A check that fails is reported as unknown.

    Raises:
        TargetError: The server does not answer.
    """
    import psycopg

    with contextlib.closing(target.connect(statement_timeout_ms=5000, read_only=True)) as conn:
        return _all(CHECKS, target, conn, psycopg.Error, lambda error: str(error).splitlines()[0])


def _all(
    checks: Mapping[str, Callable[[Any, Any], Outcome]],
    target: object,
    connection: object,
    refused: type[Exception],
    words: Callable[[Exception], str],
) -> list[Check]:
    found = []
    for name, check in checks.items():
        try:
            outcome = check(target, connection)
        except (refused, OSError) as error:
            outcome = Outcome(None, f"could not be checked: {words(error)}")
        found.append(Check(name, *outcome))
    return found
