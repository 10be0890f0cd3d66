"""Measures the time to read plans from a log, and the cost of auto_explain for the server.

    python benches/plans.py [--mb 50] [--rounds 30] [--only read,cost]

Read: a log of our own server is repeated to that size, in each form; MB and entries a second of CPU time, beside
`wc -l` of the same file. A log in which few entries tell a duration is timed too, and one in which none does.
Cost: one session asks a point query in blocks of 100; settings of auto_explain take turns, round after round; the
medians of the blocks, against auto_explain off. Client and server share the machine.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import resource
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import psycopg
from figures import SMOKE, figure, parse

from dbdyno.bench.postgres.embedded import EmbeddedPostgres
from dbdyno.snapshot.plans.entries import Clock
from dbdyno.snapshot.plans.executions import GatheredExecutions
from dbdyno.snapshot.plans.reader import read
from dbdyno.snapshot.plans.source import open_log

SETTINGS = {
    "shared_preload_libraries": "auto_explain",
    "logging_collector": True,
    "log_destination": "stderr,csvlog",
    "log_filename": "pg.log",
    "autovacuum": False,
}
TIMES = 10 if SMOKE else 100
"""Statements of a block."""
POINT = "select sum(amount) from orders where cust = 77"
JOINED = "select count(*) from orders a join orders b on a.id = b.cust where a.cust < 20"
OFF = {"log_min_duration": "-1", "log_analyze": "off", "log_timing": "on"}
ARMS = {
    "off": OFF,
    "log_min_duration = 1min": {**OFF, "log_min_duration": "1min"},
    "the same, log_analyze without timing": {
        **OFF,
        "log_min_duration": "1min",
        "log_analyze": "on",
        "log_timing": "off",
    },
    "the same, log_analyze": {**OFF, "log_min_duration": "1min", "log_analyze": "on"},
    "every execution logged": {**OFF, "log_min_duration": "0"},
    "every execution logged, log_analyze": {**OFF, "log_min_duration": "0", "log_analyze": "on"},
}


def main() -> None:
    """Runs the parts that are asked for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--mb", type=float, default=50)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--only", default="read,cost")
    given = parse(parser, mb=0.2, rounds=1)
    print(f"load of the machine {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores", flush=True)
    with EmbeddedPostgres(settings=SETTINGS) as engine, contextlib.closing(_session(engine)) as conn:
        _fill(conn)
        if "cost" in given.only:
            cost(conn, given.rounds)
        if "read" in given.only:
            logs = Path(engine.socket_dir).parent / "data" / "log"
            reading(conn, logs, given.mb)


def _session(engine: EmbeddedPostgres) -> psycopg.Connection[tuple[object, ...]]:
    return psycopg.connect(**engine.conninfo(), autocommit=True, prepare_threshold=None)  # type: ignore[arg-type]


def _fill(conn: psycopg.Connection[tuple[object, ...]]) -> None:
    conn.execute("create table orders (id int primary key, cust int, amount int)")
    conn.execute("insert into orders select n, n / 10, n from generate_series(1, 20000) n")
    conn.execute("create index on orders (cust)")
    conn.execute("analyze orders")


def _set(conn: psycopg.Connection[tuple[object, ...]], arm: dict[str, str]) -> None:
    for name, value in arm.items():
        conn.execute("select set_config(%s, %s, false)", [f"auto_explain.{name}", value])


def cost(conn: psycopg.Connection[tuple[object, ...]], rounds: int) -> None:
    """Microseconds of a statement with each setting."""
    for query in (POINT, JOINED):
        found: dict[str, list[float]] = {name: [] for name in ARMS}
        for turn in range(rounds):
            for name in list(ARMS)[:: 1 if turn % 2 else -1]:
                _set(conn, ARMS[name])
                start = time.perf_counter()
                for _ in range(TIMES):
                    conn.execute(query.encode()).fetchall()
                found[name].append((time.perf_counter() - start) / TIMES * 1e6)
        base = statistics.median(found["off"])
        print(query)
        for name, values in found.items():
            middle = statistics.median(values)
            print(f"  {name:40} {middle:8.1f} us  {middle / base - 1:+7.1%}", flush=True)
            what = f"{'a point query' if query == POINT else 'a join'}, auto_explain: {name}"
            figure(what, middle, "us", against="off", ratio=middle / base)
    _set(conn, OFF)


def reading(conn: psycopg.Connection[tuple[object, ...]], logs: Path, mb: float) -> None:
    """MB a second of CPU time."""
    size = round(mb * 1e6)
    _set(conn, {**OFF, "log_min_duration": "0", "log_analyze": "on"})
    for query in (POINT, JOINED) * (10 if SMOKE else 200):
        conn.execute(query.encode())
    time.sleep(0.5)
    with tempfile.TemporaryDirectory() as folder:
        for form in ("log", "csv"):
            once = (logs / f"pg.{form}").read_bytes()
            path = Path(folder) / f"dense.{form}"
            path.write_bytes(once * (size // len(once) + 1))
            _read(f"{form}, plans and little else", path)
        other = b'2026-11-21 00:59:57.437 UTC [28] ERROR:  relation "t" does not exist at character 15\n' * 200
        path = Path(folder) / "sparse.log"
        entries = (logs / "pg.log").read_text().split("\n20")
        entry = f"20{next(one for one in reversed(entries) if 'plan:' in one)}\n".encode()
        path.write_bytes((other + entry) * (size // len(other + entry) + 1))
        _read("log, one entry in 200 a plan", path)
        path = Path(folder) / "none.log"
        path.write_bytes(other * (size // len(other) + 1))
        _read("log, lines without a plan alone", path)


def _read(what: str, path: Path) -> None:
    with GatheredExecutions() as gathered:
        start = time.process_time()
        [file] = read([open_log(path)], gathered, Clock())
        spent = time.process_time() - start
    before = resource.getrusage(resource.RUSAGE_CHILDREN)  # os.times counts in ticks of 10 ms: as long as all of it
    subprocess.run(["/usr/bin/wc", "-l", path], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    counted = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    beside = file.bytes / 1e6 / max(counted, 1e-6)
    print(
        f"{what}: {file.bytes / 1e6:.0f} MB, {file.executions} executions, {file.bytes / 1e6 / spent:.1f} MB and"
        f" {file.executions / spent:,.0f} executions a second of CPU; wc -l {beside:,.0f} MB",
        flush=True,
    )
    rate = file.bytes / 1e6 / spent
    figure(f"reading a {what}", rate, "MB per CPU-second", against="wc -l", ratio=rate / beside)


if __name__ == "__main__":
    main()
