"""Fixtures of the tests of moves: servers, and a `Lab` with tables, jobs and files for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from database_lab import EVERYTHING, Databases, execute, make_database
from move_lab import ROWS, SETTINGS, Lab

from dbdyno.bench.postgres.embedded import EmbeddedPostgres
from mariadb_server import MariaServer
from memory_folder import roomy_memory

if TYPE_CHECKING:
    from test_move_mariadb import Maria


@pytest.fixture(scope="session")
def move_engine() -> Iterator[EmbeddedPostgres]:
    """Start one PostgreSQL for all tests; each test drops its tables."""
    with EmbeddedPostgres(settings=SETTINGS, workdir=roomy_memory()) as running:
        yield running


@pytest.fixture
def lab(move_engine: EmbeddedPostgres, tmp_path: Path) -> Iterator[Lab]:
    """Return the server with an empty schema."""
    with Lab(move_engine, tmp_path) as made:
        yield made


@pytest.fixture
def table(lab: Lab) -> Lab:
    """Create a table that is moved in about forty pieces."""
    lab.run(f"create table t as select g id, md5(g::text) x from generate_series(1, {ROWS}) g")
    return lab


@pytest.fixture(scope="session")
def server() -> Iterator[MariaServer]:
    """Start one MariaDB for each worker that has tests of it."""
    with MariaServer(["--innodb-flush-log-at-trx-commit=0"]) as running:
        yield running


@pytest.fixture
def maria(move_engine: EmbeddedPostgres, server: MariaServer, tmp_path: Path) -> Iterator[Maria]:
    """Return both servers, each with an empty schema."""
    from test_move_mariadb import fresh  # here: it is a module of tests, which pytest rewrites when it collects it

    with fresh(move_engine, server, tmp_path) as made:
        yield made


@pytest.fixture(scope="session")
def database_target() -> Iterator[EmbeddedPostgres]:
    """Start a second PostgreSQL as the target of whole databases."""
    with EmbeddedPostgres(settings=SETTINGS, workdir=roomy_memory()) as running:
        yield running


@pytest.fixture
def databases(move_engine: EmbeddedPostgres, database_target: EmbeddedPostgres, tmp_path: Path) -> Iterator[Databases]:
    """Return a database to move, and an empty one on another server."""
    made = Databases(move_engine, database_target, tmp_path)
    yield made
    made.close()


@pytest.fixture(scope="session")
def everything(move_engine: EmbeddedPostgres) -> str:
    """Return the name of a database with every kind of object, of which tests move copies."""
    name = "everything"
    execute(make_database(move_engine, name), *EVERYTHING.split(";\n"))
    return name


@pytest.fixture
def full(
    move_engine: EmbeddedPostgres, database_target: EmbeddedPostgres, tmp_path: Path, everything: str
) -> Iterator[Databases]:
    """Return a database with every kind of object, and an empty one on another server."""
    made = Databases(move_engine, database_target, tmp_path, everything)
    yield made
    made.close()
