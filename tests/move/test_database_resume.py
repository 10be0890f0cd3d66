"""Tests of killed database moves: a job resumes after a kill at any moment, and no row is doubled."""

from __future__ import annotations

import functools
import importlib
import itertools
import multiprocessing
import os
import signal
from collections.abc import Sequence
from typing import Any
from unittest import mock

import pytest
from database_lab import Databases, content

from command_line import dbdyno
from dbdyno.move.database import indexes, rows
from soaked import first
from waiting import until

ROOM = "dbdyno.move.database"
POINTS = [
    pytest.param(f"{ROOM}.job", "write_plan", 1, id="before the plan is written"),
    pytest.param(f"{ROOM}.schema", "restore_before", 1, id="before the target is touched"),
    pytest.param(f"{ROOM}.schema", "Restorer.restore", 10, id="in the middle of the schema"),
    pytest.param("dbdyno.move.ledger.folder", "Ledger.record", 3, id="when a chunk is there that is not in the ledger"),
    pytest.param(f"{ROOM}.large_objects", "_copy_one", 2, id="between two large objects"),
    pytest.param(f"{ROOM}.indexes", "_Sessions.restore", 7, id="between two indexes"),
    pytest.param(f"{ROOM}.finish_steps", "set_sequences", 1, id="before the sequences"),
    pytest.param(f"{ROOM}.finish_steps", "grant_all", 1, id="before the privileges"),
    pytest.param(f"{ROOM}.finish_steps", "analyse", 1, id="before the statistics"),
    pytest.param(f"{ROOM}.finish_steps", "note_transaction", 1, id="before the last commit"),
    pytest.param(f"{ROOM}.finish_phase", "conclude", 1, id="after the last commit"),
]


def move_until(databases: Databases, module: str, name: str, at: int, words: Sequence[str]) -> None:
    """Run the move in this process, which is killed when it calls a function for the `at`-th time."""
    *path, last = name.split(".")
    owner = functools.reduce(getattr, path, importlib.import_module(module))
    whole, calls = getattr(owner, last), itertools.count(1)

    def counted(*given: Any, **named: Any) -> Any:
        if next(calls) == at:
            os.kill(os.getpid(), signal.SIGKILL)
        return whole(*given, **named)

    setattr(owner, last, counted)
    done = databases.move(*words)
    (databases.folder / "said").write_text(done.stdout + done.stderr)


def killed(databases: Databases, module: str, name: str, at: int, *words: str) -> None:
    """Run the move in a forked process, which saves a start of the interpreter, until a function kills it."""
    given = (databases, module, name, at, words)
    process = multiprocessing.get_context("fork").Process(target=move_until, args=given, daemon=True)
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL, (databases.folder / "said").read_text()


def equal(databases: Databases) -> None:
    """Check that both databases have the same content."""
    here, there = content(databases.source), content(databases.target)
    assert {name for name in here | there if here.get(name) != there.get(name)} == set()


@pytest.mark.soak
@pytest.mark.parametrize(("module", "name", "at"), POINTS)
def test_a_job_that_was_killed_is_finished_by_the_same_command(
    full: Databases, module: str, name: str, at: int
) -> None:
    killed(full, module, name, at)
    done = full.moved()
    assert "Proved: " in done.stdout
    equal(full)


@pytest.mark.parametrize("points", first(POINTS[1::4], POINTS[1:]), ids=["some", "all"])
def test_a_job_may_be_killed_again_and_again(full: Databases, points: Sequence[Any]) -> None:
    for point in points:
        module, name, at = point.values
        killed(full, str(module), str(name), int(str(at)))
    full.resumed()
    equal(full)


def test_rows_that_changed_in_the_source_after_a_kill_are_those_of_one_instant(full: Databases) -> None:
    killed(full, "dbdyno.move.ledger.folder", "Ledger.record", 4)
    full.run(full.source, "drop event trigger watch", "drop event trigger nodrop")
    full.run(full.source, "update app.people set age = 7", "create table app.later (i int)", "drop table app.empty")
    done = full.resume()
    assert "everything is read again, as of one new instant" in done.stderr
    assert done.returncode == 0, done.stderr + done.stdout
    equal(full)


def test_a_snapshot_that_is_held_lets_the_job_go_on_as_of_then(full: Databases) -> None:
    before = content(full.source)
    killed(full, "dbdyno.move.ledger.folder", "Ledger.record", 4, "--hold", "60")
    full.run(full.source, "drop event trigger watch", "create table app.later (i int)", "update app.people set age = 7")
    done = full.resume()
    assert "is still held" in done.stderr
    assert done.returncode == 0, done.stderr + done.stdout
    there = content(full.target)
    assert {name for name in before if before[name] != there[name]} == set()


def test_a_job_that_begins_again_holds_its_new_snapshot(full: Databases) -> None:
    killed(full, "dbdyno.move.ledger.folder", "Ledger.record", 4)
    killed(full, f"{ROOM}.large_objects", "_copy_one", 1, "--hold", "60")
    full.run(full.source, "update app.people set age = 7")
    done = full.resume()
    assert "is still held" in done.stderr
    assert done.returncode == 0, done.stderr + done.stdout
    assert full.rows(full.target, "select count(*) < 2000 from app.people where age = 7") == [(True,)]


def test_what_a_crash_of_the_target_undid_is_copied_again(full: Databases) -> None:
    killed(full, f"{ROOM}.large_objects", "copy_all", 1, "--hold", "60")
    engine = full.there
    process = engine.pid
    assert process is not None
    os.kill(process, signal.SIGQUIT)
    until(lambda: not engine.running, 20)
    engine.start()
    done = full.resumed()
    assert "is still held" in done.stderr
    equal(full)


def test_another_database_is_not_the_jobs(full: Databases) -> None:
    killed(full, f"{ROOM}.indexes", "_Sessions.restore", 4)
    name = f"{full.name}_source"
    other = full.source.replace(name, "postgres")
    target = full.target.replace(f"{full.name}_target", "postgres")
    full.run(target, "drop table if exists filled", "create table filled (i int)")
    done = full.resume("--target", target)
    assert "is not empty: table public.filled" in done.stderr
    full.run(target, "drop table filled")
    full.run(full.target, "truncate dbdyno_move.chunk")
    assert "is not the database of the job" in full.resume("--source", other).stderr


def test_an_archive_that_was_changed_is_not_carried_out(full: Databases) -> None:
    killed(full, f"{ROOM}.indexes", "_Sessions.restore", 4)
    place = full.job / "_dbdyno" / "schema.dump"
    place.write_bytes(place.read_bytes().replace(b"PRIMARY KEY", b"UNIQUE     "))
    done = full.resume()
    assert done.returncode == 2
    assert "is not the archive that the job wrote" in done.stderr


def test_a_restart_takes_back_what_is_there(full: Databases) -> None:
    killed(full, f"{ROOM}.finish_steps", "analyse", 1)
    full.run(
        full.source, "drop event trigger watch", "create table app.later (i int)", "insert into app.later values (1)"
    )
    full.resumed("--restart")
    equal(full)


def test_a_job_whose_database_was_made_anew_begins_again(full: Databases) -> None:
    killed(full, f"{ROOM}.indexes", "_Sessions.restore", 4)
    name = f"{full.name}_target"
    target = full.target.replace(name, "postgres")
    full.run(target, f"drop database {name} with (force)", f"create database {name} template template0")
    full.resumed()
    equal(full)


def test_an_aborted_job_says_what_is_left(full: Databases) -> None:
    killed(full, f"{ROOM}.indexes", "_Sessions.restore", 4)
    assert "contains only part of the data: drop it" in dbdyno("move", "abort", full.job).stdout
    assert "the job is aborted" in full.resume().stderr


def test_a_job_that_was_ended_from_the_databases_side_says_how_it_goes_on(full: Databases) -> None:
    whole = rows.job_builder

    def ending(*given: Any) -> Any:
        full.run(full.source, "select pg_terminate_backend(pid) from pg_stat_activity where application_name ~ 'move'")
        return whole(*given)

    with mock.patch.object(rows, "job_builder", ending):
        done = full.move()
    assert done.returncode == 2
    assert f"dbdyno move resume {full.job} --source DSN --target DSN" in done.stderr
    full.resumed()
    equal(full)


def test_an_interrupted_job_says_how_it_goes_on(full: Databases) -> None:
    def interrupt(*given: object) -> None:
        raise KeyboardInterrupt

    with mock.patch.object(indexes._Sessions, "restore", interrupt):
        done = full.move()
    assert done.returncode == 130
    assert f"finished chunks are kept; next: `dbdyno move resume {full.job}" in done.stderr
    full.moved()
    equal(full)
