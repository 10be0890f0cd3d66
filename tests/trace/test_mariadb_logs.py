"""Captures from the logs and performance_schema of a real MariaDB: the statements that clients sent, in order."""

from __future__ import annotations

import gzip
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from log_help import Sent, sent
from record_help import rows

from command_line import dbdyno, succeeded
from mariadb_server import MariaServer, missing
from waiting import until

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))

REMEMBERS = [
    f"--performance-schema-consumer-events-statements-{which}=ON" for which in ("current", "history", "history-long")
]
LOGS = ["--slow-query-log=1", "--slow-query-log-file=slow.log", "--long-query-time=0", "--general-log=1"]
SENT = (
    "insert into kept values (1, 'it''s'), (2, \"a\\\"b\"), (3, 'größe')",
    "select *\n\tfrom kept # all\n where id = 1",
    "begin",
    "update kept set s = 'x;\ny' where id = 2",
    "commit",
    "# Time: is not that of an entry\nselect 2",
    "select * from `kept` where s = 'SET timestamp=1;' -- no end",
    "call two_rows()",
    "use other",
    "select count(*) from shop.kept",
)
FAILS = {"select nothing from nowhere": "42S02", "insert into shop.kept values (1, 'twice')": "23000"}
PREPARED = "select s from shop.kept where s = ?"


def talk(connection: Any) -> None:
    """Send all statements, then those that fail."""
    with connection.cursor() as cursor:
        for sql in SENT:
            cursor.execute(sql)
            while cursor.nextset():
                pass
        for sql in FAILS:
            with pytest.raises(Exception, match=r"nowhere|Duplicate"):
                cursor.execute(sql)


def prepare(connection: Any, sql: str, *values: str) -> None:
    """Execute a statement with parameters by the binary protocol, which the driver does not support."""
    connection._execute_command(0x16, sql)
    number, columns, parameters = struct.unpack_from("<IHH", connection._read_packet()._data, 1)
    for _ in range(sum(count + 1 for count in (parameters, columns) if count)):
        connection._read_packet()
    for value in values:
        head = struct.pack("<IBI", number, 0, 1) + b"\0\1" + struct.pack("<HB", 0xFD, len(value.encode()))
        connection._execute_command(0x17, head + value.encode())
        connection._read_packet()
        ends = 0
        while ends < 2:
            ends += connection._read_packet()._data[:1] == b"\xfe"


@pytest.fixture(scope="module")
def talked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[MariaServer, Path]]:
    """A server on which sessions have worked, and a folder with its logs."""
    folder = tmp_path_factory.mktemp("logs")
    with MariaServer([*LOGS, "--general-log-file=general.log", *REMEMBERS]) as server:
        with server.connect() as own, own.cursor() as cursor:
            cursor.execute("create database shop")
            cursor.execute("create database other")
            cursor.execute("create table shop.kept (id int primary key, s varchar(100))")
            cursor.execute("create procedure shop.two_rows() begin select 1; select 2; end")
        first, second = server.connect(database="shop"), server.connect(database="shop")
        talk(first)
        prepare(second, PREPARED, "x", "größe")
        with server.connect(database="other") as third, third.cursor() as cursor:
            cursor.execute("select 3")
        first.close()
        second.close()
        until(lambda: (server.data / "general.log").read_bytes().count(b"Quit") >= 4, 20)
        until(lambda: b"select 3" in (server.data / "slow.log").read_bytes(), 20)  # the others ended before
        for name in ("slow.log", "general.log"):
            (folder / name).write_bytes((server.data / name).read_bytes())
        yield server, folder


FIRST = [Sent(sql) for sql in (*SENT, *FAILS)]
BOUND = [Sent(PREPARED.replace("?", f"'{value}'")) for value in ("x", "größe")]
THIRD = [Sent("select 3")]


def texts(run: Path) -> list[list[Sent]]:
    """Return what each session sent, without the driver's statements and the session that created the tables."""
    sessions = [[one for one in session if not one.sql.startswith("SET NAMES")] for session in sent(run)]
    return sorted((one for one in sessions if one and not one[0].sql.startswith("create")), key=repr)


def imported(log: Path, run: Path, *words: str) -> str:
    """Import a log; return the notes."""
    done = succeeded("trace", "import", "--log", log, "--out", run, *words)
    return done.stderr


@pytest.mark.parametrize("name", ["slow.log", "general.log"])
def test_a_log_has_the_statements_the_order_and_the_texts_that_clients_sent(
    talked: tuple[MariaServer, Path], tmp_path: Path, name: str
) -> None:
    notes = imported(talked[1] / name, tmp_path / "run")
    assert texts(tmp_path / "run") == sorted([FIRST, BOUND, THIRD], key=repr)
    assert rows(tmp_path / "run", "select count(*) from sessions") == [(5,)]
    assert ("has no durations" in notes) == (name == "general.log")
    assert "no prefix" not in notes and "do not say which statements failed" in notes
    profile = dbdyno("trace", "profile", tmp_path / "run")
    assert "MariaDB" in profile.stdout, profile.stderr
    [(begin, end)] = rows(tmp_path / "run", "select min(started_ns), max(started_ns) from calls")
    second = 1e9  # the logs' times are whole seconds, and calls within one follow each other
    assert (talked[1] / name).stat().st_mtime_ns - 300e9 < begin <= end < time.time_ns() + second


def test_a_slow_log_has_the_durations(talked: tuple[MariaServer, Path], tmp_path: Path) -> None:
    imported(talked[1] / "slow.log", tmp_path / "run")
    logged = (talked[1] / "slow.log").read_text().split("# Query_time: ")[1:]
    seconds = sum(float(one.split()[0]) for one in logged)
    [(count, elapsed_ns)] = rows(
        tmp_path / "run", "select count(*), sum(elapsed_ns) from calls where kind <> 'connect'"
    )
    assert count == len(logged)
    assert elapsed_ns == pytest.approx(seconds * 1e9, rel=1e-6)


def test_what_a_server_remembers_has_failures_too(talked: tuple[MariaServer, Path], tmp_path: Path) -> None:
    done = succeeded("trace", "import", "--target", talked[0].dsn, "--out", tmp_path / "run")
    failed = [Sent(sql, state=state) for sql, state in FAILS.items()]
    assert texts(tmp_path / "run") == sorted([[*(Sent(sql) for sql in SENT), *failed], THIRD], key=repr)
    assert "2 executions of prepared statements" in done.stderr or "1 executions of prepared" in done.stderr
    assert rows(tmp_path / "run", "select count(*) from sessions where name like '%@shop)'") == [(2,)]


def test_statements_have_no_literals_of_mariadb(talked: tuple[MariaServer, Path], tmp_path: Path) -> None:
    """Double quotes and backslashes are those of MariaDB: no value reaches the texts of statements."""
    imported(talked[1] / "slow.log", tmp_path / "run")
    found = [text for (text,) in rows(tmp_path / "run", "select text from statements")]
    assert "insert into kept values (?, ?), (?, ?), (?, ?)" in found
    assert not [text for text in found if "größe" in text or "twice" in text]


def test_one_database_is_kept(talked: tuple[MariaServer, Path], tmp_path: Path) -> None:
    imported(talked[1] / "slow.log", tmp_path / "run", "--database", "other")
    assert texts(tmp_path / "run") == sorted([FIRST[-4:], THIRD], key=repr)


def test_a_log_that_is_cut_or_compressed_keeps_the_rest(talked: tuple[MariaServer, Path], tmp_path: Path) -> None:
    whole = (talked[1] / "slow.log").read_bytes()
    cut = tmp_path / "cut.log.gz"
    cut.write_bytes(gzip.compress(whole[whole.index(b"Schema: ") : whole.rindex(b"select 3") + 6]))
    notes = imported(cut, tmp_path / "run")
    assert "the log is cut within the record" in notes
    assert texts(tmp_path / "run") == sorted([FIRST, BOUND], key=repr)


def test_other_files_are_refused_with_what_to_name(talked: tuple[MariaServer, Path], tmp_path: Path) -> None:
    wrong = tmp_path / "mariadb.err"
    wrong.write_text("2026-11-29  1:56:32 0 [Note] mariadbd: ready for connections.\n")
    done = dbdyno("trace", "import", "--log", wrong, "--out", tmp_path / "run")
    assert (done.returncode, "MariaDB's slow or general log" in done.stderr) == (2, True), done.stderr
    postgres = tmp_path / "postgresql.log"
    postgres.write_text("2026-11-21 00:59:57.437 UTC [28] LOG:  duration: 0.1 ms  statement: select 1\n")
    done = dbdyno("trace", "import", "--log", postgres, talked[1] / "slow.log", "--out", tmp_path / "run")
    assert (done.returncode, "name only the logs of one server" in done.stderr) == (2, True), done.stderr
    assert not (tmp_path / "run").exists()


def test_a_folder_with_both_logs_is_read_once(talked: tuple[MariaServer, Path], tmp_path: Path) -> None:
    notes = imported(talked[1], tmp_path / "run")
    assert "general.log is a general log without durations; it was not read" in notes
    assert texts(tmp_path / "run") == sorted([FIRST, BOUND, THIRD], key=repr)


def test_a_server_that_remembers_nothing_is_told_what_to_switch_on(tmp_path: Path) -> None:
    done = dbdyno("trace", "import", "--target", "mariadb://me@127.0.0.1:1/x", "--out", tmp_path / "run")
    assert (done.returncode, "check address" in done.stderr) == (2, True), done.stderr
    done = dbdyno("trace", "import", "--target", "mariadb://me@h/x", "--log", "x.log", "--out", tmp_path / "run")
    assert (done.returncode, "--log has no effect" in done.stderr) == (2, True), done.stderr
