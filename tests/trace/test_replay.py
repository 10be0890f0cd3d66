"""Captures are replayed: the same sums, the same answers, and every difference is reported."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

import psycopg
import pytest
from proxy_help import asked, database, execute, pgbench, place, proxied, through, twins
from psycopg.conninfo import make_conninfo
from record_help import recorded, rows

from command_line import dbdyno, succeeded
from dbdyno.bench.postgres.embedded import EmbeddedPostgres
from dbdyno.bench.postgres.replay import DIFFERENCES
from dbdyno.trace.proxy.replay import ReplayOptions, sentences
from kernel_probes import require_probes

SUMS = """
select (select sum(abalance) from pgbench_accounts)::bigint, (select sum(tbalance) from pgbench_tellers)::bigint,
       (select sum(bbalance) from pgbench_branches)::bigint, (select sum(delta) from pgbench_history)::bigint,
       (select count(*) from pgbench_history)
"""
SECRET = "not for the run"


@pytest.mark.parametrize(
    ("protocol", "order"),
    [("prepared", "commit"), pytest.param("simple", "none", marks=pytest.mark.soak)],
)
def test_a_captured_tpcb_leaves_the_same_sums_in_a_fresh_copy(
    engine: EmbeddedPostgres, tmp_path: Path, protocol: str, order: str
) -> None:
    first, copy = twins(engine, "first")
    for where in (first, copy):
        pgbench(engine, where, "-i", "-q", "-s", "1")
    run = tmp_path / "run"
    with proxied(engine, run, binds=True) as it:
        pgbench(engine, {**place(engine, it), "dbname": "first"}, "-n", "-M", protocol, "-c", 4, "-j", 2, "-t", 25)
    words = ("--writes", "--speed", "max", "--order", order)
    done = succeeded("trace", "replay", run, "--target", make_conninfo("", **copy), *words)
    assert "Same answers" in done.stdout
    assert asked(first, SUMS) == asked(copy, SUMS)
    assert asked(copy, SUMS)[0][4] == 100


def test_without_leave_to_write_nothing_is_written_and_that_is_told(engine: EmbeddedPostgres, tmp_path: Path) -> None:
    copy = database(engine, "careful")
    run = tmp_path / "run"
    with proxied(engine, run, binds=True) as it, through(engine, it) as connection:
        connection.execute("create table written (a int)")
        connection.execute("drop table written")
    done = dbdyno("trace", "replay", run, "--target", make_conninfo("", **copy), "--speed", "max")
    assert (done.returncode, "--writes" in done.stdout, "25006" in done.stdout) == (1, True, True), done.stdout
    with proxied(engine, tmp_path / "lifts", binds=True) as it, through(engine, it) as connection:
        connection.execute("begin read  write")
        connection.execute("rollback")
    done = dbdyno("trace", "replay", tmp_path / "lifts", "--target", make_conninfo("", **copy))
    assert (done.returncode, "overrides read-only" in done.stderr) == (2, True), done.stderr


def test_a_capture_without_messages_is_refused(engine: EmbeddedPostgres, tmp_path: Path) -> None:
    with proxied(engine, tmp_path / "run") as it, through(engine, it) as connection:
        connection.execute("select 1")
    where = ("--target", make_conninfo("", **engine.conninfo()))
    done = dbdyno("trace", "replay", tmp_path / "run", *where)
    assert (done.returncode, "--binds" in done.stderr) == (2, True), done.stderr
    (tmp_path / "run").chmod(0o777)
    done = dbdyno("trace", "replay", tmp_path / "run", *where)
    assert (done.returncode, "can be written by others" in done.stderr) == (2, True), done.stderr


@pytest.mark.parametrize(
    ("writes", "state"),
    [
        (False, "read-only: the database is unchanged"),
        (True, "what the 3 round trips wrote; transactions that were open"),
    ],
)
def test_a_replay_that_was_cut_says_what_it_leaves_and_what_to_do(writes: bool, state: str) -> None:
    counted = dict.fromkeys([*DIFFERENCES, "outside", "ids", "late_keys", "same", "late_ns"], 0) | {"unmapped": []}
    told = {**counted, "turns": 3, "turns_all": 9, "sessions": 2, "then_ns": 9, "elapsed_ns": 3, "stopped": True}
    said = sentences(told, ReplayOptions(writes=writes))
    assert "it was stopped before its end" in said[0]
    [cut] = [one for one in said if state in one]
    assert "begin again" in cut


def test_generated_keys_are_those_of_now_and_what_differs_is_told(engine: EmbeddedPostgres, tmp_path: Path) -> None:
    tables = (
        "create table parent (id int generated always as identity primary key, name text)",
        "create table child (parent int references parent, note text)",
    )
    _, copy = twins(engine, "keyed", *tables, "insert into parent (name) values ('extra')")
    run = tmp_path / "run"
    execute(copy, "select setval(pg_get_serial_sequence('parent', 'id'), 5000)")
    with proxied(engine, run, binds=True) as it, through(engine, it, dbname="keyed") as connection:
        for name in ("ann", "bob"):
            for binary in (False, True):
                cursor = connection.cursor(binary=binary)
                row = cursor.execute("insert into parent (name) values (%s) returning id", [name]).fetchone()
                assert row is not None
                cursor.execute("insert into child values (%s, %s)", [row[0], name])
                cursor.execute(f"update child set note = note || '!' where parent = {row[0]}")
        connection.execute("select name from parent")
        connection.execute(f"select 'the password is {SECRET}'")
    execute(copy, "insert into parent (name) values ('one more')")
    done = dbdyno("trace", "replay", run, "--target", make_conninfo("", **copy), "--writes", "--speed", "max")
    answer = asked(copy, "select p.name, c.note from child c join parent p on p.id = c.parent order by p.id")
    assert answer == [("ann", "ann!"), ("ann", "ann!"), ("bob", "bob!"), ("bob", "bob!")], done.stdout
    assert done.returncode == 1
    assert "SELECT 5 then, SELECT 6 now: select name from parent" in done.stdout
    assert "4 generated keys differ now (public.parent.id: 4); 8 values" in done.stdout
    assert "1 round trips were incomplete" in done.stdout
    assert SECRET not in str(rows(run, "select * from wire"))


def test_numbers_that_are_no_keys_and_look_like_them_are_sent_as_captured(
    engine: EmbeddedPostgres, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    place, copy = twins(engine, "lines", "create table line (id serial primary key, pieces int)")
    execute(copy, "alter sequence line_id_seq restart with 1001")
    with proxied(engine, run, binds=True) as it, through(engine, it, dbname="lines") as connection:
        for pieces in (3, 1, 7, 1):
            connection.execute("insert into line (pieces) values (%s) returning id", [pieces])
    done = dbdyno("trace", "replay", run, "--target", make_conninfo("", **copy), "--writes", "--speed", "max")
    assert "4 generated keys differ now (public.line.id: 4); 0 values" in done.stdout
    assert asked(copy, "select pieces from line order by id") == asked(place, "select pieces from line order by id")


def test_a_report_goes_to_a_file_whose_suffix_names_its_form(engine: EmbeddedPostgres, tmp_path: Path) -> None:
    run, dsn = tmp_path / "run", make_conninfo("", **engine.conninfo())
    with proxied(engine, run, binds=True) as it, through(engine, it) as connection:
        connection.execute("select 1")
    words = ("trace", "replay", run, "--target", dsn, "--speed", "max")
    done = dbdyno(*words, "--output", tmp_path / "told.json")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert json.loads((tmp_path / "told.json").read_text())["same"] == 1
    assert dbdyno(*words, "-o", tmp_path / "told.txt").returncode == 0
    assert (tmp_path / "told.txt").read_text().startswith("Same answers: 1 statements")
    assert json.loads(dbdyno(*words, "--json").stdout)["same"] == 1
    refused = dbdyno(*words, "-o", tmp_path / "told.png")
    assert (refused.returncode, "write to one of .txt, .json" in refused.stderr) == (2, True), refused.stderr


def test_what_the_server_did_meanwhile_is_told(engine: EmbeddedPostgres, tmp_path: Path) -> None:
    run, filled = tmp_path / "run", "create table filled as select i, repeat('x', 90) from generate_series(1, 40000) i"
    _, copy = twins(engine, "work", filled)
    with proxied(engine, run, binds=True) as it, through(engine, it, dbname="work") as connection:
        connection.execute("set work_mem = '64kB'")
        connection.execute("insert into filled select * from filled order by 2, 1 limit 20000")
        connection.execute("checkpoint")
        connection.execute("select pg_sleep(1)")
    dsn = make_conninfo("", **copy)
    done = dbdyno("trace", "replay", run, "--target", dsn, "--writes", "--format", "json")
    server = json.loads(done.stdout)["server"]
    assert server["wal_bytes"] > 2_000_000
    assert server["temp_bytes"] > 1_000_000
    assert (server["temp_files"] >= 1, server["checkpoints_requested"], server["missing"]) == (True, 1, {})
    assert server["waits"]["Timeout"] >= 3, "samples of a session that sleeps for a second"
    said = " ".join(dbdyno("trace", "replay", run, "--target", dsn, "--writes").stdout.split())
    assert "MiB of WAL" in said
    assert "1 requested checkpoints" in said
    assert "Timeout" in said


def test_what_the_role_may_not_see_of_the_server_is_named(engine: EmbeddedPostgres, tmp_path: Path) -> None:
    run, copy = tmp_path / "run", database(engine, "hidden")
    with proxied(engine, run, binds=True) as it, through(engine, it) as connection:
        connection.execute("select 1")
    with psycopg.connect(**copy, autocommit=True) as owner:
        owner.execute("drop role if exists plain")
        owner.execute("create role plain login password 'plain'")
        owner.execute("revoke execute on function pg_current_wal_insert_lsn() from public")
        owner.execute("revoke select on pg_stat_bgwriter, pg_stat_database from public")
        if owner.info.server_version >= 170000:
            owner.execute("revoke select on pg_stat_checkpointer from public")
    dsn = make_conninfo("", **{**copy, "user": "plain", "password": "plain"})
    done = succeeded("trace", "replay", run, "--target", dsn, "--speed", "max")
    for what in ("WAL", "temporary files", "checkpoints"):
        assert f"Not known for the target: {what} (permission denied" in done.stdout


def test_differences_are_counted_by_statement_also_of_prepared_ones(engine: EmbeddedPostgres, tmp_path: Path) -> None:
    run = tmp_path / "run"
    place, copy = twins(engine, "counted", "create table few (a int)")
    for where, rows_ in ((place, 9), (copy, 5)):
        execute(where, f"insert into few select generate_series(1, {rows_})")
    with proxied(engine, run, binds=True) as it, through(engine, it, dbname="counted") as connection:
        for number in range(9):
            connection.execute("select a from few where a > %s", [number], prepare=True)
        connection.execute("select a from few where a = 7")
    execute(copy, "alter table few rename a to b", "alter table few add a int", "update few set a = b")
    done = dbdyno("trace", "replay", run, "--target", make_conninfo("", **copy), "--speed", "max", "--json")
    assert [(one["statement"], one["rows_differ"]) for one in json.loads(done.stdout)["differing"]] == [
        ("select a from few where a > $1", 9),
        ("select a from few where a = ?", 1),
    ]


def test_think_times_are_kept_and_scaled(engine: EmbeddedPostgres, tmp_path: Path) -> None:
    run = tmp_path / "run"
    with proxied(engine, run, binds=True) as it, through(engine, it) as connection:
        connection.execute("select 1")
        [(slept,)] = asked(engine.conninfo(), "select clock_timestamp() - now() from pg_sleep(.4)")
        connection.execute("select 2")
    assert slept.total_seconds() >= 0.4
    dsn = make_conninfo("", **engine.conninfo())
    told = {
        speed: json.loads(dbdyno("trace", "replay", run, "--target", dsn, "--speed", speed, "--format", "json").stdout)
        for speed in ("1", "2")
    }
    assert told["1"]["elapsed_ns"] >= 400_000_000
    assert told["2"]["elapsed_ns"] >= 200_000_000
    assert told["1"]["same"] == told["2"]["same"] == 2


def test_a_part_of_a_capture_is_its_whole_transactions_after_what_set_their_sessions_up(
    engine: EmbeddedPostgres, tmp_path: Path
) -> None:
    run, copy = tmp_path / "run", database(engine, "part")
    execute(engine.conninfo(), "drop table if exists only_then")
    with proxied(engine, run, binds=True) as it, through(engine, it) as connection:
        connection.execute("set work_mem = '7MB'")
        connection.execute("create table only_then ()")
        asked(engine.conninfo(), "select pg_sleep(2)")  # what precedes it may take long on a busy machine
        connection.execute("begin")
        connection.execute("select 1 / (current_setting('work_mem') = '7MB')::int")
        connection.execute("commit")
    dsn = make_conninfo("", **copy)
    words = ("trace", "replay", run, "--target", dsn, "--writes", "--from", "1s")
    done = dbdyno(*words, "--format", "json")
    told = json.loads(done.stdout)
    assert (told["turns"], told["set_up"], told["outside"], told["fails_now"]) == (4, 1, 2, 0), done.stdout
    assert asked(copy, "select to_regclass('only_then')") == [(None,)]
    assert (
        "2 round trips of transactions that did not begin in this part were left out; 1 of them"
        in dbdyno(*words).stdout
    )
    nothing = dbdyno("trace", "replay", run, "--target", dsn, "--from", "1h")
    assert nothing.returncode == 2
    assert "no transaction began in this part of the capture, which lasts 2" in nothing.stderr
    assert "is not before" in dbdyno("trace", "replay", run, "--target", dsn, "--from", "2s", "--to", "1s").stderr


def test_a_session_that_the_target_ends_says_by_which_setting(engine: EmbeddedPostgres, tmp_path: Path) -> None:
    """It said "Broken pipe": the copy had an idle_session_timeout that the captured server had not."""
    run = tmp_path / "run"
    _, copy = twins(engine, "idle")
    execute(copy, "alter database idle_copy set idle_session_timeout = '200ms'")
    with proxied(engine, run, binds=True) as it, through(engine, it, dbname="idle") as connection:
        connection.execute("select 1")
        time.sleep(0.6)
        connection.execute("select 2")
    done = dbdyno("trace", "replay", run, "--target", make_conninfo("", **copy))
    assert done.returncode == 1
    assert "round trip 2: the server ended the session, SQLSTATE 57P05 (idle_session_timeout of the t" in done.stdout


def test_a_statement_that_was_cancelled_then_is_told_as_that(engine: EmbeddedPostgres, tmp_path: Path) -> None:
    run, (_, copy) = tmp_path / "run", twins(engine, "cancel")
    with proxied(engine, run, binds=True) as it, through(engine, it, dbname="cancel") as connection:
        threading.Timer(0.2, connection.cancel).start()
        with pytest.raises(psycopg.errors.QueryCanceled):
            connection.execute("select pg_sleep(1.5)")
    done = dbdyno("trace", "replay", run, "--target", make_conninfo("", **copy))
    assert "SQLSTATE 57014 (cancelled; a replay cancels nothing itself) then, SELECT 1 now" in done.stdout


def test_both_sides_of_a_call_are_laid_together(engine: EmbeddedPostgres, tmp_path: Path) -> None:
    require_probes()
    wire, server = tmp_path / "wire", tmp_path / "server"
    with recorded(engine, server), proxied(engine, wire) as it, through(engine, it) as connection:
        for _ in range(5):
            connection.execute("select pg_sleep(.05)")
    done = succeeded("trace", "join", wire, server)
    assert "most of it at the server" in " ".join(done.stdout.split())
    assert "Timeout:PgSleep" in done.stdout
    told = json.loads(dbdyno("trace", "join", wire, server, "--format", "json").stdout)
    [sleeps] = [row for row in told["statements"] if "pg_sleep" in row["text"]]
    assert sleeps["calls"] == 5
    assert 250_000_000 <= sleeps["server_ns"] <= sleeps["client_ns"]
    assert sleeps["client_ns"] == sleeps["server_ns"] + sleeps["between_ns"]
    other = dbdyno("trace", "join", server, wire)
    assert (other.returncode, "is not a run of dbdyno trace proxy" in other.stderr) == (2, True)
    manifest = json.loads((server / "manifest.json").read_text())
    (server / "manifest.json").write_text(json.dumps({**manifest, "options": {"mode": "read"}}))
    looks = dbdyno("trace", "join", wire, server)
    assert (looks.returncode, "record with `dbdyno trace record --exact`" in looks.stderr) == (2, True)
