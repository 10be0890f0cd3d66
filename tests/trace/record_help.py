"""Helpers for tests of recordings: a server, whether the kernel allows probes, and queries on a recorded run."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import psycopg
import pytest

from dbdyno.bench.postgres.binaries import Binaries, find_binaries
from dbdyno.bench.postgres.embedded import EmbeddedPostgres
from dbdyno.evidence.query import connect
from dbdyno.evidence.run import Run
from dbdyno.trace.record.process import ServerProcess
from dbdyno.trace.record.recording import Recording, RecordingOptions, Texts, recording
from together import meanwhile, together

KINDS = ("installed", *(pytest.param(kind, marks=pytest.mark.soak) for kind in ("wheel", "14", "16", "17", "18")))
OPEN_ENDS = (
    "select name from sessions where elapsed_ns <> call_ns + between_ns or unexplained_ns <> 0"
    " or call_ns <> cpu_ns + wait_inside_ns + unaccounted_ns"
)
"""The sessions in whose times something is missing."""
Recorder = Callable[[EmbeddedPostgres, Path], contextlib.AbstractContextManager[Recording]]


def copied(binaries: Binaries, folder: Path) -> Binaries:
    """Copy a server so that it has its own program file, in which probes of other tests are not set."""
    bindir = folder / "bin"
    bindir.mkdir()
    for program in binaries.bindir.iterdir():
        if program.name == "postgres":
            shutil.copy2(program, bindir)
        else:
            (bindir / program.name).symlink_to(program.resolve())
    for beside in ("lib", "share"):
        found = binaries.bindir.parent / beside
        found = found if found.exists() else Path("/usr/share/postgresql") / str(binaries.major)
        (folder / beside).symlink_to(found.resolve())
    return find_binaries({**os.environ, "DBDYNO_PG_BIN": str(bindir)})


def session(engine: EmbeddedPostgres) -> psycopg.Connection[tuple[Any, ...]]:
    return psycopg.connect(**engine.conninfo(), autocommit=True)  # type: ignore[arg-type]


@contextlib.contextmanager
def recorded(
    engine: EmbeddedPostgres, out: Path, wanted: RecordingOptions | None = None, texts: Texts | None = None
) -> Iterator[Recording]:
    """Record the server during the block, at any cost; by probes, unless another mode is requested."""
    assert engine.pid is not None
    wanted = wanted or RecordingOptions(cost_limit=0)
    with recording(ServerProcess(engine.pid), out, replace(wanted, mode=wanted.mode or "sites"), texts) as it:
        yield it


def rows(run: Path, question: str, *values: Any) -> list[tuple[Any, ...]]:
    """Return the rows of an SQL query on the recorded run."""
    manifest = (run / "manifest.json").stat()
    return _opened(run.resolve(), manifest.st_ino, manifest.st_mtime_ns).execute(question, list(values)).fetchall()


@lru_cache(1)
def _opened(run: Path, _file: int, _written_ns: int) -> duckdb.DuckDBPyConnection:
    """Open a run for the queries that tests make one after the other: opening takes more time than a query."""
    connection, broken = connect(Run.open(run))
    assert broken == []
    return connection


@contextlib.contextmanager
def loaded(engine: EmbeddedPostgres, sessions: int = 2, *, pause_s: float = 0) -> Iterator[list[str]]:
    """Sessions that work all the time but for a pause after each commit, some of them new ones; the list has what
    failed."""
    failed: list[str] = []

    def work(number: int, over: threading.Event) -> None:
        try:
            while not over.is_set():
                with session(engine) as connection:
                    for _ in range(20):
                        connection.execute("insert into busy values (%s)", [number])
                        connection.execute("select count(*) from busy where a = %s", [number])
                        time.sleep(pause_s)
        except psycopg.Error as error:
            failed.append(str(error))

    with session(engine) as connection:
        connection.execute("create table if not exists busy (a int)")
        connection.execute("truncate busy")  # each session reads all of it again and again
    with meanwhile(*(partial(work, number) for number in range(sessions))):
        yield failed


def changed_code(engine: EmbeddedPostgres) -> int:
    """Return in how many bytes a backend's code differs from the program file; each probe changes one byte."""
    with session(engine) as connection:
        pid = connection.info.backend_pid
        differing = 0
        maps = Path(f"/proc/{pid}/maps").read_text().splitlines()
        exe = str(Path(f"/proc/{pid}/exe").readlink())
        for line in maps:
            words = line.split()
            if len(words) < 6 or words[5] != exe or "x" not in words[1]:
                continue
            begin, end = (int(word, 16) for word in words[0].split("-"))
            with Path(f"/proc/{pid}/mem").open("rb") as memory, Path(f"/proc/{pid}/exe").open("rb") as program:
                memory.seek(begin)
                program.seek(int(words[2], 16))
                has, should = memory.read(end - begin), program.read(end - begin)
            length = min(len(has), len(should))
            code, original = (np.frombuffer(part, np.uint8, length) for part in (has, should))
            differing += int(np.count_nonzero(code != original))
        return differing


def lock_wait(engine: EmbeddedPostgres) -> tuple[float, float]:
    """Let a session wait for a lock; return the shortest and longest possible wait by the server's clock [s]."""
    waits = "select count(*) from pg_locks where locktype = 'advisory' and not granted"
    outer: list[float] = []

    def blocked() -> None:
        with session(engine) as other:
            row = other.execute(
                "select extract(epoch from clock_timestamp()), pg_advisory_lock(7),"
                " extract(epoch from clock_timestamp())"
            ).fetchone()
            assert row is not None
            outer.append(float(row[2] - row[0]))

    with session(engine) as holder:
        holder.execute("select pg_advisory_lock(7)")
        with together(blocked):
            while holder.execute(waits).fetchone() == (0,):
                pass
            inner = holder.execute(
                "with a as materialized (select clock_timestamp() as at),"
                " b as materialized (select pg_sleep(.2) from a),"
                " c as materialized (select clock_timestamp() as at from b)"
                " select extract(epoch from c.at - a.at) from a, c"
            ).fetchone()
            holder.execute("select pg_advisory_unlock(7)")
    assert inner is not None
    return float(inner[0]), outer[0]


LOCK_SPANS = (
    "select (max(started_ns + elapsed_ns) - min(started_ns)) / 1e6 from waits where event = 'Lock:advisory'"
    " group by call order by min(started_ns)"
)
"""Time that each call waited for its lock, from the first begin to the last end [ms]. After deadlock_timeout the server
interrupts the wait to look for a deadlock, and writes to its log.
"""


def logged_lock_waits(engine: EmbeddedPostgres, count: int) -> list[float]:
    """Let a session wait for a lock `count` times; return the waits by the server's own log [ms]."""
    begin = engine.log_file.stat().st_size
    waits = "select count(*) from pg_locks where locktype = 'advisory' and not granted"
    with session(engine) as holder, session(engine) as other:
        other.execute("set log_lock_waits = on")
        other.execute("set deadlock_timeout = '20ms'")
        for number in range(count):
            holder.execute("select pg_advisory_lock(8)")
            with together(partial(other.execute, "select pg_advisory_lock(8), pg_advisory_unlock(8)")):
                while holder.execute(waits).fetchone() == (0,):
                    pass
                holder.execute("select pg_sleep(%s)", [0.05 + 0.02 * number])
                holder.execute("select pg_advisory_unlock(8)")
    with engine.log_file.open("rb") as log:
        log.seek(begin)
        text = log.read().decode(errors="replace")
    return [float(found) for found in re.findall(r"acquired ExclusiveLock .* after ([\d.]+) ms", text)]


def check_sleeps(run: Path, statements: str) -> None:
    """Check that each of twenty sleeps is waits that add up to it, and that all time is accounted for."""
    found = rows(
        run,
        "select c.elapsed_ns, sum(w.elapsed_ns), min(w.started_ns - c.started_ns) from calls c"
        " join waits w on w.call = c.call join statements s on s.statement = c.statement"
        f" where {statements} and w.event = 'Timeout:PgSleep' group by all",
    )
    assert len(found) == 20
    assert all(20_000_000 <= slept <= elapsed and begun > 0 for elapsed, slept, begun in found), found
    assert rows(run, OPEN_ENDS) == []
    assert rows(run, "select distinct fidelity from waits") == [("exact",)]


def check_lock_wait(engine: EmbeddedPostgres, run: Path, recorder: Recorder = recorded) -> None:
    """Check that the recorded lock wait is within the bounds from the server's clock [s]."""
    with recorder(engine, run):
        bounds_s = lock_wait(engine)
    # A backend that is woken in between waits again: two waits of one lock.
    [(span, waited)] = rows(
        run,
        "select (max(started_ns + elapsed_ns) - min(started_ns)) / 1e9, sum(elapsed_ns) / 1e9 from waits"
        " where event = 'Lock:advisory'",
    )
    assert bounds_s[0] <= span <= bounds_s[1]
    assert 0.9 * bounds_s[0] <= waited <= span


def check_lock_waits(engine: EmbeddedPostgres, run: Path, recorder: Recorder = recorded) -> None:
    """Check that the recorded lock waits equal those in the server's log, to within half a millisecond."""
    with recorder(engine, run):
        logged = logged_lock_waits(engine, 8)
    spans = [span for (span,) in rows(run, LOCK_SPANS)]
    off = sorted(abs(span - of_log) for span, of_log in zip(spans, logged, strict=True))
    assert len(off) == 8
    assert off[6] < 0.5, f"off by so many ms, and one of eight may be where a busy machine cut in: {off}"
