"""The client side: messages through the proxy, compared with what clients and server report themselves."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from proxy_help import pgbench, place, proxied, through
from record_help import rows, session

from command_line import dbdyno, on_a_terminal
from dbdyno.base.errors import TraceError
from dbdyno.bench.postgres.embedded import EmbeddedPostgres
from dbdyno.trace.proxy.proxy_run import ProxyOptions, run_proxy, server_of, spin_ns
from memory_folder import roomy_memory
from together import together

TURNS, CLIENTS = 10, 2
SECRET = "c0ffee-54321"


@pytest.fixture(scope="module")
def engine() -> Iterator[EmbeddedPostgres]:
    with EmbeddedPostgres(roomy_memory()) as running:
        pgbench(running, running.conninfo(), "-i", "-q", "-s", "1")
        yield running


def words_of(run: Path) -> str:
    """Return the content of all tables of a run as text."""
    tables = ("calls", "waits", "statements", "sessions", "contexts", "errors", "files", "unread", "wire")
    return "\n".join(str(rows(run, f"select * from {table}")) for table in tables) + (run / "manifest.json").read_text()


@pytest.mark.parametrize("protocol", ["simple", pytest.param("extended", marks=pytest.mark.soak), "prepared"])
def test_pgbench_sees_the_same_server_and_every_call_is_there(
    engine: EmbeddedPostgres, tmp_path: Path, protocol: str
) -> None:
    run = tmp_path / "run"
    with session(engine) as own:
        own.execute("truncate pgbench_history")
        with proxied(engine, run) as it:
            pgbench(engine, place(engine, it), "-n", "-M", protocol, "-c", CLIENTS, "-t", TURNS)
        [(history,)] = own.execute("select count(*) from pgbench_history").fetchall()
    assert history == TURNS * CLIENTS
    found = rows(
        run,
        "select lower(split_part(text, ' ', 1)) as verb, count(*), sum(rows)::bigint from calls"
        " join statements using (statement) where kind in ('exec', 'commit')"
        " and not contains(text, 'count(*)') and not contains(text, 'pg_catalog') group by 1 order by 1",
    )
    whole = TURNS * CLIENTS
    expected = [("begin", whole, None), ("end", whole, None), ("insert", whole, whole), ("select", whole, whole)]
    assert found == [*expected, ("update", 3 * whole, 3 * whole)]
    texts = rows(run, "select text from statements where text like 'UPDATE pgbench_accounts%'")
    marks = ("?", "?") if protocol == "simple" else ("$1", "$2")
    assert texts == [(f"UPDATE pgbench_accounts SET abalance = abalance + {marks[0]} WHERE aid = {marks[1]}",)]
    parses = rows(run, "select count(*) from calls where kind = 'parse'")[0][0]
    assert (parses > 0) == (protocol != "simple")
    if protocol == "simple":
        shown = dbdyno("trace", "sql", run, "--top", "0").stdout
        assert re.search(rf"^commit +{whole} ", shown, re.M) and "lob" not in shown, "it was told as a lob's call"
    if protocol == "extended":
        assert parses == rows(run, "select count(*) from calls where kind = 'bind'")[0][0]


def test_all_of_a_sessions_time_is_a_calls_or_between(engine: EmbeddedPostgres, tmp_path: Path) -> None:
    run = tmp_path / "run"
    with proxied(engine, run) as it, through(engine, it) as connection:
        for _ in range(3):
            connection.execute("select pg_sleep(%s)", [0.03])
            time.sleep(0.02)
    open_ends = "select name from sessions where elapsed_ns <> call_ns + between_ns or call_ns <> wait_inside_ns"
    assert rows(run, open_ends) == []
    [(sleeps, shortest)] = rows(
        run, "select count(*), min(elapsed_ns) from calls join statements using (statement) where kind = 'exec'"
    )
    assert (sleeps, shortest >= 30_000_000) == (3, True)
    [(thought,)] = rows(run, "select sum(elapsed_ns) from waits where think")
    assert thought >= 60_000_000
    assert dbdyno("trace", "profile", run).stdout.count("think time") == 1


def test_rows_and_bytes_of_large_results_pass_in_a_stream(engine: EmbeddedPostgres, tmp_path: Path) -> None:
    run = tmp_path / "run"
    with proxied(engine, run) as it, through(engine, it) as connection:
        [(long,)] = connection.execute("select repeat('x', 20000000)").fetchall()
        assert long == "x" * 20_000_000
        many = connection.execute("select g, repeat('y', 100) from generate_series(1, 20000) g").fetchall()
        assert many[-1] == (20_000, "y" * 100)
    found = rows(
        run,
        "select c.rows, b.received_bytes from calls c join client_calls b using (session, call)"
        " where kind = 'exec' order by call",
    )
    assert found[0][0] == 1
    assert 20_000_000 < found[0][1] < 20_001_000
    assert found[1][0] == 20_000


def test_a_client_that_asks_row_by_row_is_named_by_its_statement_where_two_captures_are_compared(
    engine: EmbeddedPostgres, tmp_path: Path
) -> None:
    rows_each, times = 40, 8
    with proxied(engine, tmp_path / "together") as it, through(engine, it) as connection:
        for _ in range(times):
            connection.execute("select g from generate_series(1, %s::int) g", [rows_each]).fetchall()
    with proxied(engine, tmp_path / "apart") as it, through(engine, it) as connection:
        for number in range(times * rows_each):
            connection.execute("select g from generate_series(%s::int, %s::int) g", [number, number]).fetchall()
    shown = " ".join(dbdyno("compare", tmp_path / "together", tmp_path / "apart").stdout.split())
    assert "An execution of the client" not in shown, "the rows are the same, so the work is"
    causes = shown.partition("In two numbers")[0].split("•")[1:3]  # the first is a slow login on a busy machine
    assert any("generate_series($1::int, $2" in one and "only in apart, executed 320 times" in one for one in causes), (
        shown
    )


def test_a_copy_passes_both_ways(engine: EmbeddedPostgres, tmp_path: Path) -> None:
    run = tmp_path / "run"
    with proxied(engine, run) as it, through(engine, it) as connection:
        connection.execute("create temp table copied (a int, b text)")
        with connection.cursor().copy("copy copied from stdin") as copy:
            for number in range(2000):
                copy.write_row((number, SECRET))
        with connection.cursor().copy("copy copied to stdout") as copy:
            assert sum(1 for _ in copy.rows()) == 2000
        assert connection.execute("select sum(a)::int from copied").fetchall() == [(1_999_000,)]
    found = rows(
        run,
        "select text, rows from calls join statements using (statement) where text like 'copy%' order by call",
    )
    assert found == [("copy copied from stdin", 2000), ("copy copied to stdout", 2000)]
    assert SECRET not in words_of(run)


def test_an_error_leaves_its_sqlstate_and_no_value(engine: EmbeddedPostgres, tmp_path: Path) -> None:
    run = tmp_path / "run"
    with proxied(engine, run) as it, through(engine, it) as connection:
        connection.execute("create temp table once (a text primary key)")
        connection.execute("insert into once values (%s)", [SECRET])
        with pytest.raises(psycopg.errors.UniqueViolation, match=SECRET):
            connection.execute("insert into once values (%s)", [SECRET])
        with pytest.raises(psycopg.errors.UndefinedTable):
            connection.execute(f"select '{SECRET}' from nowhere")
        assert connection.execute("select count(*) from once").fetchall() == [(1,)]
    packed = [sum((ord(state[at]) - 48 & 0x3F) << 6 * at for at in range(5)) for state in ("23505", "42P01")]
    assert rows(run, "select error from errors order by call") == [(packed[0],), (packed[1],)]
    words = words_of(run)
    assert SECRET not in words
    assert engine.password not in words


def test_a_cancel_request_reaches_its_session(engine: EmbeddedPostgres, tmp_path: Path) -> None:
    run = tmp_path / "run"
    with proxied(engine, run) as it, through(engine, it) as connection, session(engine) as own:
        pid = connection.info.backend_pid
        raised: list[BaseException] = []

        def wait() -> None:
            try:
                connection.execute("select pg_sleep(60)")
            except psycopg.Error as error:
                raised.append(error)

        asleep = "select count(*) from pg_stat_activity where pid = %s and wait_event = 'PgSleep'"
        with together(wait):
            while own.execute(asleep, [pid]).fetchone() == (0,):
                pass
            connection.cancel()
    assert isinstance(raised[0], psycopg.errors.QueryCanceled)
    assert it.report["cancels"] == 1
    assert rows(run, "select process from sessions") == [(str(pid),)]


def test_a_session_that_is_cut_is_told_and_others_go_on(engine: EmbeddedPostgres, tmp_path: Path) -> None:
    run = tmp_path / "run"
    with proxied(engine, run) as it, through(engine, it) as other, session(engine) as own:
        cut = through(engine, it)
        pid = cut.info.backend_pid
        cut.pgconn.send_query(b"select pg_sleep(60)")
        cut.pgconn.flush()
        asleep = "select count(*) from pg_stat_activity where pid = %s and wait_event = 'PgSleep'"
        while own.execute(asleep, [pid]).fetchone() == (0,):
            pass
        sock = socket.socket(fileno=os.dup(cut.fileno()))
        sock.shutdown(socket.SHUT_RDWR)
        sock.close()
        cut.close()
        while it.read_report().get("broken") != 1:
            time.sleep(0.01)
        assert "the client broke off" in it.report["last"]
        own.execute("select pg_terminate_backend(%s)", [pid])
        killed = through(engine, it)
        own.execute("select pg_terminate_backend(%s)", [killed.info.backend_pid])
        with pytest.raises(psycopg.OperationalError, match="terminating connection"):
            killed.execute("select 1")
        killed.close()
        assert other.execute("select 1").fetchall() == [(1,)]
    failed = rows(
        run,
        "select text from errors e join calls c using (call) left join statements s"
        " on s.statement = c.statement order by call",
    )
    assert failed[0] == ("select pg_sleep(?)",)


def test_clients_that_speak_something_else_are_told_so(engine: EmbeddedPostgres, tmp_path: Path) -> None:
    with proxied(engine, tmp_path / "run") as it, through(engine, it) as connection:
        host, _, port = it.address.rpartition(":")
        with socket.create_connection((host, int(port))) as rubbish:
            rubbish.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert b"08P01" in rubbish.recv(4096)
        with socket.create_connection((host, int(port))) as silent:
            silent.sendall(b"\0\0")
        with pytest.raises(psycopg.OperationalError, match="does not support SSL"):
            through(engine, it, sslmode="require")
        assert connection.execute("select 1").fetchall() == [(1,)]
    assert it.report["rubbish"] == 1


def test_a_server_that_is_not_there_is_told_at_once(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    wanted = ProxyOptions("127.0.0.1:0", ("127.0.0.1", port))
    with pytest.raises(TraceError, match=f"no server answers at 127.0.0.1:{port}"), run_proxy(wanted, tmp_path / "run"):
        pass
    assert not list(tmp_path.iterdir())


@pytest.mark.soak
def test_a_server_that_went_away_is_told_to_clients(tmp_path: Path) -> None:
    with EmbeddedPostgres() as engine, proxied(engine, tmp_path / "run") as it:
        through(engine, it).close()
        engine.stop()
        with pytest.raises(psycopg.OperationalError, match="the server cannot be reached"):
            through(engine, it)
    assert it.report["unreachable"] == 1


def test_a_proxy_that_looks_for_the_next_message_sleeps_when_none_comes(
    engine: EmbeddedPostgres, tmp_path: Path
) -> None:
    with proxied(engine, tmp_path / "run", spin_ns=spin_ns("10ms")) as it, through(engine, it) as connection:
        assert [connection.execute("select %s::int", [at]).fetchone() for at in range(20)] == [
            (at,) for at in range(20)
        ]
        time.sleep(0.05)
        before_s = time.process_time()
        time.sleep(0.3)
        assert time.process_time() - before_s < 0.1, "nothing came, so nothing is looked for"
    with pytest.raises(TraceError, match="too long"):
        spin_ns("20ms")
    assert spin_ns("off") == 0
    assert spin_ns("auto") is None


@pytest.mark.parametrize("text", ["", "db:port", ":5432", "db:0", "db:70000"])
def test_a_place_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(TraceError, match="is not the address of a server"):
        server_of(text)


@pytest.mark.parametrize("text", ["postgresql://me:s3cret@db/app", "mariadb://me:s3cret@db/", "me:s3cret@db:5432"])
def test_a_proxy_for_a_connection_string_is_refused_without_its_password(text: str) -> None:
    with pytest.raises(TraceError, match="a connection string is not the address of a server") as refused:
        server_of(text)
    assert "s3cret" not in str(refused.value)


def test_a_place_may_be_a_name_an_address_or_a_folder() -> None:
    assert [server_of(text) for text in ("db", "db:1", "[::1]:2", "::1", "/run/x:3")] == [
        ("db", 5432),
        ("db", 1),
        ("::1", 2),
        ("::1", 5432),
        ("/run/x", 3),
    ]


def test_a_signal_ends_it_with_complete_evidence(engine: EmbeddedPostgres, tmp_path: Path) -> None:
    run = tmp_path / "run"
    words = [
        "trace",
        "proxy",
        "--listen",
        "127.0.0.1:0",
        "--target",
        f"{engine.socket_dir}:{engine.port}",
        "--out",
        run,
    ]
    with subprocess.Popen(
        [sys.executable, "-m", "dbdyno", *map(str, words)], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        told = process.stderr.readline()
        port = told.split("connect to ")[1].split(";")[0].rpartition(":")[2]
        where: dict[str, Any] = {**engine.conninfo(), "host": "127.0.0.1", "port": port, "sslmode": "disable"}
        with psycopg.connect(**where, autocommit=True) as connection:
            connection.execute("select 1")
            process.send_signal(signal.SIGINT)
            out, err = process.communicate()
    assert (process.returncode, f"{run}: 2 calls of 1 sessions" in out) == (0, True), err
    assert rows(run, "select kind from calls order by call") == [("connect",), ("exec",)]


def test_the_line_of_figures_takes_its_own_place_on_a_terminal(engine: EmbeddedPostgres, tmp_path: Path) -> None:
    to = f"{engine.socket_dir}:{engine.port}"
    words = ("trace", "proxy", "--listen", "127.0.0.1:0", "--target", to, "--for", "1500ms", "--out", tmp_path / "run")
    shown = on_a_terminal(*words)
    assert b"\r\x1b[K1 s: 0 sessions, 0 calls" in shown
    assert b"\\x1b" not in shown
    assert b"no client connected" in shown
