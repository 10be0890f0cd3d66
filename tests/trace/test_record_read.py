"""Waits sampled from the server's memory, compared with what the server and its clients report."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from record_help import KINDS, OPEN_ENDS, lock_wait, recorded, rows, session
from watch_help import as_server, place_for_server

from command_line import dbdyno, succeeded
from dbdyno import _core
from dbdyno.base.errors import TraceError
from dbdyno.base.json_types import JsonObject
from dbdyno.bench.postgres.embedded import EmbeddedPostgres
from dbdyno.cli.trace.record import status_line
from dbdyno.trace.record.looks import look_warnings
from dbdyno.trace.record.process import ServerProcess
from dbdyno.trace.record.recording import RecordingOptions, recording
from server_binaries import binaries_of
from skipped import skipped_on
from waiting import retried, until

SLEPT = (
    "select w.elapsed_ns, w.p2, w.fidelity, s.text from waits w left join statements s using (statement)"
    " where w.event = 'Timeout:PgSleep'"
)


@pytest.fixture(scope="module", params=KINDS)
def engine(request: pytest.FixtureRequest) -> Iterator[EmbeddedPostgres]:
    with EmbeddedPostgres(binaries=binaries_of(request.param), settings={"compute_query_id": True}) as running:
        with skipped_on(TraceError):
            _core.read_cost(running.pid)
        yield running


def perf_events() -> int:
    """Return the number of open perf events of this process, which is one per probe; other tests' are not counted."""
    return sum("perf_event" in os.path.realpath(opened) for opened in Path("/proc/self/fd").iterdir())


def read(engine: EmbeddedPostgres, out: Path, **wanted: Any) -> Any:
    """Record by looks during the block, with up to a fifth of the machine's time: about 100 us between two looks."""
    return recorded(engine, out, RecordingOptions(**{"mode": "read", "cost_limit": 0.2, **wanted}))


@pytest.mark.parametrize("copies", [False, True], ids=["mapped", "copied"])
def test_each_sleep_is_seen_with_its_statement_and_all_time_is_accounted_for(
    engine: EmbeddedPostgres, tmp_path: Path, copies: bool
) -> None:
    with session(engine) as connection, read(engine, tmp_path / "run", copies=copies) as it:
        started_ns = time.monotonic_ns()
        for _ in range(10):
            connection.execute("select pg_sleep(.02), 'secret'")
        passed_ns = time.monotonic_ns() - started_ns
        assert perf_events() == 0, "no probe is set"
    slept = rows(tmp_path / "run", SLEPT)
    assert len(slept) + it.report["gaps"] >= 10
    assert sum(elapsed for elapsed, _, _, _ in slept) + it.report["gap_ns"] >= 10 * 0.9 * 20_000_000
    assert {(fidelity, text) for _, _, fidelity, text in slept} == {("read", "select pg_sleep(?), ?")}
    assert sum(elapsed for elapsed, _, _, _ in slept) <= passed_ns + it.report["longest_ns"]
    assert rows(tmp_path / "run", OPEN_ENDS) == []
    assert it.report["is_mapped"] is not copies or os.geteuid() != 0
    kinds = {name.partition(" ")[0] for (name,) in rows(tmp_path / "run", "select name from sessions")}
    assert {"client", "checkpointer", "walwriter"} <= kinds
    [(looks, gap_ns)] = rows(tmp_path / "run", "select sum(looks), sum(gap_ns) from looks")
    assert (looks, gap_ns) == (it.report["looks"], it.report["gap_ns"])
    assert "The server was read, not stopped" in " ".join(it.warnings)


def test_a_lock_wait_names_the_process_that_holds_the_lock_and_lies_within_what_the_servers_clock_gives(
    engine: EmbeddedPostgres, tmp_path: Path
) -> None:
    with read(engine, tmp_path / "run") as it:
        inner_s, outer_s = lock_wait(engine)
    holder = "select session from waits where event = 'Timeout:PgSleep'"
    [(pids, holders, span_s, within_s)] = rows(
        tmp_path / "run",
        "select list(distinct w.p1), list(distinct s.process),"
        " (max(w.started_ns + w.elapsed_ns) - min(w.started_ns)) / 1e9, max(w.p2) / 1e9 from waits w,"
        f" (select process from sessions where session in ({holder})) s where w.event = 'Lock:advisory'",
    )
    assert [str(pid) for pid in pids] == holders
    assert inner_s - 2 * within_s - it.report["longest_ns"] / 1e9 <= span_s <= outer_s + it.report["longest_ns"] / 1e9


def test_a_recorded_waits_parameters_are_shown_and_found_by_their_names(
    engine: EmbeddedPostgres, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    with read(engine, run):
        lock_wait(engine)
    [(holder,)] = rows(run, "select distinct p1 from waits where event = 'Lock:advisory'")
    shown = succeeded("trace", "waits", run, "--event", "Lock:advisory").stdout
    assert re.search(rf"holder={holder} within_ns=\d+ cut=\d", shown), shown
    found = succeeded("trace", "waits", run, "--where", f"param('holder') = {holder}").stdout
    assert "Lock:advisory" in found
    others = succeeded("trace", "waits", run, "--where", f"param('holder') <> {holder}").stdout
    assert "Lock:advisory" not in others


def test_a_row_lock_is_held_by_the_session_whose_transaction_has_it(engine: EmbeddedPostgres, tmp_path: Path) -> None:
    with session(engine) as holder, session(engine) as waiter, session(engine) as asked:
        holder.execute("create table if not exists held (a int)")
        holder.execute("insert into held values (1)")
        with read(engine, tmp_path / "run"):
            holder.execute("begin")
            holder.execute("update held set a = a + 1")
            waiter.execute("set statement_timeout = '300ms'")
            started = time.monotonic()
            with pytest.raises(psycopg.errors.QueryCanceled):
                waiter.execute("update held set a = a + 1")
            assert time.monotonic() - started > 0.25
            holder.execute("rollback")
        pid = holder.info.backend_pid
        assert asked.execute("select count(*) from held").fetchone() == (1,)
    assert rows(tmp_path / "run", "select distinct p1 from waits where event = 'Lock:transactionid'") == [(pid,)]


def test_only_sessions_that_were_asked_for_are_recorded_also_new_ones(engine: EmbeddedPostgres, tmp_path: Path) -> None:
    with session(engine) as connection:
        connection.execute("create database apart")
    other = make_conninfo(**{**engine.conninfo(), "dbname": "apart"})
    with session(engine) as own, read(engine, tmp_path / "run", database="apart") as it:
        own.execute("select pg_sleep(.02)")
        with psycopg.connect(other, autocommit=True) as new:
            new.execute("select pg_sleep(.05)")
            pid = new.info.backend_pid
        time.sleep(0.05)
    names = [name for (name,) in rows(tmp_path / "run", "select name from sessions where calls > 0")]
    assert len(names) == 1
    assert names[0].startswith(f"client backend {pid} (")
    assert names[0].endswith("@apart)")
    assert it.report["sessions"] == 0, "it was gone at the end"


def test_a_server_that_begins_anew_after_a_crash_is_read_on_and_its_old_memory_is_let_go(
    engine: EmbeddedPostgres, tmp_path: Path
) -> None:
    def mappings() -> int:
        return Path("/proc/self/maps").read_text().count("rw-s") + Path("/proc/self/maps").read_text().count("r--s")

    held = mappings()
    with read(engine, tmp_path / "run") as it:
        with session(engine) as victim:
            os.kill(victim.info.backend_pid, signal.SIGKILL)
            with pytest.raises(psycopg.OperationalError):
                victim.execute("select 1")
        assert until(lambda: it.read_report().get("renewed"), 30)
        with retried(lambda: session(engine), psycopg.OperationalError) as connection:
            connection.execute("select pg_sleep(.3)")
        assert mappings() <= held + 1
    assert mappings() == held
    assert it.report["renewed"] == 1
    slept = rows(tmp_path / "run", "select sum(elapsed_ns) / 1e9 from waits where event = 'Timeout:PgSleep'")
    assert slept[0][0] == pytest.approx(0.3, abs=0.1 + it.report["gap_ns"] / 1e9)
    assert "restarted 1 time after a crash" in " ".join(it.warnings)


def test_the_command_says_what_it_recorded_and_how_well(engine: EmbeddedPostgres, tmp_path: Path) -> None:
    wanted = ["--mode", "read", "--for", "300ms", "--cost-limit", "10", "--out", tmp_path / "run"]
    answer = succeeded("trace", "record", "--pid", engine.pid, *wanted)
    assert "one look every" in answer.stderr
    assert "waits of" in answer.stdout


def test_who_names_no_mode_reads_and_exact_times_every_wait(engine: EmbeddedPostgres, tmp_path: Path) -> None:
    for words, mode in (((), "read"), (("--exact",), "sites"), (("--exact", "--details"), "sites")):
        run = tmp_path / f"run{len(words)}"
        answer = succeeded("trace", "record", "--pid", engine.pid, "--for", "300ms", "--out", run, *words)
        assert json.loads((run / "manifest.json").read_text())["options"]["mode"] == mode
    for words, said in ((("--exact", "--mode", "read"), "exclude each other"), (("--details",), "add --exact")):
        answer = dbdyno("trace", "record", "--pid", engine.pid, "--out", tmp_path / "not", *words)
        assert answer.returncode == 2
        assert said in answer.stderr
    assert not (tmp_path / "not").exists()


def test_the_servers_own_user_reads_by_copies_without_a_capability(engine: EmbeddedPostgres) -> None:
    with place_for_server() as folder, session(engine) as connection:
        with as_server("--pid", engine.pid, "--mode", "read", "--out", "run", cwd=folder) as recorder:
            connection.execute("select pg_sleep(.3)")
            recorder.send_signal(signal.SIGINT)
            _, errors = recorder.communicate()
        assert recorder.returncode == 0, errors
        assert (
            "by copying its memory (mapping it needs CAP_CHECKPOINT_RESTORE: Operation not permitted" in errors
            or os.geteuid() != 0
        )
        [(slept_s,)] = rows(folder / "run", "select sum(elapsed_ns) / 1e9 from waits where event = 'Timeout:PgSleep'")
    assert 0.1 < slept_s < 0.5


def test_a_process_that_is_no_server_is_refused() -> None:
    with pytest.raises(TraceError, match="it is not PostgreSQL 14 to 18"):
        _core.read_cost(os.getpid())
    with (
        pytest.raises(TraceError, match="there is no such process"),
        recording(ServerProcess((1 << 22) - 1), Path("nowhere"), RecordingOptions(mode="read")),
    ):
        pass


REPORT: JsonObject = {
    "mode": "read",
    "elapsed_ns": 10_000_000_000,
    "notes": 0,
    "probes_ns": 0,
    "sessions": 9,
    "waits": 700,
    "looks": 50_000,
    "gaps": 0,
    "period_ns": 200_000,
    "mean_ns": 203_000,
    "longest_ns": 900_000,
    "gap_ns": 0,
    "looks_cpu_ns": 400_000_000,
    "own_cpu_ns": 500_000_000,
    "is_mapped": True,
    "unmapped": None,
    "renewed": 0,
    "events": [],
}


def test_what_looks_cannot_know_is_said() -> None:
    assert look_warnings(REPORT) == [
        "The server was read, not stopped: one look every 203.0 us (asked for: 200), 4.0% of a core. A wait's length is"
        " known to p2 of it; the total time is unbiased, the number of waits is a lower bound. Time outside of waits"
        " counts as CPU, also if the session waited for a processor. Rows and SQLSTATEs are missing, and several short"
        " calls of one statement may count as one."
    ]
    events = [
        {"event": "IO:WALWrite", "seen": 80, "looks": 90, "estimate": 700, "elapsed_ns": 1},
        {"event": "IO:WALSync", "seen": 900, "looks": 5_000, "estimate": 901, "elapsed_ns": 1},
        {"event": "LWLock:WALWrite", "seen": 7, "looks": 7, "estimate": None, "elapsed_ns": 1},
    ]
    told = look_warnings({**REPORT, "events": events, "gaps": 3, "gap_ns": 8_000_000, "longest_ns": 5_000_000})
    assert told[1].endswith("seen only by chance: IO:WALWrite 80 of about 700.")
    assert told[2].startswith("There were no looks in 3 gaps, 0.008 s in all, the longest 5.0 ms")


def test_one_gap_and_one_restart_are_no_plurals() -> None:
    told = look_warnings({**REPORT, "gaps": 1, "gap_ns": 5_000_000, "longest_ns": 5_000_000, "renewed": 1})
    assert told[1].startswith("There were no looks in 1 gap, ")
    assert told[2] == "The server restarted 1 time after a crash; sessions ended there."


def test_the_live_line_has_looks_and_gaps() -> None:
    assert status_line(REPORT, {}) == "10 s: 9 sessions, 700 waits, 5,000 looks/s, 0 gaps; recorder 5.0% of a core"
