"""A PostgreSQL with pg_stat_statements and a store per test: snapshots of known loads."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from snapshot_help import SETTINGS, Lab

from dbdyno.bench.postgres.binaries import find_binaries
from dbdyno.bench.postgres.embedded import EmbeddedPostgres


@pytest.fixture(scope="session")
def engine() -> Iterator[EmbeddedPostgres]:
    """One server for the loads that leave it as it was."""
    with EmbeddedPostgres(settings=SETTINGS) as running:
        yield running


@pytest.fixture
def lab(engine: EmbeddedPostgres, tmp_path: Path) -> Iterator[Lab]:
    """The shared server with a store of its own; what a test made there is gone at its end."""
    with Lab(engine, tmp_path / "snaps") as made:
        yield made
        made.run("drop schema public cascade", "create schema public", "grant usage on schema public to public")


@pytest.fixture
def own_lab(tmp_path: Path) -> Iterator[Lab]:
    """A server that the test may kill."""
    with EmbeddedPostgres(settings=SETTINGS) as running, Lab(running, tmp_path / "snaps") as made:
        yield made


@pytest.fixture(scope="session")
def major() -> int:
    """The major version of the server under test."""
    return find_binaries().major
