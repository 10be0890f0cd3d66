"""Test of whether statements stay prepared behind a connection pooler.

A pooler in transaction mode gives each transaction to any of its server processes. A statement that one process
prepared is unknown to the next process (SQLSTATE 26000), or its name is already used there (42P05). Poolers that track
prepared statements, and those in session mode, do not have this problem; so the behaviour is tested, not assumed.
"""

from __future__ import annotations

import contextlib
import secrets
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dbdyno.bench.postgres.server import Connection, Postgres

CONNECTIONS = 4

REASON = (
    "a pooler gives each transaction to any of its server processes, so statements do not stay prepared: all arms use "
    "the protocol 'extended', which parses each statement again"
)


def keeps_prepared_statements(target: Postgres) -> bool:
    """Return True if a connection's prepared statements exist in its next transaction and in no other connection.

    For the test several connections prepare different statements under one name, and each executes the one that it
    prepared.
    """
    name = f"dbdyno_{secrets.token_hex(4)}".encode()
    with contextlib.ExitStack() as stack:
        connections = [stack.enter_context(contextlib.closing(target.connect())) for _ in range(CONNECTIONS)]
        try:
            made = [_prepare(conn, name, number) for number, conn in enumerate(connections)]
            return all(made) and all(_runs(conn, name, number) for number, conn in enumerate(connections))
        finally:
            for conn in connections:
                conn.pgconn.exec_(b"deallocate " + name)


def _prepare(conn: Connection, name: bytes, number: int) -> bool:
    import psycopg

    result = conn.pgconn.prepare(name, f"select /* dbdyno */ {number}".encode())
    return result.status == psycopg.pq.ExecStatus.COMMAND_OK


def _runs(conn: Connection, name: bytes, number: int) -> bool:
    result = conn.pgconn.exec_prepared(name, [])
    return result.ntuples == 1 and result.get_value(0, 0) == str(number).encode()
