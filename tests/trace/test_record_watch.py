"""Exact waits by watchpoints, compared with what the server, its clients and the kernel report."""

from __future__ import annotations

import contextlib
import grp
import os
import pwd
import signal
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from record_help import (
    KINDS,
    OPEN_ENDS,
    check_lock_wait,
    check_lock_waits,
    check_sleeps,
    loaded,
    recorded,
    rows,
    session,
)
from watch_help import as_server, own_server, place_for_server, registers_taken, watched

from command_line import dbdyno
from dbdyno import _core
from dbdyno.base.errors import TraceError
from dbdyno.bench import check_record
from dbdyno.bench.postgres.embedded import EmbeddedPostgres
from dbdyno.bench.postgres.exact_waits import ExactWatcher
from dbdyno.cli.trace.record import status_line
from dbdyno.trace.record.process import ServerProcess
from dbdyno.trace.record.recording import RecordingOptions, recording, warnings_of
from dbdyno.trace.record.texts import texts_of
from kernel_probes import require_probes, require_watchpoints
from server_binaries import binaries_of


@pytest.fixture(scope="module", params=KINDS)
def engine(request: pytest.FixtureRequest) -> Iterator[EmbeddedPostgres]:
    require_watchpoints()
    with own_server(binaries_of(request.param), compute_query_id=True) as running:
        yield running


def test_the_servers_own_user_records_without_a_capability_and_all_time_is_accounted_for(
    engine: EmbeddedPostgres,
) -> None:
    with place_for_server() as folder, session(engine) as connection:
        with as_server("--pid", engine.pid, "--exact", "--out", "run", cwd=folder) as recorder:
            for _ in range(20):
                connection.execute("select pg_sleep(.02)")
            recorder.send_signal(signal.SIGINT)
            said, errors = recorder.communicate()
        assert recorder.returncode == 0, errors
        check_sleeps(folder / "run", "s.text = 'select pg_sleep(?)' and c.kind = 'exec'")
    assert "recording by watchpoints (--mode watch): the kernel refuses to probe the server" in errors
    assert "waits of" in said


def test_a_lock_wait_that_is_watched_lies_between_the_bounds_that_the_servers_clock_gives(
    engine: EmbeddedPostgres, tmp_path: Path
) -> None:
    check_lock_wait(engine, tmp_path / "run", watched)


@pytest.mark.soak
def test_lock_waits_that_are_watched_are_those_of_the_servers_log_to_half_a_millisecond(
    engine: EmbeddedPostgres, tmp_path: Path
) -> None:
    check_lock_waits(engine, tmp_path / "run", watched)


def test_calls_their_kinds_and_statements_are_those_of_the_client(engine: EmbeddedPostgres, tmp_path: Path) -> None:
    with session(engine) as connection:
        connection.execute("create table if not exists watched (a int)")
        with watched(engine, tmp_path / "run") as it:
            for number in range(30):
                # So long that it is looked at: the text of a statement is read while it is at work.
                slow = f"insert into watched select {number} from pg_sleep(.005)"
                connection.execute(slow.encode(), prepare=False)
            for number in range(40):
                connection.execute("select a from watched where a < %s", [number], prepare=True)
            time.sleep(0.05)
    counts = {
        (kind, text.split()[0]): count
        for kind, text, count in rows(
            tmp_path / "run",
            "select kind, s.text, count(*) from calls c join statements s using (statement)"
            " where s.text like '%watched%' group by all",
        )
    }
    expected = {("exec", "insert"): 30, ("parse", "select"): 1, ("bind", "select"): 40, ("exec", "select"): 40}
    assert counts == expected
    assert it.report["undecoded"] == 0
    assert it.report["unnamed_calls"] == 0


def test_without_query_ids_a_statement_is_known_where_its_text_could_be_read_and_the_rest_is_told(
    engine: EmbeddedPostgres, tmp_path: Path
) -> None:
    with session(engine) as connection, watched(engine, tmp_path / "run") as it:
        connection.execute("set compute_query_id = off")
        connection.execute("select 'slow' as slow, pg_sleep(.05)")
        for _ in range(300):
            connection.execute("select 'fast' as fast", prepare=False)
    texts = "select s.text, count(*) from calls c join statements s using (statement) where s.text like ? group by 1"
    assert rows(tmp_path / "run", texts, "%slow%") == [("select ? as slow, pg_sleep(?)", 1)]
    [(_, known)] = rows(tmp_path / "run", texts, "%fast%") or [("", 0)]
    assert known + it.report["unnamed_calls"] >= 300, "a call has its statement, or is counted as one without"
    assert 0 < it.report["unnamed_calls"] <= 301
    assert any("have no statement" in warning for warning in it.warnings)


def brief(connection: psycopg.Connection[tuple[object, ...]]) -> None:
    """Send forty statements at once, each with a different query id, so short that looks see hardly any of them."""
    with connection.pipeline():
        for number in range(1, 41):
            connection.execute(f"select 'secret'{', 1' * number}".encode())


def test_statements_that_no_look_saw_say_so_where_their_text_would_stand(
    engine: EmbeddedPostgres, tmp_path: Path
) -> None:
    with session(engine) as connection, watched(engine, tmp_path / "run") as it:
        brief(connection)
        connection.execute("select pg_sleep(.02)")
    told = it.report["textless"]
    assert told["calls"] >= told["statements"] > 0, "the forty are not all seen"
    unseen = "select statement, text from statements where text like '(text not seen%'"
    found = rows(tmp_path / "run", unseen)
    assert len(found) == told["statements"]
    why = "each call was over, and another had come, before a look"
    assert {text for _, text in found} == {f"(text not seen: {why}; query id {key})" for key, _ in found}
    assert any("are known only by their query ids" in warning for warning in it.warnings)
    shown = dbdyno("trace", "sql", tmp_path / "run", "--top", "0").stdout
    assert "(text not seen: each call was over, and another had come" in " ".join(shown.split())


def test_texts_that_no_look_saw_are_those_of_pg_stat_statements_where_that_may_be_read(tmp_path: Path) -> None:
    require_watchpoints()
    binaries = binaries_of("installed")
    with own_server(binaries, shared_preload_libraries="pg_stat_statements") as own, session(own) as connection:
        try:
            connection.execute("create schema kept; create extension pg_stat_statements schema kept")
        except psycopg.errors.UndefinedFile:
            pytest.skip("pg_stat_statements is not beside the server: make setup-test installs it")
        dsn = make_conninfo("", **own.conninfo())
        with watched(own, tmp_path / "run", texts=partial(texts_of, dsn)) as it:
            brief(connection)
            connection.execute("select pg_sleep(.02)")
    assert it.report["textless"]["found"] > 0
    assert it.report["textless"]["statements"] == 0
    texts = {text for (text,) in rows(tmp_path / "run", "select text from statements")}
    forms = {
        f"select {literal}{', '.join(['', *others])}"
        for literal, others in (
            variant
            for number in range(1, 41)
            for variant in (("?", ["?"] * number), ("$1", [f"${at}" for at in range(2, number + 2)]))
        )
    }
    assert len(texts & forms) == 40, texts
    assert not any("secret" in text or "not seen" in text for text in texts)


def test_what_precedes_the_first_look_at_a_new_session_is_unobserved(engine: EmbeddedPostgres, tmp_path: Path) -> None:
    with watched(engine, tmp_path / "run"):
        for _ in range(3):
            with session(engine) as connection:
                connection.execute("select pg_sleep(.2)")
    found = rows(
        tmp_path / "run",
        "select s.name, min(w.started_ns) - min(s.started_ns), count(*) filter (where w.event = 'unobserved'),"
        " count(*) filter (where w.event = 'Timeout:PgSleep') from sessions s join waits w using (session)"
        " where s.name like 'client backend%' group by all having count(*) filter (w.event = 'Timeout:PgSleep') > 0",
    )
    assert len(found) == 3
    assert all((late_ns, unobserved) == (0, 1) for _, late_ns, unobserved, _ in found), found
    assert rows(tmp_path / "run", OPEN_ENDS) == []


def test_parallel_workers_stand_under_their_leader_and_what_they_did_before_is_unobserved(
    engine: EmbeddedPostgres, tmp_path: Path
) -> None:
    with session(engine) as connection:
        connection.execute("create table if not exists wide as select g from generate_series(1, 300000) g")
        for name in ("parallel_setup_cost", "parallel_tuple_cost", "min_parallel_table_scan_size"):
            connection.execute(f"set {name} = 0".encode())
        leader = connection.info.backend_pid
        with watched(engine, tmp_path / "run"):
            connection.execute("select count(*), sum(sqrt(g)) from wide")
    found = rows(tmp_path / "run", "select name, elapsed_ns from sessions where name like 'parallel worker%'")
    assert found
    assert all(name.endswith(f" of {leader}") for name, _ in found), found
    unobserved = (
        "select count(distinct session) from waits join sessions s using (session)"
        " where s.name like 'parallel worker%' and event = 'unobserved'"
    )
    assert rows(tmp_path / "run", unobserved) == [(len(found),)]


def test_only_sessions_of_a_database_are_watched_where_one_is_named(engine: EmbeddedPostgres, tmp_path: Path) -> None:
    with session(engine) as connection:
        with contextlib.suppress(psycopg.errors.DuplicateDatabase):
            connection.execute("create database elsewhere")
        with watched(engine, tmp_path / "run", database="elsewhere"):
            for name in ("elsewhere", "postgres"):
                with psycopg.connect(**{**engine.conninfo(), "dbname": name}) as other:  # type: ignore[arg-type]
                    other.execute("select 'there', pg_sleep(.02)")
    assert rows(tmp_path / "run", "select distinct service from contexts") == [("elsewhere",)]
    slept = "select count(distinct session) from waits where event = 'Timeout:PgSleep'"
    assert rows(tmp_path / "run", slept) == [(1,)]


def test_taken_registers_are_refused_with_the_likely_other_tracer(engine: EmbeddedPostgres, tmp_path: Path) -> None:
    with session(engine) as connection, registers_taken(pid := connection.info.backend_pid):
        with (
            pytest.raises(TraceError, match="debug registers of the process are taken: a debugger, pg_wait_tracer"),
            recording(ServerProcess(pid, only=True), tmp_path / "run", RecordingOptions(mode="watch")),
        ):
            pass
        with watched(engine, tmp_path / "all") as it:
            connection.execute("select pg_sleep(.02)")
    assert any("registers" in why for why in it.report["refused"])
    assert any("and their data are missing" in warning for warning in it.warnings)
    [(unobserved, whole)] = rows(
        tmp_path / "all",
        "select sum(w.elapsed_ns), max(s.elapsed_ns) from sessions s join waits w using (session)"
        f" where s.name like 'client backend {pid} %'",
    )
    assert unobserved == whole > 20_000_000, "all of its time is unobserved, none of it is silent"


def test_watchpoints_are_never_set_beside_probes(engine: EmbeddedPostgres, tmp_path: Path) -> None:
    require_probes()
    with (
        recorded(engine, tmp_path / "sites"),
        pytest.raises(TraceError, match="never set beside probes"),
        watched(engine, tmp_path / "watch"),
    ):
        pass
    assert not (tmp_path / "watch").exists()


def test_probes_are_never_set_beside_watchpoints_and_who_wants_exact_times_watches_as_well(
    engine: EmbeddedPostgres, tmp_path: Path
) -> None:
    require_probes()
    with watched(engine, tmp_path / "watch"):
        with pytest.raises(TraceError, match="never set beside watchpoints"), recorded(engine, tmp_path / "sites"):
            pass
        wanted = RecordingOptions(cost_limit=0, mode="exact")
        with recording(ServerProcess(int(engine.pid or 0)), tmp_path / "either", wanted) as it:
            assert it.core.mode()[0] == "watch"
            assert "never set beside watchpoints" in str(it.fallback_reason)
    assert not (tmp_path / "sites").exists()
    with recorded(engine, tmp_path / "after") as it:
        assert it.core.mode()[0] == "sites", "the watchpoints are gone"


def test_the_arms_of_an_experiment_are_timed_by_watchpoints_where_probes_are_refused(
    engine: EmbeddedPostgres, tmp_path: Path
) -> None:
    names = {"on": "dbdyno/on", "off": "dbdyno/off"}
    with contextlib.ExitStack() as stack, watched(engine, tmp_path / "run"):
        watcher = ExactWatcher(lambda: stack.enter_context(session(engine)), names)
        stack.callback(watcher.stop)
        on = stack.enter_context(session(engine))
        on.execute("set application_name = 'dbdyno/on'")
        watcher.mark(None, 2)
        on.execute("select pg_sleep(.02)")
        taken = watcher.take()
        told = {metric.metric: (metric.source, metric.value) for _, _, metric in watcher.take_metrics()}
    slept = [
        (arm, block, elapsed_ns)
        for arm, block, event, elapsed_ns in zip(
            *(taken[name] for name in ("arm", "block", "event", "elapsed_ns")), strict=True
        )
        if event == "PgSleep"
    ]
    assert {row[:2] for row in slept} == {("on", 2)}
    assert sum(row[2] for row in slept) >= 19_900_000
    assert told["cost"][0] == "watchpoints" and told["cost"][1] > 1_000


@pytest.mark.soak
def test_watchpoints_that_are_too_dear_are_given_up_step_by_step(engine: EmbeddedPostgres, tmp_path: Path) -> None:
    with loaded(engine) as failed, watched(engine, tmp_path / "run", cost_limit=1e-6) as it:
        while not it.is_over():
            time.sleep(0.1)
    assert failed == []
    assert [one["what"] for one in it.report["unrecorded"]] == ["calls and statements"]
    assert "more than the limit" in it.report["stopped"]
    last = "select max(c.started_ns) from calls c where c.kind = ?"
    exec_end, message_end = (rows(tmp_path / "run", last, kind)[0][0] for kind in ("exec", "message"))
    assert exec_end < message_end
    assert len([one for one in it.warnings if "--cost-limit" in one]) == 2


def test_the_live_line_names_watchpoints_and_warnings_what_they_cannot_tell() -> None:
    counted = {"sessions": 2, "waits": 3, "notes": 4, "lost": 0, "probes_ns": 5, "own_cpu_ns": 6, "elapsed_ns": 10**9}
    assert "; watchpoints 0.0%" in status_line({**counted, "mode": "watch"}, {})
    told = {"mode": "watch", "with_calls": False, "undecoded": 3, "trap_ns": 4000, "call_trap_ns": 4500}
    said = warnings_of(told)
    assert said[0].startswith("3 changes of a wait could not be decoded")
    assert "between two waits for the client" in said[1]
    assert "4.00 us" in said[2]


@pytest.mark.parametrize(
    ("sites", "watch", "ok", "words"),
    [
        (600, 4000, True, "mode sites, 0.60 us of CPU per probe; mode watch, 4.00 us"),
        (600, None, True, "mode sites, 0.60 us of CPU per probe"),
        (None, 4000, True, "mode watch, 4.00 us of CPU per event; not mode sites: no probes (perf_event_paranoid"),
        (None, None, False, "no probes; no watchpoints (perf_event_paranoid"),
    ],
)
def test_the_doctor_names_the_modes_that_are_allowed_and_what_would_allow_more(
    monkeypatch: pytest.MonkeyPatch, sites: int | None, watch: int | None, ok: bool, words: str
) -> None:
    def answer(cost: int | None, why: str) -> int:
        if cost is None:
            raise TraceError(why)
        return cost

    monkeypatch.setattr(_core, "trap_cost_ns", lambda: answer(sites, "no probes"))
    monkeypatch.setattr(_core, "watch_cost_ns", lambda pid: answer(watch, "no watchpoints"))
    check = check_record.kernel_allows(os.getpid())
    assert (check.ok, check.found.startswith(words)) == (ok, True), check
    # What is fine shows no next step, so the command that allows more stands in what was found.
    assert ("sudo dbdyno trace record --exact" in (check.found if ok else check.next)) is (sites is None)
    assert "capsh" not in check.found + check.next, "capsh needs the rights that it is to give"
    assert ("sudo -u" in check.next) is not ok


@pytest.mark.parametrize(
    ("unmapped", "words"),
    [
        (None, "mode read, 0.06 us per look at all sessions; no exact times: no probes; no watchpoints ("),
        ("Operation not permitted", "by copying; CAP_CHECKPOINT_RESTORE would map the memory (Operation not permitted"),
    ],
)
def test_the_doctor_says_that_a_server_can_be_read_and_what_one_more_capability_brings(
    monkeypatch: pytest.MonkeyPatch, unmapped: str | None, words: str
) -> None:
    def refused(why: str) -> int:
        raise TraceError(why)

    monkeypatch.setattr(_core, "trap_cost_ns", lambda: refused("no probes"))
    monkeypatch.setattr(_core, "watch_cost_ns", lambda pid: refused("no watchpoints"))
    monkeypatch.setattr(_core, "read_cost", lambda pid: (60, unmapped))
    check = check_record.kernel_allows(os.getpid())
    assert check.ok
    assert words in check.found
    assert "to get them: sudo -u" in check.found
    user, group = pwd.getpwuid(os.getuid()).pw_name, grp.getgrgid(os.getgid()).gr_name
    command = f"sudo setpriv --reuid={user} --regid={group} --init-groups --inh-caps=+checkpoint_restore"
    assert (command in check.found) is bool(unmapped)
    monkeypatch.setattr(_core, "trap_cost_ns", lambda: 600)
    assert "per probe; mode read, 0.06 us" in check_record.kernel_allows(os.getpid()).found
