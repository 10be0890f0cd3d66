"""Active sessions read from a server's memory, summed up per second: compared with known times and with queries."""

from __future__ import annotations

import contextlib
import csv
import io
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
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
from dbdyno.snapshot.sessions.samples import WHOLE, weight
from dbdyno.snapshot.taking.take import watch
from skipped import skipped_on
from together import meanwhile
from waiting import retried, until

AT = {column.name: place for place, column in enumerate(ACTIVITY)}


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


def seen(row: list[str]) -> float:
    """Return the part of its period in which a session was seen in a state; 1 for a row of one look."""
    return weight({name: row[at] for name, at in AT.items()}) / WHOLE


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
        counts = Counter[str]()
        for row in rows:
            if row[AT["state"]] == "active":
                counts[row[AT["event"]] or "CPU"] += seen(row)  # type: ignore[assignment]
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


def timed(lab: Lab, name: str, statements: Sequence[str], seconds: float, spent: list[tuple[float, float]]) -> None:
    """Run statements, and add when the last one began and ended, by the clock that the server has too."""
    with contextlib.closing(lab.connect(application_name=name)) as conn:
        until_s = time.monotonic() + seconds
        while time.monotonic() < until_s:
            for statement in statements[:-1]:
                conn.execute(statement)
            begun = time.time()
            conn.execute(statements[-1])
            spent.append((begun, time.time()))
            time.sleep(0.02)


def within(spent: Sequence[tuple[float, float]], low: float, high: float) -> float:
    """Return how much of the time from `low` to `high` was spent."""
    return sum(max(0.0, min(end, high) - max(begin, low)) for begin, end in spent)


def test_the_sums_of_each_second_are_the_known_times_of_sleeps_and_lock_waits(memory: Lab):
    slept: list[tuple[float, float]] = []
    waited: list[tuple[float, float]] = []

    def hold(conn: psycopg.Connection[object]) -> None:
        conn.execute("select pg_advisory_lock(77)")
        threading.Timer(0.06, lambda: conn.execute("select pg_advisory_unlock(77)")).start()

    def wait_for_locks() -> None:
        with contextlib.closing(memory.connect()) as holder, contextlib.closing(memory.connect()) as waiter:
            waiter.execute("set application_name = 'waits'")
            until_s = time.monotonic() + 5
            while time.monotonic() < until_s:
                hold(holder)
                begun = time.time()
                waiter.execute("select pg_advisory_lock(77)")
                waited.append((begun, time.time()))
                waiter.execute("select pg_advisory_unlock(77)")
                time.sleep(0.03)

    sampler = Sampler(Postgres.open(memory.dsn))
    threads = [
        threading.Thread(target=timed, args=(memory, "sleeps", ["select pg_sleep(.013)"], 5, slept)),
        threading.Thread(target=wait_for_locks),
    ]
    with sampler:
        for one in threads:
            one.start()
        for one in threads:
            one.join()
    rows = [row for row in _rows(sampler) if row[AT["application"]] in ("sleeps", "waits")]
    assert all(0 < int(row[AT["looks"]]) <= int(row[AT["of_looks"]]) for row in rows)
    edges = sorted({int(row[AT["at_us"]]) / 1e6 for row in rows})
    for name, event, spent, least in (("sleeps", "PgSleep", slept, 0.013), ("waits", "advisory", waited, 0.05)):
        inside = [pair for pair in pairwise(edges) if spent[0][0] < pair[0] and pair[1] < spent[-1][1]]
        assert len(inside) >= 2, edges
        known = [within(spent, *pair) / (pair[1] - pair[0]) for pair in inside]
        active = [_sum(rows, name, end, AT["state"], "active") for _, end in inside]
        waits = [_sum(rows, name, end, AT["event"], event) for _, end in inside]
        assert active == pytest.approx(known, abs=0.15), name
        assert sum(active) == pytest.approx(sum(known), rel=0.15), name
        # A wait ends before the client hears of it, but not before its time.
        whole = sum(1 for begin, end in spent if inside[0][0] <= begin and end <= inside[-1][1])
        assert 0.85 * whole * least <= sum(waits) <= sum(active) + 0.01, name
        assert all(0.05 < took < 0.95 for took in waits), "no second is rounded to none or all"


def _sum(rows: Sequence[Sequence[str]], application: str, at: float, column: int, value: str) -> float:
    """Return the part of a second in which a session was seen with a value in a column."""
    same = [row for row in rows if row[AT["application"]] == application and row[column] == value]
    return sum(seen(list(row)) for row in same if int(row[AT["at_us"]]) / 1e6 == at)


@pytest.mark.parametrize("by_memory", [True, False])
def test_horizons_are_those_of_pg_stat_activity(memory: Lab, by_memory: bool):
    sampler = Sampler(Postgres.open(memory.dsn), period_ns=50_000_000, by_memory=by_memory)
    memory.run("create table held (id int)", "insert into held select generate_series(1, 3000)")
    with (
        contextlib.closing(memory.connect(application_name="reader")) as reader,
        contextlib.closing(memory.connect(application_name="writer")) as writer,
        contextlib.closing(memory.connect()) as other,
    ):
        reader.execute("begin isolation level repeatable read")
        reader.execute("select 1")
        writer.execute("begin")
        writer.execute("insert into held values (1)")
        for _ in range(40):
            other.execute("select txid_current()")
        with sampler:
            assert until(lambda: {"reader", "writer"} <= _ages(sampler).keys())
            low, found, high = _stated(other), _ages(sampler), {}
            assert until(lambda: (found.update(_ages(sampler)), {"reader", "writer"} <= found.keys())[1])
            high = _stated(other)
    for name in ("reader", "writer"):
        assert 40 <= low[name][0] <= found[name] <= high[name][0], name
    assert low["reader"][1:] == (True, False), "it has an xmin and no transaction of its own"
    assert low["writer"][1:] == (False, True), "it has its own transaction and, between statements, no xmin"


def _stated(conn: psycopg.Connection[object]) -> dict[str, tuple[int, bool, bool]]:
    rows = conn.execute(
        "select application_name, greatest(age(backend_xmin), age(backend_xid)), backend_xmin is not null,"
        " backend_xid is not null from pg_stat_activity where application_name in ('reader', 'writer')"
    )
    return {str(name): (int(age), xmin, xid) for name, age, xmin, xid in rows}  # type: ignore[call-overload]


def _ages(sampler: Sampler) -> dict[str, int]:
    """Return the last age of each application's horizon."""
    return {row[AT["application"]]: int(row[AT["horizon_age"]]) for row in _rows(sampler) if row[AT["horizon_age"]]}


def test_a_vacuum_holds_nothing_back_though_pg_stat_activity_has_an_xmin_of_it(memory: Lab):
    memory.run("create table wide as select generate_series(1, 200000) as id", "delete from wide where id % 2 = 0")
    sampler = Sampler(Postgres.open(memory.dsn), period_ns=50_000_000)
    with (
        contextlib.closing(memory.connect()) as conn,
        contextlib.closing(memory.connect(application_name="vacuums")) as vacuum,
        sampler,
    ):
        vacuum.execute("set vacuum_cost_delay = 20")
        vacuum.execute("set vacuum_cost_limit = 1")
        running = threading.Thread(target=_until_cancelled, args=(vacuum, "vacuum wide"))
        running.start()
        asked = "select backend_xmin is not null from pg_stat_activity where application_name = 'vacuums'"
        assert until(lambda: conn.execute(asked).fetchone() == (True,))
        # Until it has its tables, it is a transaction as any other.
        assert all(until(lambda: len(_of(sampler, "vacuums")) > 0) for _ in range(2))
        for _ in range(10):
            conn.execute("select txid_current()")
        rows: list[list[str]] = []
        assert until(lambda: len(rows.extend(_of(sampler, "vacuums")) or rows) >= 3)
        vacuum.cancel()
        running.join()
    assert {row[AT["horizon_age"]] for row in rows} == {""}


def _until_cancelled(conn: psycopg.Connection[object], statement: str) -> None:
    with contextlib.suppress(psycopg.errors.QueryCanceled):
        conn.execute(statement.encode())


def _of(sampler: Sampler, application: str) -> list[list[str]]:
    return [row for row in _rows(sampler) if row[AT["application"]] == application]


def test_an_interrupted_watch_loses_at_most_the_open_second(memory: Lab):
    stop = threading.Event()
    stopped_us: list[float] = []

    def interrupt() -> None:
        time.sleep(3.4)
        stopped_us.append(time.time() * 1e6)
        stop.set()

    taken = []
    with load(memory):
        for made in watch(memory.dsn, memory.store, Options(), every_s=60, stop=stop):
            if not taken:
                threading.Thread(target=interrupt).start()
            taken.append(made)
    with Interval(memory.store, taken[0], taken[-1]) as interval:
        source, looks = interval.samples("activity", ACTIVITY)
        (found,) = interval.query(f"select count(distinct at_us) as seconds, max(at_us) as last from {source}")
    assert looks == found["seconds"] >= 2
    assert 0 <= stopped_us[0] - found["last"] < 1_300_000


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
    by_sql = dbdyno(
        *("sql", "select round(sum(seen), 6) as seen from sessions where class = 'lock'"),
        *("--run", "snap:" + "..".join(str(one.number) for one in (found[0], found[-1]))),
        *("--store", str(memory.store.folder), "--format", "csv"),
    )
    assert float(by_sql.stdout.split()[-1]) == pytest.approx(classes["lock"] * history.looks, abs=1e-3)
    said = dbdyno("snap", "sessions", *numbers, "--store", str(memory.store.folder))
    assert "the sums of up to 1,000 looks at the server's memory" in " ".join(said.stdout.split())


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
