"""The guardian restores what a killed process changed, and nothing else."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import random
import select
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import target_child
from psycopg.conninfo import make_conninfo
from target_help import show

from dbdyno.base.errors import TargetError
from dbdyno.base.processes import python_command, python_environment
from dbdyno.bench.engine.unrestored_settings import read
from dbdyno.bench.guardian import Guardian
from dbdyno.bench.mariadb.address import CONNECT_S
from dbdyno.bench.mariadb.undo import MariaUndo
from dbdyno.bench.marked_processes import MarkUndo
from dbdyno.bench.postgres.embedded import EmbeddedPostgres
from dbdyno.bench.postgres.server import Postgres
from dbdyno.bench.restoration import RETRY_FOR_S, Claims, execute_undos
from dbdyno.bench.undo import Attempt, ServerUndo, SqlUndo, from_wire, server_processes, to_wire
from soaked import first
from waiting import until

pytestmark = pytest.mark.usefixtures("own_interpreters")

SETTING = "checkpoint_timeout"


class Child:
    """A process of `target_child.py`, to be killed; it is forked, which saves a start of the interpreter."""

    def __init__(self, command: str, **given: Any) -> None:
        context = multiprocessing.get_context("fork")
        self.out, theirs = context.Pipe(duplex=False)
        self.process = context.Process(target=_carry_out, args=(command, given, theirs), daemon=True)
        self.process.start()
        theirs.close()

    def says(self) -> Any:
        return self.out.recv()

    def kill(self, number: int) -> None:
        """Kill it, and wait until its guardian has restored everything and ended."""
        assert self.process.pid is not None
        os.kill(self.process.pid, number)
        self.process.join(120)
        self.out.close()
        assert until(lambda: not guardians_of(self.process.pid), 60)


def _carry_out(command: str, given: dict[str, Any], out: Connection) -> None:
    """Run a function of `target_child.py` in a session of its own, without the output of this process."""
    os.setsid()
    with Path(os.devnull).open("w") as nowhere:
        for stream in (1, 2):
            os.dup2(nowhere.fileno(), stream)
    with mock.patch.object(target_child, "say", lambda **facts: out.send(facts)):
        getattr(target_child, command)(given)


def guardians_of(parent: int | None) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = path.read_bytes().decode(errors="replace").split("\0")
            if "dbdyno.bench.guardian" in words and str(parent) in words:
                found.append(path.parent.name)
    return found


@pytest.fixture
def entry(others: Postgres) -> Iterator[Any]:
    """Yield a function that returns the setting's value in postgresql.auto.conf, which is 7 minutes before the test."""

    def read() -> str | None:
        with contextlib.closing(others.connect()) as conn:
            row = conn.execute(
                "select setting from pg_file_settings where name = %s and sourcefile like '%%postgresql.auto.conf'",
                [SETTING],
            ).fetchone()
            return row[0] if row else None

    with contextlib.closing(others.connect()) as conn:
        conn.execute("alter system set checkpoint_timeout to '7min'")
        conn.execute("select pg_reload_conf()")
    assert until(lambda: show(others, SETTING) == "7min")
    yield read
    with contextlib.closing(others.connect()) as conn:
        conn.execute("alter system reset checkpoint_timeout")
        conn.execute("select pg_reload_conf()")


def given_for(engine: EmbeddedPostgres, journal: Path) -> dict[str, Any]:
    return {
        "dsn": make_conninfo("", **engine.tcp_conninfo()),
        "settings": {SETTING: "11min"},
        "journal": str(journal),
    }


@pytest.mark.parametrize("number", first(signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, count=3))
def test_a_setting_is_put_back_whatever_kills_the_process(
    number: int, engine: EmbeddedPostgres, others: Postgres, entry: Any, tmp_path: Path
) -> None:
    journal = tmp_path / "journal"
    child = Child("hold", **given_for(engine, journal))
    assert child.says()["in_force"]
    assert (show(others, SETTING), entry()) == ("11min", "11min")
    child.kill(number)
    assert entry() == "7min"
    assert until(lambda: show(others, SETTING) == "7min")
    if number == signal.SIGKILL:
        written = journal.read_text()
        assert f"put back: settings {SETTING}" in written
        assert engine.password not in written


def test_no_secret_is_in_the_guardians_arguments(engine: EmbeddedPostgres, entry: Any, tmp_path: Path) -> None:
    child = Child("hold", **given_for(engine, tmp_path / "journal"))
    guardian = child.says()["guardian"]
    for name in ("cmdline", "environ"):
        assert engine.password.encode() not in Path(f"/proc/{guardian}/{name}").read_bytes()
    child.kill(signal.SIGTERM)
    assert entry() == "7min"


@pytest.mark.parametrize("kills", [2, pytest.param(12, marks=pytest.mark.soak)])
def test_killed_at_random_instants_the_setting_is_always_put_back(
    kills: int, engine: EmbeddedPostgres, others: Postgres, entry: Any, tmp_path: Path
) -> None:
    dice = random.Random(11)
    for _ in range(kills):
        child = Child("churn", **given_for(engine, tmp_path / "journal"))
        assert child.says()["begun"]
        time.sleep(dice.uniform(0, 0.6))
        child.kill(signal.SIGKILL)
        assert entry() == "7min"
        assert until(lambda: show(others, SETTING) == "7min")
        time.sleep(0.1)
        assert entry() == "7min", "the change landed after its undo"


def test_an_embedded_server_is_gone_after_its_owner_was_killed(open_folder: Path) -> None:
    child = Child("embedded", workdir=str(open_folder))
    assert child.says()["begun"]
    data = Path(child.says()["folder"]) / "data"
    child.kill(signal.SIGKILL)
    assert list(open_folder.iterdir()) == []
    assert list(server_processes(data)) == []


@pytest.mark.parametrize("kills", [2, pytest.param(10, marks=pytest.mark.soak)])
@pytest.mark.usefixtures("made_anew")
def test_killed_during_its_start_a_server_leaves_nothing(kills: int, open_folder: Path) -> None:
    dice = random.Random(7)
    for _ in range(kills):
        child = Child("embedded", workdir=str(open_folder))
        assert child.says()["begun"]
        time.sleep(dice.uniform(0, 0.9))
        folders = list(open_folder.iterdir())
        child.kill(signal.SIGKILL)
        assert list(open_folder.iterdir()) == []
        for folder in folders:
            assert list(server_processes(folder / "data")) == []


def test_the_block_form_carries_out_the_undo_also_after_an_exception(others: Postgres) -> None:
    with contextlib.closing(others.connect()) as conn, Guardian() as guardian:
        undo = others.sql_undo("drop the table", ["drop table if exists made"])
        with pytest.raises(ZeroDivisionError), guardian.undo(undo):
            conn.execute("create table made ()")
            assert guardian.pending == (undo,)
            raise ZeroDivisionError
        assert guardian.pending == ()
        row = conn.execute("select to_regclass('made')").fetchone()
        assert row == (None,)


def test_what_was_only_pushed_is_carried_out_when_the_guardian_is_closed(others: Postgres) -> None:
    with contextlib.closing(others.connect()) as conn:
        with Guardian() as guardian:
            guardian.push(others.sql_undo("first", ["drop table made"]))
            conn.execute("create table made ()")
            guardian.push(others.sql_undo("second", ["insert into made default values"]))
        assert conn.execute("select to_regclass('made')").fetchone() == (None,)


def test_an_undo_that_fails_is_told_and_hinders_no_other(others: Postgres, tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    with contextlib.closing(others.connect()) as conn:
        conn.execute("create table made ()")
        with Guardian(journal) as guardian:
            guardian.push(others.sql_undo("the good one", ["drop table made"]))
            guardian.push(others.sql_undo("the bad one", ["drop table no_such"]))
        assert conn.execute("select to_regclass('made')").fetchone() == (None,)
    first, second = journal.read_text().splitlines()
    assert 'the bad one: table "no_such" does not exist' in first
    assert second.endswith("put back: the good one")


def test_a_failing_undo_raises_in_the_block_form(others: Postgres) -> None:
    with (
        Guardian(Path(os.devnull)) as guardian,
        pytest.raises(TargetError, match="not everything could be restored"),
        guardian.undo(others.sql_undo("bad", ["drop table no_such"])),
    ):
        pass


def test_without_a_guardian_no_change_is_made(others: Postgres) -> None:
    with Guardian() as guardian:
        number = guardian.push(others.sql_undo("nothing", ["select 1"]))
        guardian.discard(number)
        assert guardian.pid is not None
        os.kill(guardian.pid, signal.SIGKILL)
        with pytest.raises(TargetError, match="the change was not made"):
            guardian.push(others.sql_undo("nothing", ["select 1"]))


def test_a_killed_guardian_leaves_its_work_to_us(others: Postgres) -> None:
    with contextlib.closing(others.connect()) as conn:
        with Guardian() as guardian:
            guardian.push(others.sql_undo("drop", ["drop table made"]))
            conn.execute("create table made ()")
            assert guardian.pid is not None
            os.kill(guardian.pid, signal.SIGKILL)
        assert conn.execute("select to_regclass('made')").fetchone() == (None,)


def test_an_undo_survives_the_wire_and_hides_its_connection() -> None:
    secret = SqlUndo("l", {"password": "hunter2"}, ("select 1", "select 2"), (1, 2), 3.0)
    assert from_wire(json.loads(json.dumps(to_wire(secret)))) == secret
    assert "hunter2" not in repr(secret)
    server = ServerUndo("s", "/data", ("/a", "/b"), True)
    assert from_wire(json.loads(json.dumps(to_wire(server)))) == server
    mark = MarkUndo("client", "0123")
    assert from_wire(json.loads(json.dumps(to_wire(mark)))) == mark
    with pytest.raises(KeyError):
        from_wire({"type": "Shell", "command": "rm"})


def test_a_server_that_does_not_answer_is_a_problem_not_an_exception() -> None:
    nowhere = {"host": "127.0.0.1", "port": "1", "user": "u", "dbname": "d", "password": "hunter2"}
    (problem,) = SqlUndo("settings", nowhere, ("select 1",), patience_s=0).execute()
    assert problem.startswith("settings: ")
    assert "hunter2" not in problem


@pytest.mark.parametrize("undo_type", [SqlUndo, MariaUndo])
def test_a_server_that_is_silent_is_asked_once_and_not_per_undo(undo_type: type[SqlUndo | MariaUndo]) -> None:
    """Each undo waited for a login of its own, and then the guardian: a run ended 71 s after the network did."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        names = {"user": "u", "dbname": "d", "connect_timeout": "5"} if undo_type is SqlUndo else {"user": "u"}
        connection = {"host": "127.0.0.1", "port": port, **names}
        undos = [undo_type(f"settings {at}", connection, ("select 1",), patience_s=0) for at in range(3)]
        with Guardian() as guardian:
            for undo in undos:
                guardian.push(undo)
            begun = time.monotonic()
            assert [len(undo.execute()) for undo in undos] == [1, 1, 1]
        assert time.monotonic() - begun < 1.5 * CONNECT_S, "one login for all"
    assert undos[1].execute() == ["settings 1: the server does not answer"]


def test_a_server_that_refuses_is_asked_again() -> None:
    nowhere = {"host": "127.0.0.1", "port": "1", "user": "u", "dbname": "d"}
    for _ in range(2):
        (problem,) = SqlUndo("settings", nowhere, ("select 1",), patience_s=0).execute()
        assert "refused" in problem


def test_the_guardian_goes_on_for_hours_where_the_server_is_away() -> None:
    """The server answers at the third try; before that the guardian says once that it goes on."""
    answers = [Attempt(("settings x: no answer",), 0, True)] * 2 + [Attempt((), 2, False)]
    told: list[str] = []
    slept: list[float] = []
    undo = Scripted("settings x", {}, ("select 1",), lasting=True)
    Scripted.answers = iter(answers)
    assert execute_undos([undo], Claims(), told.append, sleep=slept.append) == []
    assert slept == [1.0, 2.0]
    assert "not restored yet: settings x: no answer; dbdyno retries for 24 h" in told[0]
    assert told[1:] == ["put back: settings x (try 3)"]


def test_the_guardian_gives_up_after_a_day_and_says_so() -> None:
    told: list[str] = []
    now = [0.0]
    Scripted.answers = iter([Attempt(("settings x: no answer",), 0, True)] * 5000)
    undo = Scripted("settings x", {}, ("select 1",), lasting=True)

    def sleep(seconds: float) -> None:
        now[0] += seconds

    assert execute_undos([undo], Claims(), told.append, clock=lambda: now[0], sleep=sleep)
    assert now[0] == pytest.approx(RETRY_FOR_S, abs=120)
    assert told[-1].startswith("stopped: settings x: no answer (try 1")
    assert len(told) == pytest.approx(25, abs=2), "once an hour"


def test_the_guardian_puts_back_when_a_dead_server_comes_back(open_folder: Path, owed_apart: Path) -> None:
    """Runner killed while the server is down: not after 30 s, but when it is up again."""
    with EmbeddedPostgres(workdir=open_folder) as engine:
        target = Postgres.open(make_conninfo("", **engine.tcp_conninfo()))
        child = Child("hold", **given_for(engine, open_folder / "journal"))
        assert child.says()["in_force"]
        engine.stop()
        child.process.kill()
        child.process.join(120)
        child.out.close()
        (record,) = owed_apart.glob("*.json")
        assert until(lambda: (known := read(record)) is not None and known.tries > 0, 30)
        assert read(record).state == "retrying"  # type: ignore[union-attr]
        engine.start()
        assert until(lambda: not guardians_of(child.process.pid), 60)
        assert until(lambda: show(target, SETTING) == "5min")
        assert not record.exists()


class Scripted(SqlUndo):
    """Undo step whose attempts end as `answers` lists."""

    answers: Iterator[Attempt] = iter(())

    def attempt(self, **_: Any) -> Attempt:  # type: ignore[override]
        return next(self.answers)


def test_a_pipe_that_reads_our_words_ends_while_the_guardian_goes_on() -> None:
    """`dbdyno run ... 2>&1 | tee log` stayed for 24 h: the guardian that it had left kept the pipe open."""
    lasting = SqlUndo("settings", {"host": "127.0.0.1", "port": "1"}, ("select 1",), patience_s=0, lasting=True)
    message = {"op": "push", "id": 1, "sequence": 1, "undo": to_wire(lasting)}
    command = python_command("dbdyno.bench.guardian", str(os.getpid()))
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, env=python_environment(), start_new_session=True, **pipes) as guardian:
        assert guardian.stdin is not None and guardian.stdout is not None and guardian.stderr is not None
        try:
            guardian.stdin.write(json.dumps(message).encode() + b"\n")
            guardian.stdin.flush()
            assert json.loads(guardian.stdout.readline())["problem"] == ""
            guardian.stdin.close()  # the run is gone
            said = bytearray()
            while select.select([guardian.stderr], [], [], 60)[0] and (more := os.read(guardian.stderr.fileno(), 4096)):
                said += more
            assert select.select([guardian.stderr], [], [], 0)[0], "the pipe has come to its end"
            assert guardian.poll() is None, "and the guardian goes on"
        finally:
            guardian.kill()
    assert b"not restored yet: settings" in said
    assert b"goes on without a word here" in said
