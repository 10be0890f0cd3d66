"""Recorders by watchpoints start and stop under load, and a tracer of the system call counts what they time."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from proxy_help import pgbench
from record_again_help import fates, logged, under_pgbench
from record_help import rows, session
from watch_help import command_as_server, own_server, place_for_server, watched

from dbdyno.bench.postgres.embedded import EmbeddedPostgres
from kernel_probes import require_watchpoints
from server_binaries import binaries_of
from together import together

CYCLES, KILLED = 60, 20
COMMITS = 200
TURNS, LONGEST = 8, 150

pytestmark = pytest.mark.soak


@pytest.fixture(scope="module")
def engine() -> Iterator[EmbeddedPostgres]:
    require_watchpoints()
    with own_server(binaries_of("installed")) as running:
        pgbench(running, running.conninfo(), "-i", "-q", "-s", "1")
        yield running


def events_of(pid: int) -> int:
    """Return the number of open perf events of a process; 0 before it becomes another user."""
    found = 0
    for path in Path(f"/proc/{pid}/fd").glob("*"):
        try:
            found += "perf_event" in str(path.readlink())
        except OSError:
            continue
    return found


def test_recorders_come_and_go_under_pgbench_and_a_third_of_them_is_killed(engine: EmbeddedPostgres) -> None:
    dice, kinds = fates(CYCLES, KILLED)
    begin = engine.log_file.stat().st_size
    with place_for_server() as folder, under_pgbench(engine):
        for number, is_killed in enumerate(kinds):
            if is_killed:
                killed(engine, folder, dice.randint(1, 20))
                continue
            with watched(engine, folder / f"run{number}"):
                time.sleep(dice.random() / 10)
        assert not (folder / "killed").exists()
    assert logged(engine, begin) == []


def killed(engine: EmbeddedPostgres, folder: Path, at: int) -> None:
    """Kill a recorder of the server's user with SIGKILL while it sets its watchpoints, or a moment later."""
    command = command_as_server("--mode", "watch", "--pid", engine.pid, "--out", "killed")
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as recorder:
        while events_of(recorder.pid) < at:
            assert recorder.poll() is None, "the recorder ended by itself"
        recorder.kill()


def test_the_waits_for_wal_to_be_synced_are_the_calls_of_fdatasync_that_strace_counts(
    engine: EmbeddedPostgres, tmp_path: Path
) -> None:
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("strace is not installed: make setup-test")
    traced = tmp_path / "strace"
    with session(engine) as connection:
        connection.execute("create table synced (a int)")
        pid = connection.info.backend_pid
        with watched(engine, tmp_path / "run"):
            command = [strace, "-e", "trace=fdatasync", "-o", str(traced), "-p", str(pid)]
            with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as tracer:
                assert tracer.stderr is not None
                assert "attached" in tracer.stderr.readline()
                for number in range(COMMITS):
                    connection.execute("insert into synced values (%s)", [number])
                tracer.terminate()
    counted = sum("fdatasync(" in line for line in traced.read_text().splitlines())
    question = (
        "select count(*) from waits join sessions s using (session)"
        f" where event ilike 'IO:WALSync' and s.name like 'client backend {pid} %'"
    )
    assert rows(tmp_path / "run", question) == [(counted,)]
    assert counted >= COMMITS


def test_no_statement_stands_under_the_text_of_another(tmp_path: Path) -> None:
    """Four sessions of statements that get longer, each with a query id of its own, and no processor free: between the
    notes that were taken and the look at a text there may be the next statement."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
    seen = 0
    try:
        with own_server(binaries_of("installed"), compute_query_id=True) as engine:
            with session(engine) as connection:
                for number in range(4):
                    connection.execute(f"create table t{number} ()")
            for turn in range(TURNS):
                run = tmp_path / f"run{turn}"
                with watched(engine, run), together(*(partial(longer, engine, number, turn) for number in range(4))):
                    pass
                found = rows(
                    run,
                    "select list(text order by c.started_ns) from calls c join statements using (statement)"
                    " where c.kind = 'exec' and regexp_matches(text, 'from t|not seen') group by session",
                )
                for (texts,) in found:
                    # The first of a session may have been over before it was seen.
                    lengths = [(at + LONGEST - len(texts) + 1, text.count("?")) for at, text in enumerate(texts)]
                    known = [pair for pair in lengths if pair[1]]
                    assert [(at, length) for at, length in known if at != length] == [], f"turn {turn}"
                    seen += len(known)
    finally:
        for process in busy:
            process.kill()
            process.wait()
    assert seen > 100


def longer(engine: EmbeddedPostgres, number: int, turn: int) -> None:
    dice = random.Random(10 * turn + number)
    with session(engine) as connection:
        for length in range(1, LONGEST + 1):
            connection.execute(f"select {', '.join('1' * length)} from t{number}")
            time.sleep(dice.random() * 0.002)
