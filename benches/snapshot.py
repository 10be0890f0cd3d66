"""Measures the cost of snapshots: 10,000 tables, 100 MB of statement texts, sampling at 10 Hz.

    python benches/snapshot.py [--tables 10000] [--pairs 60] [--only objects,statements,sampling]
    python benches/snapshot.py --only long --days 30
    python benches/snapshot.py --only long --statements 10000 --sessions 200

The server is one of our own; client and server share the machine. Aims: a full snapshot of 10,000
tables with an index each < 2 s and < 1 MB, its report < 1 s; 5,000 statements with 100 MB of texts
< 100 ms; sampling 100 sessions by queries, ten times a second, < 1 % of a core here, by memory, summed
up once per second, about 2 % of an idle machine, and each < 0.5 % of the throughput of a busy one.

How the throughput is compared: pgbench logs the end of each transaction; windows with a sampler
and without one take turns (ABBA), each pair gives one ratio.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import math
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import psycopg
from engine import pgbench
from figures import SMOKE, dbdyno, figure, parse
from psycopg.conninfo import make_conninfo

from dbdyno import _core
from dbdyno.base.errors import TraceError
from dbdyno.bench.postgres.binaries import find_binaries
from dbdyno.bench.postgres.server import Postgres, open_target
from dbdyno.snapshot.engines.postgres.sampler import Sampler
from dbdyno.snapshot.engines.view import Options
from dbdyno.snapshot.reading.interval import Interval
from dbdyno.snapshot.report import report
from dbdyno.snapshot.sessions.samples import MEMORY, QUERIES
from dbdyno.snapshot.store.folder import Snapshot, Store
from dbdyno.snapshot.taking.take import open_collector, take

SETTINGS = {
    "shared_preload_libraries": "pg_stat_statements",
    "pg_stat_statements.max": "6000",
    "shared_buffers": "512MB",
    "max_locks_per_transaction": "512",
    "max_wal_size": "4GB",
    "track_io_timing": "on",
}
TEXT_BYTES = 20_000
KEEP = "minute:2d, hour:60d, day:2y"
SESSIONS, WINDOW_S = 4 if SMOKE else 100, 0.5 if SMOKE else 2.0
PERIODS_S = {QUERIES: 0.1, MEMORY: 1.0}
"""Time between two looks by queries, and of a period of looks by memory: its default, with up to 1,000 looks."""
SETTLED_S = 0.5
"""Time after a sampler's start, and before a window without one."""


def main() -> None:
    """Runs the parts that are asked for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--tables", type=int, default=10_000)
    parser.add_argument("--pairs", type=int, default=60)
    parser.add_argument("--only", default="objects,statements,sampling", help="of objects,statements,sampling,long")
    parser.add_argument("--texts", type=int, default=5_000, help="statements with long texts")
    parser.add_argument("--seconds", type=float, default=20.0, help="of sampling")
    parser.add_argument("--days", type=float, default=1.0, help="of the synthetic stretch, a snapshot a minute")
    parser.add_argument("--statements", type=int, default=200, help="of the synthetic stretch")
    parser.add_argument("--sessions", type=int, default=0, help="of the synthetic stretch, sampled each second")
    tiny: dict[str, Any] = {"tables": 40, "pairs": 2, "days": 6 / 1440, "texts": 20, "seconds": 0.3, "statements": 5}
    given = parse(parser, **tiny, only="objects,statements,sampling,long")
    print(f"load of the machine {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores", flush=True)
    with open_target(None, settings=SETTINGS) as target, tempfile.TemporaryDirectory() as folder:
        with target.connect() as conn:
            conn.execute("create extension pg_stat_statements")
        store = Store(Path(folder) / "snaps")
        if "statements" in given.only:
            statements(target, store, given.texts)
        if "sampling" in given.only:
            sampling(target, given.pairs, given.seconds)
        if "objects" in given.only:
            objects(target, store, given.tables)
        if "long" in given.only:
            long_stretch(target, given.days, given.statements, given.sessions)


def long_stretch(target: Postgres, days: float, statements: int, sessions: int) -> None:
    """A report and a comparison over a synthetic stretch of a snapshot a minute, in packs as a watch leaves them."""
    from packed_store import Made, write

    with tempfile.TemporaryDirectory() as folder:
        with target.connect() as conn:
            conn.execute("create table t (id int primary key)")
        like = snap(target, Store(Path(folder) / "like"), [])
        store = Path(folder) / "snaps"
        store.mkdir()
        count = round(days * 1440)
        started = time.perf_counter()
        made = Made(store, like, count + 1, statements, sessions)
        # A child counts the memory of who starts it.
        with ThreadPoolExecutor(1) if SMOKE else ProcessPoolExecutor(1, get_context("spawn")) as writer:
            writer.submit(write, made).result()
        what = f"{count} sub-intervals of {statements} statements, 100 tables and {sessions} sampled sessions"
        print(f"{what} made in {time.perf_counter() - started:.0f} s")
        half = count // 2 + 1
        for label, arguments in (
            ("report, first time", ["snap", "report", "1", str(count + 1)]),
            *([] if SMOKE else [("report", ["snap", "report", "1", str(count + 1)])]),
            ("compare", ["compare", f"snap:1..{half}", f"snap:{half}..{count + 1}"]),
            ("sessions", ["snap", "sessions", "1", str(count + 1)]),
            ("prune, dry run", ["snap", "prune", "--keep", KEEP, "--dry-run"]),
            ("prune", ["snap", "prune", "--keep", KEEP]),
            *([] if SMOKE else [("report, pruned, first time", ["snap", "report", "1", str(count + 1)])]),
        ):
            _measured(f"{days:g} days of snapshots", label, [*arguments, "--store", str(store)])
            if label.startswith("prune"):
                size_mb = sum(path.stat().st_size for path in store.rglob("*") if path.is_file()) / 1e6
                print(f"    the store has {size_mb:.0f} MB, {len(list(store.glob('0*')))} snapshots", flush=True)


def _measured(what: str, label: str, arguments: list[str]) -> None:
    """Time, CPU and memory of a command as a process of its own."""
    if SMOKE and "prune" not in label:  # to start Python once is enough
        print(f"  {label}: exit {dbdyno(*arguments).returncode}", flush=True)
        return
    began = time.perf_counter()
    child = subprocess.Popen([sys.executable, "-m", "dbdyno", *arguments], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    wall, cpu, memory = time.perf_counter() - began, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024
    print(f"  {label}: {wall:.2f} s, {cpu:.2f} s of CPU, {memory:.0f} MB (exit {child.returncode})", flush=True)
    figure(f"{what}, {label}", wall, "s")
    figure(f"{what}, {label}: peak memory", memory, "MB", aim="< 300" if "first" not in label else "")


def dsn(target: Postgres) -> str:
    """Its connection string."""
    known = target.libpq_parameters()
    return make_conninfo("", **{k: known[k] for k in ("host", "port", "user", "dbname")})


@contextlib.contextmanager
def timed(times: list[float]) -> Iterator[None]:
    """Adds the seconds that a block took."""
    started = time.perf_counter()
    yield
    times.append(time.perf_counter() - started)


def snap(target: Postgres, store: Store, times: list[float]) -> Snapshot:
    """A snapshot from the first packet to the manifest, on a connection of its own."""
    with timed(times), open_collector(dsn(target), Options()) as collector:
        return take(collector, store, engine_name="postgres")


def size(one: Snapshot) -> int:
    """Bytes that a snapshot added to the store."""
    folder = one.store / f"{one.number:06d}"
    return sum(path.stat().st_size for path in folder.iterdir())


def objects(target: Postgres, store: Store, tables: int) -> None:
    """Snapshots of many tables, each with an index, a fifth of them busy; the report."""
    with target.connect(autocommit=False) as conn:
        for start in range(0, tables, 500):
            for n in range(start, min(start + 500, tables)):
                conn.execute(f"create table t{n} (id int primary key, v int)")
            conn.commit()
    times: list[float] = []
    taken = [snap(target, store, times)]
    dice = random.Random(7)
    for _ in range(1 if SMOKE else 4):
        with target.connect() as conn:
            for n in dice.sample(range(tables), tables // 5):
                conn.execute(f"insert into t{n} values (1, 1) on conflict (id) do update set v = 2")
        time.sleep(1.2 if tables > 100 else 0.1)
        taken.append(snap(target, store, times))
    sizes = [size(one) / 1e6 for one in taken]
    print(f"{tables} tables with an index each, {tables // 5} changed between snapshots:")
    print(
        f"  snapshot: first {times[0]:.2f} s, later {statistics.median(times[1:]):.2f} s (worst {max(times[1:]):.2f})"
    )
    print(f"  stored: first {sizes[0]:.2f} MB, later {statistics.median(sizes[1:]):.2f} MB")
    rendered: list[float] = []
    for first, last in itertools.pairwise(taken):
        with timed(rendered), Interval(store, first, last) as interval:
            report(interval)
    whole: list[float] = []
    before = os.times()
    for _ in range(1 if SMOKE else 3):
        arguments = ["snap", "report", "last-1", "last", "--store", str(store.folder)]
        with timed(whole):
            subprocess.run([sys.executable, "-m", "dbdyno", *arguments], check=True, stdout=subprocess.DEVNULL)
    model_s, whole_s = statistics.median(rendered), statistics.median(whole)
    after = os.times()
    spent = after.children_user + after.children_system
    spent = (spent - before.children_user - before.children_system) / len(whole)
    print(
        f"  report: model {model_s:.2f} s; `dbdyno snap report` as a process {whole_s:.2f} s, {spent:.2f} s of CPU",
        flush=True,
    )
    figure(f"snapshot of {tables:,} tables", statistics.median(times[1:]), "s", aim="< 2")
    figure(f"snapshot of {tables:,} tables, stored", statistics.median(sizes[1:]), "MB", aim="< 1")
    figure(f"snap report of {tables:,} tables", whole_s, "s", aim="< 1")


def statements(target: Postgres, store: Store, count: int) -> None:
    """Snapshots while pg_stat_statements holds many statements and very long texts."""
    padding = "x" * TEXT_BYTES
    with target.connect() as conn:
        for n in range(count):
            signs = "".join("+-"[n >> bit & 1] + "1" for bit in range(13))
            conn.execute(f"select /* {padding} */ 1{signs}", prepare=False)
        conn.execute("select pg_stat_statements_reset(0, 0, 1)")
        row = conn.execute("select count(*), sum(octet_length(query)) / 1e6 from pg_stat_statements").fetchone()
    assert row is not None
    print(f"pg_stat_statements with {row[0]} statements, {row[1]:.0f} MB of texts:")
    with target.connect() as conn:
        texts: list[float] = []
        for _ in range(3):
            with timed(texts):
                conn.execute("select count(*) from pg_stat_statements where query like 'z%'")
    print(f"  a query that reads the texts {statistics.median(texts) * 1e3:.0f} ms")
    times: list[float] = []
    taken = [snap(target, store, times) for _ in range(2 if SMOKE else 6)]
    for label, chosen in (("first", taken[:1]), ("later", taken[1:])):
        spent = {
            name: statistics.median(one.views[name]["elapsed_ns"] / 1e6 for one in chosen)
            for name in ("pg_stat_statements", "statement_texts")
            if name in chosen[0].views
        }
        shown = ", ".join(f"{name} {ms:.0f} ms" for name, ms in spent.items())
        took = statistics.median(times[:1] if label == "first" else times[1:])
        print(f"  snapshot: {label} {took:.2f} s, of it {shown}", flush=True)
        what = f"reading {row[0]:,} statements with {row[1]:.0f} MB of texts, {label}"
        figure(what, spent.get("pg_stat_statements", math.nan), "ms", aim="< 100")
    with target.connect() as conn:
        conn.execute("select pg_stat_statements_reset()")


@contextlib.contextmanager
def crowd(target: Postgres) -> Iterator[None]:
    """So many sessions in a statement."""
    connections = [psycopg.connect(dsn(target), autocommit=True) for _ in range(SESSIONS)]
    threads = []
    for connection in connections:
        threads.append(threading.Thread(target=_sleep, args=(connection,), daemon=True))
        threads[-1].start()
    try:
        yield
    finally:
        for connection in connections:
            connection.cancel_safe()
        for thread in threads:
            thread.join()
        for connection in connections:
            connection.close()


def _sleep(connection: psycopg.Connection) -> None:
    with contextlib.suppress(psycopg.errors.QueryCanceled):
        connection.execute("select pg_sleep(3600)")


_CHILD = """
import sys, time
from dbdyno.bench.postgres.server import Postgres
from dbdyno.snapshot.engines.postgres.sampler import Sampler
from dbdyno.snapshot.engines.view import Options
sampler = Sampler(Postgres.open(sys.argv[1]), period_ns=int(sys.argv[4]), by_memory=sys.argv[3] == "memory")
with sampler:
    while sampler.samples < 2:
        time.sleep(0.05)
    assert sampler.source and sampler.source.by == sys.argv[3], sampler.source
    looks, cpu, began = sampler.samples, time.process_time(), time.perf_counter()
    time.sleep(float(sys.argv[2]))
    views, _ = sampler.take()
    spent, passed = time.process_time() - cpu, time.perf_counter() - began
    print(spent / passed, (sampler.samples - looks) / passed, views[0].rows.count(b"\\n"))
"""


def sampling(target: Postgres, pairs: int, seconds: float) -> None:
    """What the sampler costs here, in its backend, and in throughput: by queries, and by memory if it may be read."""
    pgbench(target, "-i", "-q", "-s", "10" if pairs >= 10 else "1")
    for way in (QUERIES, MEMORY):
        if way == MEMORY and not _is_readable(target):
            print("the server's memory may not be read here: sampling by queries only")
            continue
        with crowd(target):
            arguments = [sys.executable, "-c", _CHILD, dsn(target), str(seconds), way, str(round(PERIODS_S[way] * 1e9))]
            done = subprocess.run(arguments, check=True, capture_output=True, text=True)
            share, rate, rows = (float(word) for word in done.stdout.split())
            print(f"sampling {SESSIONS} sessions by {way} at {rate:.1f} Hz, {rows:.0f} rows in {seconds:g} s:")
            print(f"  client {share:.2%} of a core")
            what = f"sampling {SESSIONS} sessions by {way}, the client"
            if way == MEMORY:
                figure(what, 100 * share / (os.cpu_count() or 1), "% of the machine, idle", aim="about 2 %")
            else:
                figure(what, 100 * share, "% of a core", aim="< 1 %")
            ratios = _paired(target, pairs, way)
        mean, half = _interval(ratios)
        low, high = math.expm1(mean - half), math.expm1(mean + half)
        print(f"  throughput of pgbench -S -c 8: {math.expm1(mean):+.2%}")
        print(f"    (95 % {low:+.2%} to {high:+.2%}, {len(ratios)} pairs of {WINDOW_S} s)", flush=True)
        figure(
            f"throughput of pgbench -S -c 8 while sampled by {way}",
            100 * math.expm1(mean),
            "%",
            against="not sampled",
            ratio=math.exp(mean),
            interval=(1 + low, 1 + high),
            aim="> -0.5 %",
        )


def _is_readable(target: Postgres) -> bool:
    with target.connect() as conn:
        try:
            _core.read_cost(conn.info.backend_pid)
        except TraceError:
            return False
    return True


def _interval(values: list[float]) -> tuple[float, float]:
    from scipy import stats

    spread = statistics.stdev(values) / math.sqrt(len(values))
    return statistics.fmean(values), float(stats.t.ppf(0.975, len(values) - 1)) * spread


def _paired(target: Postgres, pairs: int, way: str) -> list[float]:
    """Log ratios of throughput, sampled over not sampled."""
    windows: list[tuple[float, float, bool]] = []
    with tempfile.TemporaryDirectory() as folder:
        lead_s = 3 if pairs >= 10 else 0.5
        seconds = round(pairs * 2 * (WINDOW_S + SETTLED_S) * 1.1 + 2 * lead_s)
        known = target.libpq_parameters()
        load = subprocess.Popen(
            [
                find_binaries().bindir / "pgbench",
                "-S",
                "-c",
                "8",
                "-j",
                "2",
                "-n",
                *(() if pairs >= 10 else ("-R", "400")),  # a smoke needs some transactions, not two cores
                "-T",
                str(seconds),
                "-l",
                "--log-prefix",
                f"{folder}/log",
                "-h",
                known["host"],
                "-p",
                known["port"],
                "-U",
                known["user"],
                known["dbname"],
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        time.sleep(lead_s)
        for pair in range(pairs):
            for looking in (True, False) if pair % 2 else (False, True):
                with _sampler(dsn(target), way) if looking else contextlib.nullcontext():
                    time.sleep(SETTLED_S)
                    begun = time.time()
                    time.sleep(WINDOW_S)
                    windows.append((begun, time.time(), looking))
        load.terminate()
        load.wait()
        counts = _counts(Path(folder), windows)
    # A window of a smoke may be without transactions on a busy machine.
    rates = [(max(n, 1) / (end - begun), looking) for n, (begun, end, looking) in zip(counts, windows, strict=True)]
    ratios = []
    for first, second in zip(rates[::2], rates[1::2], strict=True):
        on, off = (first[0], second[0]) if first[1] else (second[0], first[0])
        ratios.append(math.log(on / off))
    return ratios


def _sampler(server: str, way: str) -> Sampler:
    return Sampler(Postgres.open(server), period_ns=round(PERIODS_S[way] * 1e9), by_memory=way == MEMORY)


def _counts(folder: Path, windows: list[tuple[float, float, bool]]) -> list[int]:
    """Transactions that ended in each window, by pgbench's log."""
    import duckdb
    import numpy as np

    found = duckdb.sql(
        f"select column4 + column5 / 1e6 as ended from read_csv('{folder}/log*', delim=' ',"
        " header=false, ignore_errors=true) order by ended"  # pgbench was stopped: last lines may be cut off
    ).fetchnumpy()["ended"]
    edges = np.searchsorted(found, [[begun, end] for begun, end, _ in windows])
    return [int(end - begun) for begun, end in edges]


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    main()
