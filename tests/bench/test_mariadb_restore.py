"""Settings that a killed run left changed on a MariaDB server: new runs refused, settings shown and restored."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest
from mariadb_lab import MariaLab

from dbdyno.bench.engine import unrestored_settings
from dbdyno.bench.mariadb.restore import refuse_leftovers
from dbdyno.bench.mariadb.server import MariaDB
from dbdyno.bench.mariadb.session import rows
from mariadb_server import MariaServer, missing

pytestmark = pytest.mark.skipif(bool(missing()), reason=str(missing()))

FLUSH = '[[arm]]\nname = "a"\n[[arm]]\nname = "b"\nsettings = {innodb_flush_log_at_trx_commit = "0"}\n'
NAME = "innodb_flush_log_at_trx_commit"


@pytest.fixture
def lab(tmp_path: Path, maria: MariaServer) -> MariaLab:
    return MariaLab(tmp_path, maria.dsn)


def flush(server: MariaServer, value: int | None = None) -> str:
    """Return the setting, after setting it if a value is given."""
    with contextlib.closing(server.connect()) as connection:
        if value is not None:
            rows(connection, f"set global {NAME} = {value}")
        return str(rows(connection, f"select @@global.{NAME}")[0][0])


def left(server: MariaServer, was: str = "1") -> Path:
    """Leave the setting at 0 as a killed run without a guardian would; return the path of the run's record."""
    target = MariaDB.open(server.dsn)
    with contextlib.closing(target.connect()) as connection:
        kept = {NAME: unrestored_settings.ChangedSetting(was, was, ("0",))}
        path = unrestored_settings.write_new(
            unrestored_settings.new_record(server.dsn, target.identity(connection), kept, "gone")
        )
    record = unrestored_settings.read(path)
    assert record is not None
    unrestored_settings.write(
        path, unrestored_settings.from_json({**unrestored_settings.to_json(record), "runner": {}})
    )
    flush(server, 0)
    return path


@pytest.fixture
def record(maria: MariaServer, owed_apart: Path) -> object:
    yield left(maria)
    flush(maria, 1)


def test_it_is_refused_shown_and_put_back(lab: MariaLab, maria: MariaServer, record: Path) -> None:
    lab.plan(FLUSH, target="alter_system = true")
    done = lab.run(code=2)
    assert f"was killed and left {NAME} = 0 (it was 1)" in done.stderr
    assert "dbdyno restore gone --target DSN" in done.stderr
    checks = {one["name"]: one for one in json.loads(lab.command("doctor", "--format", "json").stdout)}
    assert f"{NAME} = 0 (it was 1)" in checks["left by runs"]["found"]
    assert all(checks[name]["ok"] for name in ("load's login", "server settings", "waits", "connections"))
    assert f"SET GLOBAL {NAME} = 1" in lab.command("restore", "--all", "--dry-run").stdout
    assert flush(maria) == "0", "a dry run changes nothing"
    assert "everything is restored" in lab.command("restore", "--all", "--yes").stdout
    assert flush(maria) == "1" and not record.exists()
    assert "no settings to restore" in lab.command("restore", "--all").stdout


def test_what_somebody_else_has_set_since_is_left_alone(lab: MariaLab, maria: MariaServer, record: Path) -> None:
    flush(maria, 2)
    assert "somebody else has set it since" in lab.command("restore", "--all", "--yes").stdout
    assert flush(maria) == "2" and not record.exists()


def test_a_setting_that_is_back_is_no_longer_owed(maria: MariaServer, record: Path) -> None:
    flush(maria, 1)
    refuse_leftovers(MariaDB.open(maria.dsn))
    assert not record.exists()


def test_nothing_of_a_record_is_taken_as_sql(lab: MariaLab, maria: MariaServer, owed_apart: Path) -> None:
    left(maria, "1; drop database test")
    try:
        done = lab.command("restore", "--all", "--yes", code=2)
        assert "cannot be restored: expected a whole number" in done.stderr
        assert flush(maria) == "0"
    finally:
        flush(maria, 1)
