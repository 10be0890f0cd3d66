"""One Cassandra for all tests of wide tables, started when the first asks for it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from wide_lab import WideLab

import cassandra_server

_keyspaces = itertools.count(1)


@pytest.fixture(scope="session")
def cassandra_node() -> Iterator[cassandra_server.CassandraServer]:
    """One node; skips with the command that installs it."""
    reason = cassandra_server.missing()
    if reason is not None:
        pytest.skip(reason)
    with cassandra_server.CassandraServer() as node:
        yield node


@pytest.fixture
def wide_lab(cassandra_node: cassandra_server.CassandraServer) -> Iterator[WideLab]:
    """A keyspace of its own on it."""
    with WideLab(cassandra_node, f"lab_{next(_keyspaces)}") as lab:
        yield lab
