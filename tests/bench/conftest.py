"""Servers for the tests: one of each kind that this machine offers, started once per session."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo
from target_help import KINDS

import certificates
from dbdyno.bench.mariadb.session import rows
from dbdyno.bench.postgres.embedded import EmbeddedPostgres
from dbdyno.bench.postgres.server import Postgres
from mariadb_server import MariaServer
from server_binaries import binaries_of

MARIA_SECRET = "gehei mß@/#1"


ONCE = (
    *("test_guardian", "test_server_settings", "test_setting_values"),
    *("test_watcher", "test_pooler", "test_live_servers"),
)
"""Modules whose subject does not depend on the server's version: other kinds of server are tested in the soak only."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of other servers for the soak, before the tests of the soak are left out."""
    try:
        binaries_of(KINDS[0])
    except pytest.skip.Exception:
        return
    for item in items:
        call = getattr(item, "callspec", None)
        if item.path.stem in ONCE and call is not None and call.params.get("engine") == KINDS[1]:
            item.add_marker("soak")


@pytest.fixture(params=KINDS, scope="session")
def engine(request: pytest.FixtureRequest) -> Iterator[EmbeddedPostgres]:
    """A running server of each kind."""
    with EmbeddedPostgres(binaries=binaries_of(request.param)) as running:
        yield running


@pytest.fixture
def own(engine: EmbeddedPostgres) -> Postgres:
    """Return the server as a target that dbdyno started itself."""
    return Postgres.from_engine(engine)


@pytest.fixture
def others(engine: EmbeddedPostgres) -> Postgres:
    """Return the same server as a target that belongs to somebody else: reached by TCP, never restarted."""
    return Postgres.open(make_conninfo("", **engine.tcp_conninfo()))


@pytest.fixture
def plain(engine: EmbeddedPostgres) -> Iterator[Postgres]:
    """Yield the same server as a target with a role that has no privileges."""
    name, password = "plain user", "p'l\\ain"
    with contextlib.closing(Postgres.from_engine(engine).connect()) as conn:
        role = sql.Identifier(name)
        conn.execute(sql.SQL("create role {} login password {}").format(role, sql.Literal(password)))
        try:
            given = {**engine.tcp_conninfo(), "user": name, "password": password}
            yield Postgres.open(make_conninfo("", **given))
        finally:
            conn.execute(sql.SQL("drop owned by {}").format(role))
            conn.execute(sql.SQL("drop role {}").format(role))


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Yield a folder in /var/tmp that every user can enter."""
    folder = Path(tempfile.mkdtemp(prefix="dbdyno-test-", dir="/var/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def authority() -> certificates.Signer:
    return certificates.make("authority", authority=True)


@pytest.fixture(scope="session")
def maria(tmp_path_factory: pytest.TempPathFactory, authority: certificates.Signer) -> Iterator[MariaServer]:
    """Yield a server with a certificate, its own tablespace for tests, and users."""
    own = certificates.make("localhost", authority, key="rsa")
    running = MariaServer()
    files = {"ca": authority.pem(), "cert": own.pem(), "key": own.key_pem()}
    with contextlib.closing(running):
        running.create()
        for name, content in files.items():
            path = running.folder / f"{name}.pem"
            path.write_bytes(content)
            os.chown(path, running.account.uid, running.account.gid)
        running.options = tuple(f"--ssl-{name}={running.folder}/{name}.pem" for name in files)
        running.start()
        with contextlib.closing(running.connect()) as connection:
            rows(connection, "create database if not exists test")
            rows(connection, "create user weak@localhost identified by %s", [MARIA_SECRET])
            rows(connection, "grant all on test.* to weak@localhost")
        yield running
