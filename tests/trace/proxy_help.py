"""Helpers for tests of the proxy: clients that connect through it, and queries on what it recorded."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from dbdyno.bench.postgres.embedded import EmbeddedPostgres
from dbdyno.trace.proxy.proxy_run import ProxyOptions, RunningProxy, run_proxy


@contextlib.contextmanager
def proxied(engine: EmbeddedPostgres, out: Path, **wanted: Any) -> Iterator[RunningProxy]:
    """Run a proxy in front of the server's TCP port."""
    server = ("127.0.0.1", engine.port)
    with run_proxy(ProxyOptions("127.0.0.1:0", server, **wanted), out) as it:
        yield it


def place(engine: EmbeddedPostgres, it: RunningProxy) -> dict[str, Any]:
    """Return libpq's parameters for a connection through the proxy, with the password."""
    host, _, port = it.address.rpartition(":")
    return {**engine.tcp_conninfo(), "host": host, "port": port, "sslmode": "disable"}


def through(engine: EmbeddedPostgres, it: RunningProxy, **more: Any) -> psycopg.Connection[tuple[Any, ...]]:
    return psycopg.connect(**{**place(engine, it), **more}, autocommit=True)


def execute(where: dict[str, Any], *statements: str) -> None:
    with psycopg.connect(**where, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def asked(where: dict[str, Any], question: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(**where, autocommit=True) as connection:
        return connection.execute(question).fetchall()


def database(engine: EmbeddedPostgres, name: str, *statements: str) -> dict[str, Any]:
    """A new database with what these statements make."""
    execute(engine.conninfo(), f'drop database if exists "{name}"', f'create database "{name}"')
    where = {**engine.conninfo(), "dbname": name}
    execute(where, *statements)
    return where


def twins(engine: EmbeddedPostgres, name: str, *statements: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """A new database to capture, and a copy of it for the replay."""
    return database(engine, name, *statements), database(engine, f"{name}_copy", *statements)


def pgbench(engine: EmbeddedPostgres, where: dict[str, Any], *words: object) -> str:
    """Run pgbench with these connection parameters; skip the test if it is not installed."""
    program = engine.binaries.program("pgbench")
    if not program.exists():
        pytest.skip("pgbench is not beside the server: make setup-test installs it")
    names = {"host": "PGHOST", "port": "PGPORT", "user": "PGUSER", "dbname": "PGDATABASE", "password": "PGPASSWORD"}
    environment = {names[key]: str(value) for key, value in where.items() if key in names}
    done = subprocess.run(
        [program, *map(str, words)],
        env={**environment, "PGSSLMODE": "disable", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
