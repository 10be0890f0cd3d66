"""Exact waits of a live server, compared with what the server, its clients and its memory show."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pytest
from record_help import (
    KINDS,
    changed_code,
    check_lock_wait,
    check_lock_waits,
    check_sleeps,
    loaded,
    recorded,
    rows,
    session,
)
from watch_help import own_server

from command_line import dbdyno, succeeded
from dbdyno.base.errors import TraceError
from dbdyno.bench.postgres.embedded import EmbeddedPostgres
from dbdyno.cli.trace.record import status_line
from dbdyno.trace.record.process import find_process
from dbdyno.trace.record.recording import RecordingOptions, warnings_of
from kernel_probes import require_probes
from server_binaries import binaries_of
from waiting import until


@pytest.fixture(scope="module", params=KINDS)
def engine(request: pytest.FixtureRequest) -> Iterator[EmbeddedPostgres]:
    require_probes()
    with EmbeddedPostgres(binaries=binaries_of(request.param)) as running:
        yield running


def test_each_sleep_is_waits_that_add_up_to_it_and_all_time_is_accounted_for(
    engine: EmbeddedPostgres, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    with recorded(engine, run), session(engine) as connection:
        for _ in range(20):
            connection.execute("select pg_sleep(.02)")
    check_sleeps(run, "s.text like 'select pg_sleep%'")


def test_a_lock_wait_lies_between_the_bounds_that_the_servers_clock_gives(
    engine: EmbeddedPostgres, tmp_path: Path
) -> None:
    check_lock_wait(engine, tmp_path / "run")


@pytest.mark.soak
def test_lock_waits_are_those_of_the_servers_log_to_half_a_millisecond(
    engine: EmbeddedPostgres, tmp_path: Path
) -> None:
    check_lock_waits(engine, tmp_path / "run")


def test_reads_are_those_that_the_server_counts(engine: EmbeddedPostgres, tmp_path: Path) -> None:
    run = tmp_path / "run"
    with session(engine) as connection:
        connection.execute("drop table if exists large")
        connection.execute("create table large as select g, repeat('x', 500) as pad from generate_series(1, 20000) g")
        connection.execute("create table if not exists little as select 1 as g, 'x' as pad")
        connection.execute("vacuum large")
        version = connection.info.server_version
    engine.restart()
    with recorded(engine, run), session(engine) as connection:
        # Before it the same of another table: the catalogue's blocks are read then, which EXPLAIN does not count.
        for name in ("little", "large"):
            asked = f"explain (analyze, buffers, format json) select count(*) from {name} where pad <> ''"
            explained = connection.execute(asked).fetchone()
    assert explained is not None
    blocks = explained[0][0]["Plan"]["Shared Read Blocks"]
    assert blocks > 1000
    [(reads,)] = rows(
        run,
        "select count(*) from waits w join statements s on s.statement = w.statement"
        " where s.text like 'explain%from large%' and w.event = 'IO:DataFileRead'",
    )
    if version < 170_000:
        beside = explained[0][0].get("Planning", {}).get("Shared Read Blocks", 0)
        assert blocks + beside <= reads <= blocks + beside + 20, "and some of the catalogue's"
    else:
        assert 0 < reads <= blocks, "a read of several blocks is one wait"


def test_calls_rows_and_errors_are_those_of_the_client(engine: EmbeddedPostgres, tmp_path: Path) -> None:
    run = tmp_path / "run"
    with session(engine) as connection:
        connection.execute("create table counted (a int)")
    with recorded(engine, run, RecordingOptions(cost_limit=0, details=True)), session(engine) as connection:
        for _ in range(30):
            connection.execute("insert into counted select generate_series(1, 7)", prepare=False)
        for number in range(40):
            connection.execute("select a from counted where a < %s", [number % 8], prepare=True)
        for _ in range(3):
            with contextlib.suppress(psycopg.errors.DivisionByZero):
                connection.execute("select 1 / 0")
    calls = "select count(*), sum(rows) from calls c join statements s using (statement) where kind = 'exec' and "
    assert rows(run, calls + "text like 'insert into counted%'") == [(30, 210)]
    expected = sum(max(number % 8 - 1, 0) * 30 for number in range(40))
    assert rows(run, calls + "text like 'select a from counted%'") == [(40, expected)]
    prepared = "select count(*) from calls c join statements s using (statement) where text like 'select a from%'"
    assert rows(run, prepared + " and kind = 'parse'") == [(1,)]
    assert rows(run, prepared + " and kind = 'bind'") == [(40,)]
    state = sum((ord(letter) - ord("0")) << (6 * at) for at, letter in enumerate("22012"))
    assert rows(run, "select error, count(*) from errors group by error") == [(state, 3)]


def test_without_details_a_bind_is_part_of_its_statement_and_one_that_fails_has_it_still(
    engine: EmbeddedPostgres, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    with session(engine) as connection:
        connection.execute("create table plain (a int)")
    with recorded(engine, run), session(engine) as connection:
        for number in range(10):
            connection.execute("select a from plain where a < %s", [number], prepare=True)
        for _ in range(2):
            with contextlib.suppress(psycopg.errors.InvalidTextRepresentation):
                connection.execute("select %s::int", ["no number"], prepare=True)
    kinds = "select kind, count(*) from calls c join statements s using (statement) where text like ? group by kind"
    assert sorted(rows(run, kinds, "select a from plain%")) == [("exec", 10), ("parse", 1)]
    state = sum((ord(letter) - ord("0")) << (6 * at) for at, letter in enumerate("22P02"))
    failed = "select text, count(*) from errors join statements using (statement) where error = ? group by text"
    assert rows(run, failed, state) == [("select $1::int", 2)]


def test_prepared_statements_that_take_turns_bear_each_its_own_text(engine: EmbeddedPostgres, tmp_path: Path) -> None:
    run = tmp_path / "run"
    inner = "insert into turned values (1)"
    with session(engine) as connection:
        connection.execute("create table turned (a int)")
        connection.execute(f"create function turns() returns void begin atomic {inner}; end")
    with recorded(engine, run), session(engine) as connection:
        connection.execute("set compute_query_id = on")
        for number in range(40):
            connection.execute("select 1 from pg_class where oid = 1", prepare=number > 2)
            connection.execute("select g, pg_sleep(.002) from generate_series(1, %s) g", [3], prepare=True)
            connection.execute("select turns()", prepare=number > 5)
            connection.execute(inner, prepare=True)
    asked = (
        "select text, count(distinct statement), count(*), min(rows), max(rows), min(elapsed_ns) >= 6000000"
        " from calls join statements using (statement) where kind = 'exec' and text not like 'set%' group by text"
    )
    assert sorted(rows(run, asked)) == [
        ("insert into turned values (?)", 1, 40, 1, 1, False),
        ("select ? from pg_class where oid = ?", 1, 40, 0, 0, False),
        ("select g, pg_sleep(?) from generate_series(?, $1) g", 1, 40, 3, 3, True),
        ("select turns()", 1, 40, 1, 1, False),
    ]


@pytest.mark.soak
def test_a_statement_whose_index_was_dropped_is_named_first_where_two_recordings_are_compared(
    engine: EmbeddedPostgres, tmp_path: Path
) -> None:
    with session(engine) as connection:
        connection.execute("create table looked_up as select g, g::text as t from generate_series(1, 200000) g")
        connection.execute("create index by_number on looked_up (g)")
        connection.execute("vacuum analyze looked_up")
        for name in ("with", "without"):
            with recorded(engine, tmp_path / name):
                for number in range(300 if name == "with" else 60):
                    for _ in range(3):
                        connection.execute("select pg_backend_pid()")
                    connection.execute("select t from looked_up where g = %s", [number], prepare=True)
            connection.execute("drop index if exists by_number")
    answer = dbdyno("compare", str(tmp_path / "with"), str(tmp_path / "without"))
    first = answer.stdout.partition("•")[2].partition("•")[0]
    assert "select t from looked_up" in first, answer.stdout


def test_the_profile_of_a_recording_leaves_no_time_out(engine: EmbeddedPostgres, tmp_path: Path) -> None:
    import json

    run = tmp_path / "run"
    with recorded(engine, run), loaded(engine) as failed:
        time.sleep(0.5)
    assert failed == []
    answer = succeeded("trace", "profile", str(run), "--format", "json")
    page = json.loads(answer.stdout)
    lines = page["profile"]["rows"]
    assert sum(line["total_ns"] for line in lines) == page["facts"]["elapsed_ns"]
    classes = {line["name"].lower(): line["class"] for line in lines}
    assert classes["io:walsync"] == "commit"
    assert {"cpu", "think time"} <= classes.keys()
    assert any(warning["text"].startswith("A probe costs") for warning in page["warnings"])


def test_only_sessions_of_a_database_are_recorded_where_one_is_named(engine: EmbeddedPostgres, tmp_path: Path) -> None:
    run = tmp_path / "run"
    with session(engine) as connection:
        connection.execute("create database elsewhere")
        with (
            recorded(engine, run, RecordingOptions(database="elsewhere", cost_limit=0)),
            psycopg.connect(**{**engine.conninfo(), "dbname": "elsewhere"}) as other,  # type: ignore[arg-type]
        ):
            connection.execute("select 1 as here")
            other.execute("select 1 as there")
    assert rows(run, "select distinct service from contexts") == [("elsewhere",)]
    texts = {text for (text,) in rows(run, "select text from statements")}
    assert "select ? as there" in texts
    assert "select ? as here" not in texts


@pytest.mark.long
def test_a_recorder_that_is_killed_leaves_no_probe_and_no_error(engine: EmbeddedPostgres, tmp_path: Path) -> None:
    assert changed_code(engine) == 0
    with loaded(engine, pause_s=0.001) as failed:
        words = ["trace", "record", "--exact", "--pid", str(engine.pid), "--out", "run"]
        command = [sys.executable, "-m", "dbdyno", *words]
        with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE) as recorder:
            while changed_code(engine) < 100:
                assert recorder.poll() is None, recorder.communicate()
                time.sleep(0.1)
            recorder.send_signal(signal.SIGKILL)
        while changed_code(engine) > 0:
            time.sleep(0.1)
    assert failed == []
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("mode", ["sites", "watch"])
def test_a_recording_without_an_end_ends_with_its_server(tmp_path: Path, mode: str) -> None:
    require_probes()
    run = tmp_path / "run"
    with (
        own_server(binaries_of("installed")) as own,
        recorded(own, run, RecordingOptions(cost_limit=0, mode=mode)) as it,
        session(own) as connection,
    ):
        connection.execute("select 1")
        connection.close()
        own.stop()
        begun_s = time.process_time()
        assert until(it.is_over, 60, pause_s=0.1)
        assert time.process_time() - begun_s < 1, "it waits for its end without looking for new processes all the time"
    assert any("The recording ended with the server" in warning for warning in it.warnings), it.warnings
    assert rows(run, "select count(*) > 0 from calls") == [(True,)]


@pytest.mark.soak
def test_probes_come_and_go_under_load_without_a_failed_transaction(engine: EmbeddedPostgres, tmp_path: Path) -> None:
    with loaded(engine) as failed:
        for number in range(30):
            with recorded(engine, tmp_path / f"run{number}"):
                time.sleep(0.1)
    assert failed == []
    assert changed_code(engine) == 0


@pytest.mark.soak
def test_what_is_too_dear_is_given_up_step_by_step_and_said(engine: EmbeddedPostgres, tmp_path: Path) -> None:
    with loaded(engine) as failed, recorded(engine, tmp_path / "run", RecordingOptions(cost_limit=1e-6)) as it:
        while not it.is_over():
            time.sleep(0.1)
    assert failed == []
    given_up = [one.partition("without ")[2].partition(":")[0] for one in it.report["shed"]]
    assert given_up == [missing["what"] for missing in it.report["unrecorded"]]
    assert "statements and their rows" in given_up
    assert "more than the limit" in it.report["stopped"]
    assert len([one for one in it.warnings if "--cost-limit" in one]) == len(given_up) + 1
    [(begun,)] = rows(tmp_path / "run", "select min(started_ns) from waits")
    last = "select max(c.started_ns) from calls c where c.kind = ?"
    ends = [rows(tmp_path / "run", last, kind)[0][0] - begun for kind in ("exec", "message")]
    assert ends == sorted(ends), "statements end first, calls without a statement last"
    [(waits_until,)] = rows(tmp_path / "run", "select max(started_ns) from waits where event = 'Client:ClientRead'")
    assert waits_until - begun >= ends[-1] - 50_000_000, "waits for the client were told to the end"


@pytest.mark.soak
def test_short_waits_that_are_dear_are_given_up_before_statements_and_the_profile_says_since_when(
    engine: EmbeddedPostgres, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    with recorded(engine, run, RecordingOptions(cost_limit=1e-6)) as it, session(engine) as connection:
        connection.execute("set work_mem = '64kB'")
        while not it.read_report().get("shed"):
            connection.execute("select count(*) from (select generate_series(1, 100000) order by 1 desc) s")
        time.sleep(0.2)
        for _ in range(3):
            connection.execute("select count(*) from (select generate_series(1, 100000) order by 1 desc) s")
    assert it.report["unrecorded"][0]["what"] == "waits of class IO"
    since_ns = it.report["unrecorded"][0]["from_ns"]
    spills = "select count(*), max(started_ns) from waits where event ilike 'IO:BufFile%'"
    [(spilled, until_ns)] = rows(run, spills)
    assert spilled > 1_000 and until_ns <= since_ns
    later = "select count(*) from calls join statements using (statement) where text like 'select count%'"
    assert rows(run, later + " and started_ns > ?", since_ns)[0][0] >= 3, "statements go on"
    clock = datetime.fromtimestamp(since_ns / 1e9, UTC).strftime("%H:%M:%S")
    said = dbdyno("trace", "profile", str(run)).stdout
    assert f"Waits of class IO were not recorded from {clock} UTC on" in " ".join(said.split())


def test_the_live_line_says_what_is_no_longer_recorded() -> None:
    counted = {"sessions": 2, "waits": 3, "notes": 4, "lost": 0, "probes_ns": 5, "own_cpu_ns": 6}
    told = {**counted, "elapsed_ns": 12_000_000_000, "shed": ["from 10 s on without statements and their rows: why"]}
    assert status_line(told, {}).endswith("of a core; from 10 s on without statements and their rows")
    assert status_line({**told, "shed": []}, {}).endswith("of a core")


def test_a_class_of_waits_that_was_given_up_is_a_warning_with_its_time() -> None:
    missing = [{"what": "waits of class IO", "from_ns": 1_795_603_711_000_000_000}]
    [said] = warnings_of(
        {"unrecorded": missing, "shed": ["from 5 s on without waits of class IO: process 7 spent 9 %"]}
    )
    assert said == (
        "Waits of class IO were not recorded from 10:48:31 UTC on (none shown does not mean none): process 7 spent 9 %."
        " --cost-limit sets the limit; 0 removes it."
    )


def test_what_is_no_server_is_refused_with_the_next_step(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="no server is named"):
        find_process(None, None, None)
    with pytest.raises(TraceError, match="by several options"):
        find_process("host=x", 1, None)
    with pytest.raises(TraceError, match="no running server uses this data folder"):
        find_process(None, None, tmp_path)
    with pytest.raises(TraceError, match="cannot be read"):
        find_process(None, ended_process(), None)


def test_a_process_that_is_not_postgresql_is_named_with_its_program(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "60"]) as other:
        answer = dbdyno("trace", "record", "--pid", str(other.pid), "--out", str(tmp_path / "run"))
        other.kill()
    assert answer.returncode == 2
    assert f"process {other.pid} (sleep) is not PostgreSQL\n  next: give the id" in answer.stderr
    assert not (tmp_path / "run").exists()


def test_a_data_folder_whose_server_was_killed_is_refused_with_its_place(tmp_path: Path) -> None:
    pid = ended_process()
    (tmp_path / "postmaster.pid").write_text(f"{pid}\n{tmp_path}\n")
    with pytest.raises(TraceError, match=f"no server runs in this data folder: its process {pid} has ended"):
        find_process(None, None, tmp_path)


def ended_process() -> int:
    with subprocess.Popen(["true"]) as ended:
        pass
    return ended.pid


@pytest.mark.parametrize("target", ["mariadb://root:s3cret@127.0.0.1:3306/test", "mysql://root:s3cret@db/", "mariadb"])
def test_a_recording_of_mariadb_names_the_sampler_and_no_password(target: str) -> None:
    answer = dbdyno("trace", "record", "--target", target)
    assert answer.returncode == 2
    assert "only the waits of PostgreSQL can be recorded" in answer.stderr
    assert "next: dbdyno snap watch --target m" in answer.stderr and "s3cret" not in answer.stderr


@pytest.mark.parametrize("target", ["postgresq://me:s3cret@db/app", "s3cret", "postgresql://me:s3cret@db/app?nope=1"])
def test_a_target_that_cannot_be_parsed_is_refused_without_its_text(target: str) -> None:
    answer = dbdyno("trace", "record", "--target", target)
    assert answer.returncode == 2
    assert "--target is not a connection string of PostgreSQL: " in answer.stderr and "next: write" in answer.stderr
    assert "s3cret" not in answer.stderr


def test_calls_with_other_values_are_one_statement_and_no_value_is_kept(
    engine: EmbeddedPostgres, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    with recorded(engine, run), session(engine) as connection:
        connection.execute("set compute_query_id = off")
        for number in range(5):
            connection.execute(f"select {number} + 41, 'secret {number}'", prepare=False)
    asked = (
        "select text, count(*) from calls join statements using (statement) where text like 'select ?%' group by all"
    )
    assert rows(run, asked) == [("select ? + ?, ?", 5)]
    assert not rows(run, "from statements where text like '%secret%'")
