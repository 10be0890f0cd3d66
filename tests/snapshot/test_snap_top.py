"""`dbdyno snap top`: the numbers of a frame, and its manners in a terminal and in a pipe."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from command_line import dbdyno, succeeded
from dbdyno.base.json_types import JsonObject
from dbdyno.bench.postgres.embedded import EmbeddedPostgres
from dbdyno.evidence.events import wait_class
from dbdyno.report.live import render_frame
from dbdyno.snapshot.engines.live import Reading, frame
from dbdyno.snapshot.engines.postgres.sampler import ACTIVITY
from dbdyno.snapshot.engines.view import View
from mariadb_server import MariaServer, missing

ESCAPE = "\x1b"
ENTER, LEAVE = "\x1b[?1049h", "\x1b[?1049l"


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedPostgres]:
    with EmbeddedPostgres(settings={"shared_preload_libraries": "pg_stat_statements"}) as running:
        with psycopg.connect(dsn_of(running), autocommit=True) as conn:
            conn.execute("create extension pg_stat_statements")
        yield running


def dsn_of(server: EmbeddedPostgres) -> str:
    return make_conninfo("", **server.tcp_conninfo())


class Made:
    """Live source with synthetic readings."""

    title = "made 1.0"
    lines = (("commits", "commits", "per_s"), ("blocks asked for", "asked", "per_s"))
    lacks = ()

    def texts(self, statements: Sequence[str]) -> Mapping[str, str]:
        return {"1": "select 1", "2": "/* dbdyno */ select 2", "3": "select 3"}

    def wait_class(self, kind: str | None, event: str | None) -> str:
        return wait_class("postgresql", kind, event)


def reading(second: float, counters: dict[str, Any], **statements: tuple[float, float]) -> Reading:
    return Reading(int(second * 1e9), counters, {}, {k[1:]: v for k, v in statements.items()})


def shown(before: Reading, now: Reading, rows: str = "", looks: int = 0) -> JsonObject:
    views = [View("activity", "now", ACTIVITY, rows.encode())]
    return frame(Made(), before, now, (views, looks), 10)  # type: ignore[arg-type]


def test_rates_are_differences_by_the_time_between() -> None:
    made = shown(
        reading(10, {"commits": 100.0, "hits": 0.0, "reads": 0.0}),
        reading(12, {"commits": 140.0, "hits": 30.0, "reads": 10.0}),
    )
    assert {row["label"]: row["value"] for row in made["profile"]} == {
        "commits": 20.0,
        "blocks asked for": 20.0,
        "hit rate": 0.75,
    }


def test_counters_that_fell_give_no_number_but_a_sentence() -> None:
    made = shown(reading(0, {"commits": 100.0}), reading(1, {"commits": 3.0}))
    assert made["profile"][0]["value"] is None
    assert "counters restarted" in made["notes"][0]


def test_our_own_transactions_that_an_engine_counts_late_are_told_and_take_nothing_off() -> None:
    """On an idle server the screen said that counters had begun again."""
    before = replace(reading(0, {"commits": 100.0}), own=3)
    made = shown(before, replace(reading(1, {"commits": 100.0}), own=9))
    assert made["profile"][0]["value"] == 0.0
    assert made["notes"] == ["transactions: about 6 a second are those of this screen"]


def test_a_counter_that_is_not_known_is_not_zero() -> None:
    made = shown(reading(0, {"commits": None}), reading(1, {"commits": None}))
    assert made["profile"][0]["value"] is None
    assert made["classes"] is None
    text = render_frame(made | {"at": "12:00"}, width=80, height=None, color=False)
    assert re.search(r"commits +–", text)
    assert "not sampled" in text


def test_statements_are_ordered_by_time_and_ours_are_left_out() -> None:
    made = shown(
        reading(0, {}, s1=(10, 1e9), s2=(5, 1e9), s3=(7, 5e9)),
        reading(2, {}, s1=(14, 2e9), s2=(50, 9e9), s3=(1, 1e9), s4=(1, 3e9)),
    )
    assert [(row["statement"], row["aas"], row["calls"]) for row in made["statements"]] == [
        ("4", 1.5, 0.5),
        ("1", 0.5, 2.0),
    ]


def test_sessions_are_counted_by_class_over_all_looks() -> None:
    rows = (
        "1,7,client backend,d,u,a,,active,Lock,transactionid,\n"
        "1,8,client backend,d,u,a,,active,,,\n"
        "2,7,client backend,d,u,a,,active,Lock,relation,\n"
        "2,9,client backend,d,u,a,,idle in transaction,Client,ClientRead,\n"
        "2,4,walwriter,,,,,,IO,WALSync,\n"
    )
    made = shown(reading(0, {}), reading(1, {}), rows, looks=4)
    found = {row["class"]: (row["aas"], row["events"]) for row in made["classes"]}
    assert found == {"lock": (0.5, ["transactionid", "relation"]), "CPU": (0.25, ["CPU"])}


@pytest.mark.parametrize(("width", "height"), [(40, 5), (80, 24), (200, 60)])
def test_a_frame_fits_its_screen(width: int, height: int) -> None:
    made = shown(reading(0, {"commits": 1.0}, s1=(1, 1e9)), reading(1, {"commits": 9.0}, s1=(9, 2e9)))
    made["statements"] = [row | {"text": "select " + "x, " * 200} for row in made["statements"]]
    text = render_frame(made | {"at": "12:00"}, width=width, height=height, color=False, foot="q")
    lines = text.split("\n")
    assert len(lines) == height
    assert max(map(len, lines)) <= width
    assert lines[-1] == "q"


def test_text_of_a_statement_cannot_command_the_terminal() -> None:
    made = shown(reading(0, {}, s1=(1, 1e9)), reading(1, {}, s1=(9, 2e9)))
    made["statements"][0]["text"] = "select '\x1b[2J'\nfrom t"
    text = render_frame(made | {"at": "12:00"}, width=80, height=None, color=False)
    assert ESCAPE not in text
    assert "from t" in text


def words(dsn: str, *more: str) -> list[str]:
    return ["snap", "top", "--target", dsn, "--every", "300ms", *more]


def command(dsn: str, *more: str) -> list[str]:
    return [sys.executable, "-m", "dbdyno", *words(dsn, *more)]


def environment(**more: str) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "TERM", "COLUMNS")}
    return {**kept, "TERM": "xterm-256color", **more}


class Terminal:
    """The command in a terminal of 24 lines and 100 columns."""

    def __init__(self, dsn: str, *more: str, **variables: str) -> None:
        self.master, slave = pty.openpty()
        import fcntl
        import struct
        import termios

        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
        self.before = termios.tcgetattr(slave)
        self.slave = slave
        self.said = ""
        self.process = subprocess.Popen(
            ["setsid", "--ctty", *command(dsn, *more)],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=environment(**variables),
        )

    def until(self, text: str, patience_s: float = 120) -> str:
        end = time.monotonic() + patience_s
        while text not in self.said:
            assert time.monotonic() < end, f"{text!r} not in {self.said[-2000:]!r}"
            if select.select([self.master], [], [], 0.2)[0]:
                self.said += os.read(self.master, 65536).decode(errors="replace")
        return self.said

    def press(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    def end(self) -> int:
        """Return the exit code, after checking that the terminal's settings are restored."""
        import termios

        code = self.process.wait(120)
        while select.select([self.master], [], [], 0.2)[0]:
            self.said += os.read(self.master, 65536).decode(errors="replace")
        assert termios.tcgetattr(self.slave) == self.before
        os.close(self.slave)
        os.close(self.master)
        return code


@pytest.mark.parametrize("how", ["q", "\x03", "term"])
def test_q_ctrl_c_and_a_signal_end_quietly_and_put_the_terminal_back(server: EmbeddedPostgres, how: str) -> None:
    terminal = Terminal(dsn_of(server))
    terminal.until("Active sessions")
    if how == "term":
        terminal.process.send_signal(signal.SIGTERM)
    else:
        terminal.press(how)
    assert terminal.end() == 0
    assert terminal.said.index(ENTER) < terminal.said.index(LEAVE)
    assert terminal.said.rstrip().endswith(LEAVE), "nothing after it"
    assert "Traceback" not in terminal.said


def test_a_terminal_that_was_closed_is_no_error(server: EmbeddedPostgres) -> None:
    terminal = Terminal(dsn_of(server))
    terminal.until("first figures")
    os.close(terminal.slave)
    os.close(terminal.master)
    assert terminal.process.wait(120) == 0


@pytest.mark.soak
def test_colours_are_shown_in_a_terminal_and_not_with_no_color(server: EmbeddedPostgres) -> None:
    for variables, coloured in (({}, True), ({"NO_COLOR": "1"}, False)):
        terminal = Terminal(dsn_of(server), "--frames", "1", **variables)
        terminal.until(LEAVE)
        assert terminal.end() == 0
        assert bool(re.search(r"\x1b\[\d*;?\d*m", terminal.said)) == coloured


def test_a_dumb_terminal_gets_lines(server: EmbeddedPostgres) -> None:
    terminal = Terminal(dsn_of(server), "--frames", "2", TERM="dumb")
    assert terminal.until("Active sessions")
    assert terminal.end() == 0
    assert ESCAPE not in terminal.said
    assert terminal.said.count("PostgreSQL") == 2


def test_a_pipe_gets_one_frame_of_plain_text(server: EmbeddedPostgres) -> None:
    done = succeeded(*words(dsn_of(server)))
    assert ESCAPE not in done.stdout
    assert done.stdout.count("PostgreSQL") == 1
    assert done.stderr == ""


def test_a_closed_pipe_ends_quietly(server: EmbeddedPostgres) -> None:
    line = " ".join(f"'{word}'" for word in command(dsn_of(server), "--frames", "3"))
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {line} | head -1"],
        capture_output=True,
        text=True,
        env=environment(),
        check=False,
    )
    assert done.returncode == 0
    assert done.stderr == ""


def watched(dsn: str, work: Callable[[], object]) -> str:
    """What is shown of a server that works until the page of an interval has come."""
    with subprocess.Popen(
        command(dsn, "--every", "3s"), stdout=subprocess.PIPE, text=True, env=environment()
    ) as watching:
        until = time.monotonic() + 120
        while watching.poll() is None and time.monotonic() < until:
            work()
            time.sleep(0.05)
        return watching.communicate()[0]


@pytest.mark.soak
def test_a_load_is_seen(server: EmbeddedPostgres) -> None:
    with psycopg.connect(dsn_of(server), autocommit=True) as conn:
        conn.execute("create table if not exists seen (n int)")
        insert = "insert into seen select * from generate_series(1, 100)"
        text = watched(dsn_of(server), lambda: conn.execute(insert))
    assert "INSERT INTO seen".lower() in text.lower()
    assert "dbdyno" not in text, "no statement of ours"
    changed = re.search(r"rows changed +([\d.,  ]+?) */s", text)
    assert changed and float(re.sub(r"[^\d.]", "", changed[1])) > 100


def test_a_server_that_goes_away_is_told_and_tried_again(server: EmbeddedPostgres) -> None:
    terminal = Terminal(dsn_of(server))
    terminal.until("Active sessions")
    server.stop()
    try:
        terminal.until("tried again every")
    finally:
        server.start()
    terminal.said = ""
    terminal.until("Active sessions")
    terminal.press("q")
    assert terminal.end() == 0


def test_a_target_that_does_not_answer_is_an_error() -> None:
    done = dbdyno(*words("postgresql://127.0.0.1:1/nowhere"))
    assert done.returncode == 2
    assert "next:" in done.stderr


@pytest.mark.skipif(missing() is not None, reason=str(missing()))
def test_mariadb_is_shown_too() -> None:
    with MariaServer() as maria, maria.connect() as conn, conn.cursor() as cursor:
        cursor.execute("create database if not exists test")
        cursor.execute("create table test.seen (n int)")
        text = watched(maria.dsn, lambda: cursor.execute("insert into test.seen values (1), (2), (3)"))
    assert "MariaDB 10.11" in text
    assert "INSERT INTO `test` . `seen`" in text
    assert "global_status" not in text, "no statement of ours"
