"""Active sessions read from a server's memory: rows built from sums, compared with sampling by queries."""

from __future__ import annotations

import contextlib
import csv
import io
import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import psycopg
import pytest
from snapshot_help import Lab

from command_line import dbdyno
from dbdyno import _core
from dbdyno.base.errors import TraceError
from dbdyno.bench.postgres.server import Postgres
from dbdyno.cli.snap.watch import SourceReporter
from dbdyno.snapshot.engines.postgres.sampler import ACTIVITY, Sampler
from dbdyno.snapshot.engines.view import Options
from dbdyno.snapshot.reading.interval import Interval
from dbdyno.snapshot.sessions.history import History
from dbdyno.snapshot.sessions.shares import Shares
from dbdyno.snapshot.taking.take import watch
from skipped import skipped_on
from together import meanwhile
from waiting import retried, until

AT = {column.name: place for place, column in enumerate(ACTIVITY)}


def shares(seed: int) -> Shares:
    return Shares(random.Random(seed))


def test_a_session_that_is_always_in_one_wait_has_a_row_in_each_period():
    made = shares(1)
    assert [made.rows([(("wait", 1, 7), 1.0, "row")]) for _ in range(5)] == [["row"]] * 5


@pytest.mark.parametrize("seed", range(5))
def test_over_any_time_the_rows_of_an_event_differ_from_its_sum_by_less_than_one(seed: int):
    print("seed", seed)
    dice, made = random.Random(seed), shares(seed)
    sums, rows = Counter[str](), Counter[str]()
    for _ in range(500):
        period = {}
        for _ in range(dice.randint(0, 12)):
            path = (dice.choice("abcde"), dice.randint(1, 4), dice.randint(1, 6))
            period[path] = dice.random() ** 3
        for path, share in period.items():
            sums[path[0]] += share
        found = made.rows((path, share, path) for path, share in period.items())
        assert len(found) == len(set(found)), "a session has one row of a wait in a period at most"
        assert set(found) <= set(period), "a row is of a session that was there"
        rows.update(event for event, _, _ in found)
        assert all(abs(rows[event] - sums[event]) < 6 for event in sums)
    # What could not be given, because too few sessions were left in a period, follows in the next ones.
    assert all(abs(rows[event] - sums[event]) < 1 for event in sums), (rows, sums)


def test_within_an_event_rows_follow_statements_and_sessions_by_what_they_have():
    made, rows = shares(3), Counter[tuple[int, int]]()
    parts = {(1, 7): 0.1, (1, 8): 0.3, (2, 7): 0.05}
    for _ in range(1000):
        rows.update(made.rows((("wait", *part), share, part) for part, share in parts.items()))
    assert {part: rows[part] / 1000 for part in parts} == pytest.approx(parts, abs=0.003)


def test_the_first_row_of_a_rare_wait_is_as_often_too_early_as_too_late():
    first = [len(shares(seed).rows([(("rare", 1, 1), 0.1, "row")])) for seed in range(2000)]
    assert sum(first) / 2000 == pytest.approx(0.1, abs=0.03)


@pytest.fixture
def memory(lab: Lab) -> Lab:
    return readable(lab)


def readable(lab: Lab) -> Lab:
    with contextlib.closing(lab.connect()) as conn, skipped_on(TraceError):
        _core.read_cost(conn.info.backend_pid)
    return lab


LOAD = (
    ("select pg_sleep(.03)", "select count(*) from generate_series(1, 60000)"),
    ("select pg_sleep(.01)", "select count(*) from generate_series(1, 60000)"),
    ("begin", "select pg_advisory_xact_lock(43)", "select pg_sleep(.02)", "commit"),
    ("begin", "select pg_advisory_xact_lock(43)", "select pg_sleep(.02)", "commit"),
)


@contextlib.contextmanager
def load(lab: Lab) -> Iterator[None]:
    """Sessions that sleep, work, and wait for each other."""

    def work(statements: tuple[str, ...], stop: threading.Event) -> None:
        with contextlib.closing(lab.connect(application_name="load")) as conn:
            while not stop.is_set():
                for statement in statements:
                    conn.execute(statement)

    with meanwhile(*(partial(work, statements) for statements in LOAD)):
        yield


def rows_of(sampler: Sampler) -> tuple[list[list[str]], int]:
    views, looks = sampler.take()
    rows = csv.reader(io.StringIO(bytes(views[0].rows).decode()))
    return [row for row in rows if row[AT["application"]] == "load"], looks


def test_both_ways_find_the_same_shares_of_classes_on_the_same_server(memory: Lab):
    target = Postgres.open(memory.dsn)
    read = Sampler(target, period_ns=100_000_000)
    asked = Sampler(target, period_ns=5_000_000, by_memory=False)
    with load(memory), read, asked:
        time.sleep(1)
        read.take(), asked.take()
        time.sleep(3)
        by_memory, by_queries = rows_of(read), rows_of(asked)
    assert (read.source and read.source.by, asked.source and asked.source.by) == ("memory", "queries")

    def active(found: tuple[list[list[str]], int]) -> dict[str, float]:
        rows, looks = found
        counts = Counter(row[AT["event"]] or "CPU" for row in rows if row[AT["state"]] == "active")
        return {event: counts[event] / looks for event in ("CPU", "PgSleep", "advisory")}

    assert active(by_memory) == pytest.approx(active(by_queries), abs=0.25), (by_memory[1], by_queries[1])
    same = ("kind", "datname", "usename", "client")
    assert {tuple(row[AT[name]] for name in same) for row in by_memory[0]} == {
        tuple(row[AT[name]] for name in same) for row in by_queries[0]
    }
    statements = [
        {row[AT["statement"]] for row in rows if row[AT["event"]] == "PgSleep"} for rows, _ in (by_memory, by_queries)
    ]
    assert statements[0] == statements[1]
    assert read.queries < asked.queries / 10, "only who blocks whom is asked for"


def test_a_crash_of_the_server_is_survived_and_its_new_memory_is_read(own_lab: Lab):
    readable(own_lab)
    sampler = Sampler(Postgres.open(own_lab.dsn), period_ns=50_000_000)
    with sampler:
        assert until(lambda: sampler.take()[1] > 0)
        with contextlib.closing(own_lab.connect()) as victim:
            os.kill(victim.info.backend_pid, signal.SIGKILL)
            with pytest.raises(psycopg.OperationalError):
                victim.execute("select 1")
        assert until(lambda: sampler.problem is not None)
        assert until(lambda: sampler.problem is None)
        sampler.take()
        with contextlib.closing(retried(own_lab.connect, psycopg.OperationalError)) as conn:
            conn.execute("select pg_sleep(.5)")
        assert until(lambda: any(row[AT["event"]] == "PgSleep" for row in _rows(sampler)))
    assert "r--s" not in _mappings(), "the memory is let go"


def test_watch_stores_what_was_read_and_says_so(memory: Lab):
    with load(memory):
        found = list(watch(memory.dsn, memory.store, Options(), every_s=60, for_s=2, sample_s=0.1))
    assert found[-1].manifest["cost"]["sessions_by"] == "memory"
    with Interval(memory.store, found[0], found[-1]) as interval:
        history = History(interval)
        classes = {row["name"]: row["aas"] for row in history.averages_by("class")}
        sleeping = [row for row in history.averages_by("event") if row["name"] == "PgSleep"]
    assert history.looks > 10
    assert classes["lock"] > 0.5
    assert sleeping[0]["sessions"] == 4
    numbers = (str(one.number) for one in (found[0], found[-1]))
    said = dbdyno("snap", "sessions", *numbers, "--store", str(memory.store.folder))
    assert "the sum of up to 1,000 reads of the server's memory" in " ".join(said.stdout.split())


def said(memory: Lab, capsys: pytest.CaptureFixture[str]) -> str:
    """Return what a watch writes on its error stream."""
    sources, stop = SourceReporter(), threading.Event()
    for made in watch(memory.dsn, memory.store, Options(), every_s=0.5, for_s=60, sample_s=0.1, stop=stop):
        sources.report(made)
        if sources.said:
            stop.set()
    return capsys.readouterr().err


def test_watch_says_on_its_error_stream_how_it_looks_and_why_not_by_memory(
    memory: Lab, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    assert said(memory, capsys) == "dbdyno: sessions are read from the server's memory, up to 1,000 times per second\n"
    monkeypatch.setattr(Postgres, "is_here", lambda self, conn: False)
    assert said(memory, capsys) == "dbdyno: sessions are sampled by queries: the server is not on this machine\n"


def test_a_watch_that_may_not_read_the_memory_says_who_may(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def refused(*_: object) -> None:
        raise TraceError("process 7: it belongs to another user", next_step="run dbdyno as root")

    monkeypatch.setattr(_core, "SessionReader", refused)
    assert said(lab, capsys) == (
        "dbdyno: sessions are sampled by queries: process 7: it belongs to another user; to read its memory, run dbdyno"
        " as root\n"
    )


def test_top_says_how_it_looks(memory: Lab):
    # On a busy machine the first look comes after half a second.
    said = dbdyno("snap", "top", "--target", memory.dsn, "--once", "--every", "4s").stdout
    assert "sessions are read from the server's memory" in said


def _rows(sampler: Sampler) -> list[list[str]]:
    return list(csv.reader(io.StringIO(bytes(sampler.take()[0][0].rows).decode())))


def _mappings() -> str:
    return "\n".join(line for line in Path("/proc/self/maps").read_text().splitlines() if "/dev/zero" in line)
