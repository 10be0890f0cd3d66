"""One PostgreSQL for all tests of a room that have no server of their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from psycopg.conninfo import make_conninfo

from dbdyno.bench.postgres.embedded import EmbeddedPostgres


@pytest.fixture(scope="session")
def server() -> Iterator[EmbeddedPostgres]:
    """Return a running server."""
    with EmbeddedPostgres() as running:
        yield running


@pytest.fixture(scope="session")
def dsn(server: EmbeddedPostgres) -> str:
    """Return the server's connection string, over TCP and with a password."""
    return make_conninfo("", **server.tcp_conninfo())
