"""Tests of two runs on one server, of changes by others in between, and of settings that killed runs left."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pytest
from lab_help import Delay, reloading
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from dbdyno.base.errors import TargetError
from dbdyno.bench.guardian import Guardian
from dbdyno.bench.postgres.server import Postgres
from soaked import first
from waiting import until

GUARDIAN = "select pid from pg_stat_activity where application_name like 'dbdyno guardian%'"


pytestmark = pytest.mark.usefixtures("own_interpreters")


def guardian_of(parent: int) -> int:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = path.read_bytes().decode(errors="replace").split("\0")
            if "dbdyno.bench.guardian" in words and str(parent) in words:
                return int(path.parent.name)
    raise AssertionError("no guardian")


def killed_with_its_guardian(lab, delay: Delay) -> None:
    """Kill a run together with its guardian."""
    running = lab.start("run", reloading(lab, blocks=500))
    assert until(lambda: delay()[0] == "500ms")
    os.kill(guardian_of(running.pid), signal.SIGKILL)
    running.kill()
    running.communicate()
    assert delay()[0] == "500ms", "no process is left to restore it"


def set_delay(dsn: str, sql: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute(f"alter system {sql}")
        conn.execute("select pg_reload_conf()")


@pytest.fixture
def mended(dsn):
    yield
    set_delay(dsn, "reset wal_writer_delay")


class Killed(NamedTuple):
    """A laboratory whose run was killed with its guardian.

    Attributes:
        lab: The laboratory, in the folder that the records name.
        kept: Copy of its folder and of its state folder.
        before: What `delay` returned before the run.
    """

    lab: Any
    kept: Path
    before: tuple[str, int]


@pytest.fixture(scope="module")
def killed(lab_in, dsn, tmp_path_factory) -> Killed:
    """Kill a run together with its guardian once, and put its setting back."""
    kept = tmp_path_factory.mktemp("kept") / "lab"
    with lab_in("killed") as lab, psycopg.connect(dsn, autocommit=True) as conn:
        delay = Delay(conn)
        before = delay()
        killed_with_its_guardian(lab, delay)
        shutil.copytree(lab.folder, kept)
        set_delay(dsn, "reset wal_writer_delay")
        assert until(lambda: delay() == before)
    return Killed(lab, kept, before)


@pytest.fixture
def leftovers(killed: Killed, dsn, mended, owed_apart, delay) -> Killed:
    """Return folder, records and server as the killed run left them."""
    shutil.rmtree(killed.lab.folder)
    shutil.copytree(killed.kept, killed.lab.folder)
    shutil.copytree(killed.kept / "state", owed_apart.parent, dirs_exist_ok=True)
    set_delay(dsn, "set wal_writer_delay = '500ms'")
    assert until(lambda: delay() == ("500ms", killed.before[1] + 1))
    return killed


def test_a_second_run_that_alters_settings_is_refused_and_names_the_first(lab, dsn, delay):
    before = delay()
    first = lab.start("run", reloading(lab, blocks=500))
    assert until(lambda: delay() != before)
    refused = lab("run", reloading(lab, blocks=2, name="second.toml"), "--out", "elsewhere", code=2)
    run = next((lab.folder / "runs").iterdir()).name
    assert "another dbdyno run alters settings of this server" in refused.stderr
    assert run[-30:] in refused.stderr
    assert not (lab.folder / "elsewhere").exists(), "refused before the run folder exists"
    first.send_signal(signal.SIGTERM)
    _, errors = first.communicate(timeout=120)
    assert first.returncode == 130, errors
    assert delay() == before
    assert until(lambda: not _rows(dsn, GUARDIAN))
    lab("run", reloading(lab, blocks=2, name="second.toml"))
    assert delay() == before


def test_the_lock_holds_across_databases(dsn):
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("create database elsewhere")
    try:
        other = make_conninfo("", **{**conninfo_to_dict(dsn), "dbname": "elsewhere"})
        with Guardian() as first, Guardian() as second:
            first.claim(Postgres.open(dsn).libpq_parameters(), "the-first")
            with pytest.raises(TargetError, match="the-first"):
                second.claim(Postgres.open(other).libpq_parameters())
        with Guardian() as second:
            second.claim(Postgres.open(other).libpq_parameters())
    finally:
        with psycopg.connect(dsn, autocommit=True) as conn:
            conn.execute("drop database elsewhere with (force)")


def test_a_lock_lost_with_its_session_is_taken_again(dsn):
    target = Postgres.open(dsn)
    with Guardian() as guardian:
        guardian.claim(target.libpq_parameters())
        (pid,) = _rows(dsn, GUARDIAN)
        _rows(dsn, f"select pg_terminate_backend({pid})")
        guardian.claim(target.libpq_parameters())
        assert _rows(dsn, GUARDIAN) not in ([], [pid])


@pytest.mark.soak
def test_a_turn_under_another_value_does_not_count(lab, dsn, mended, delay):
    """Another session changes the setting while the arm runs: the run reads it back and repeats the block."""
    plan = reloading(lab, blocks=2)
    path = lab.folder / plan
    path.write_text(path.read_text().replace('turn = "60ms"', 'turn = "2s"'))
    running = lab.start("run", plan)
    at_work = "select 1 from pg_stat_activity where application_name = 'dbdyno/slow writer' and query ~ 'select 1'"
    assert until(lambda: _rows(dsn, at_work)), "its setting has been looked at by then"
    set_delay(dsn, "set wal_writer_delay to '300ms'")
    _, errors = running.communicate(timeout=120)
    assert running.returncode in (0, 1), errors
    assert "another user changed a setting while the arm 'slow writer' ran" in errors
    assert "wal_writer_delay is 300ms" in errors
    blocks = [json.loads(path.read_text()) for path in lab.folder.glob("runs/*/blocks/*.json")]
    assert [block["index"] for block in blocks if any("run again" in mark for mark in block["marks"])] == [0]
    assert delay()[0] == "200ms"


def test_leftovers_are_refused_shown_and_restored(leftovers: Killed, dsn, monkeypatch, delay):
    lab = leftovers.lab
    (run,) = (lab.folder / "runs").iterdir()
    left = "wal_writer_delay = 500ms (it was 200ms)"
    refused = lab("run", reloading(lab, blocks=2, name="next.toml"), code=2).stderr
    assert left in refused and f"dbdyno restore {run}" in refused
    monkeypatch.setenv("PGPASSWORD", conninfo_to_dict(dsn)["password"])
    assert left in lab("run", "--resume", "last", code=2).stderr
    checks = json.loads(lab("doctor", "--target", dsn, "--format", "json").stdout)
    (check,) = [one for one in checks if one["name"] == "left by runs"]
    assert left in check["found"] and str(run) in check["next"]
    assert "wal_writer_delay not put back" in lab("runs", "--format", "json").stdout
    assert "200ms" in lab("restore", "last", "--target", dsn, "--dry-run").stdout
    assert delay()[0] == "500ms", "a dry run changes nothing"
    assert "everything is restored" in lab("restore", "last", "--target", dsn, "--yes").stdout
    assert delay() == leftovers.before
    assert "no settings to restore" in lab("restore", "--all", "--target", dsn).stdout
    assert "left" not in json.loads(lab("runs", "--format", "json").stdout)[0]


def test_leftovers_are_seen_from_the_manifest_alone(leftovers: Killed, dsn, owed_apart, delay):
    """The user's records are missing, as on another machine; the manifest is enough."""
    lab = leftovers.lab
    (run,) = (lab.folder / "runs").iterdir()
    for record in owed_apart.glob("*.json"):
        record.unlink()
    assert "it was 200ms" in lab("run", reloading(lab, blocks=2, name="next.toml"), code=2).stderr
    lab("restore", run.name, "--target", dsn, "--yes")
    assert delay()[0] == "200ms"


def test_what_somebody_else_has_set_since_is_left_alone(leftovers: Killed, dsn, delay):
    (run,) = (leftovers.lab.folder / "runs").iterdir()
    set_delay(dsn, "set wal_writer_delay to '123ms'")
    assert until(lambda: delay()[0] == "123ms")
    assert "somebody else has set it since" in leftovers.lab("restore", run.name, "--target", dsn, "--yes").stdout
    assert delay()[0] == "123ms"


def test_a_record_holds_no_secret(killed: Killed, dsn):
    (record,) = (killed.kept / "state" / "owed").glob("*.json")
    assert conninfo_to_dict(dsn)["password"] not in record.read_text()


@pytest.mark.parametrize("wanted", first("dbdyno control", "dbdyno watcher", "dbdyno guardian%"))
def test_a_server_that_goes_away_is_no_internal_error(lab, dsn, wanted):
    """Each connection of a run is cut at some moment; no error is an internal one."""
    running = lab.start("run", reloading(lab, blocks=4))
    kill = f"select pg_terminate_backend(pid) from pg_stat_activity where application_name like '{wanted}'"
    until(lambda: _rows(dsn, kill), 10)
    _, errors = running.communicate(timeout=120)
    assert "a fault in dbdyno" not in errors and "internal error" not in errors, errors


def _rows(dsn: str, sql: str) -> list:
    with psycopg.connect(dsn, autocommit=True) as conn:
        return [row[0] for row in conn.execute(sql).fetchall()]
