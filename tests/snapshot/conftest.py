"""A PostgreSQL with pg_stat_statements and a store per test: snapshots of known loads."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from oracle_recorded import DSN, Driver, Snap
from snapshot_help import SETTINGS, Lab

from dbdyno.bench.postgres.binaries import find_binaries
from dbdyno.bench.postgres.embedded import EmbeddedPostgres
from dbdyno.snapshot.engines.view import Options
from dbdyno.snapshot.store.folder import Snapshot, Store
from dbdyno.snapshot.taking.take import open_collector, take


@pytest.fixture(scope="session")
def engine() -> Iterator[EmbeddedPostgres]:
    """Yield one server for all loads that leave it unchanged."""
    with EmbeddedPostgres(settings=SETTINGS) as running:
        yield running


@pytest.fixture
def lab(engine: EmbeddedPostgres, tmp_path: Path) -> Iterator[Lab]:
    """Yield the shared server with a separate store; everything that a test created there is removed at its end."""
    with Lab(engine, tmp_path / "snaps") as made:
        yield made
        made.run("drop schema public cascade", "create schema public", "grant usage on schema public to public")


@pytest.fixture
def own_lab(tmp_path: Path) -> Iterator[Lab]:
    """Yield a separate server that the test can kill."""
    with EmbeddedPostgres(settings=SETTINGS) as running, Lab(running, tmp_path / "snaps") as made:
        yield made


@pytest.fixture(scope="session")
def major() -> int:
    """The major version of the server under test."""
    return find_binaries().major


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Driver:
    """Return a fake of Oracle's driver that plays recorded rows. This machine's clock is not read, because hours
    between snapshots pass in a moment.
    """
    found = Driver()
    monkeypatch.setattr("dbdyno.snapshot.engines.oracle.collector.clock_stamp", dict)
    monkeypatch.setitem(sys.modules, "oracledb", found)
    return found


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """An empty store."""
    return Store(tmp_path / "snaps")


@pytest.fixture
def snap(driver: Driver, store: Store) -> Snap:
    """Return a function that takes a snapshot of recorded Oracle rows."""

    def taken(recorded: dict[str, list[tuple]], dsn: str = DSN, **options: Any) -> Snapshot:
        driver.recorded = recorded
        with open_collector(dsn, Options(**options)) as collector:
            return take(collector, store, engine_name="oracle")

    return taken
