"""One Cassandra for all tests of wide tables, started when the first test needs it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from wide_lab import WideLab

import cassandra_server

_keyspaces = itertools.count(1)


@pytest.fixture(scope="session")
def cassandra_node() -> Iterator[cassandra_server.CassandraServer]:
    """Yield one node; skip the test, with the command that installs Cassandra, if it is missing."""
    reason = cassandra_server.missing()
    if reason is not None:
        pytest.skip(reason)
    with cassandra_server.CassandraServer() as node:
        yield node


@pytest.fixture
def wide_lab(cassandra_node: cassandra_server.CassandraServer) -> Iterator[WideLab]:
    """Yield a separate keyspace on the node."""
    with WideLab(cassandra_node, f"lab_{next(_keyspaces)}") as lab:
        yield lab
