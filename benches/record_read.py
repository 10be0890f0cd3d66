"""Compares the waits that `--mode read` sees with those that `--mode sites` times on the same server, and with
pg_stat_wal.

    python benches/record_read.py [--seconds 10] [--cost-limit 2] [--own-core] [--bindir FOLDER]

Six loads: TPC-B of four sessions, select-only of two, a convoy of four sessions on one row, TPC-B of 200 sessions,
parallel scans by two sessions, and TPC-B on a modelled disk of 7,200 rpm. Of the waits of client backends and parallel
workers that probes timed at 20 us or more, how many did a look find (the same process and event at the same time), and
the sum of all waits by event that looks found over that of the probes. Gaps, in which nobody looked, are left out of
both: compared are waits that touch no gap of their session. pg_stat_wal (up to 17) has the syncs of the server's own
count, and pg_stat_io (from 16 on) the time of its reads.

With `--own-core` the looks have the first core for themselves: server, clients and probes run on the last.

Holders of locks are compared with the server's log: in a fourth load, sessions hold a row for 20 ms, and the server
writes of each wait of more than 10 ms who holds the lock (log_lock_waits). Compared are waits for transactions: their
holder stays the same, that of a row's queue (Lock:tuple) may change during a wait.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import duckdb
import psycopg
from figures import SMOKE, figure, length, parse
from record import pgbench

from dbdyno.base.errors import DeviceError
from dbdyno.base.json_types import JsonObject
from dbdyno.bench.engine.volumes import Volume, volumes_of
from dbdyno.bench.postgres.binaries import Binaries, binaries_in
from dbdyno.bench.postgres.embedded import EmbeddedPostgres
from dbdyno.device.mounts import check_machine
from dbdyno.trace.record.process import ServerProcess
from dbdyno.trace.record.recording import RecordingOptions, recording

CORES = os.sched_getaffinity(0)
CONVOY = "begin;\nupdate pgbench_branches set bbalance = bbalance + 1 where bid = 1;\nend;\n"
WAITS = """
select s.process, w.event, w.started_ns as since, w.started_ns + w.elapsed_ns as until, w.elapsed_ns as ns, w.p1, w.p2
from read_parquet('{run}/waits/*.parquet') w join read_parquet('{run}/sessions.parquet') s using (session)
where (s.name like 'client backend%' or s.name like 'parallel worker%') and w.event <> 'Client:ClientRead' and w.p3 = 0
"""
COMPARED = """
with gaps as (select process, since, until from looked where event = 'unobserved'),
  inside as (
    select t.* from timed t where t.event <> 'unobserved' and t.since > (select min(since) from looked)
      and t.until < (select max(until) from looked)
      and not exists (select 1 from gaps g where g.process = t.process and t.since < g.until and t.until > g.since)
  )
select event, count(*) filter (ns >= 20000), count(*) filter (ns >= 20000 and found), sum(ns) / 1e6
from (
  select t.*, exists (
    select 1 from looked l where l.process = t.process and l.event = t.event
      and l.since <= t.until + 20000 and l.until + 20000 >= t.since) as found
  from inside t
) group by 1 order by 4 desc
"""
SUMS = """
select event, sum(ns) / 1e6 from looked l
where event <> 'unobserved' and not exists (
  select 1 from looked g
  where g.event = 'unobserved' and g.process = l.process and l.since <= g.until and l.until >= g.since)
group by 1
"""
WAL = "select wal_sync, wal_sync_time from pg_stat_wal"
READS = """
select sum(reads)::int8, sum(read_time) from pg_stat_io where backend_type in ('client backend', 'background worker')
"""
HELD = """
select w.p1 from read_parquet('{run}/waits/*.parquet') w join read_parquet('{run}/sessions.parquet') s using (session)
where s.process = ? and w.event like 'Lock:%' and w.started_ns <= ? and w.started_ns + w.elapsed_ns >= ?
"""
LOGGED = re.compile(
    r"(\d+\.\d+) \S+ +process (\d+) still waiting for \w+ on transaction .*?\n"
    r".*?Process(?:es)? holding the lock: ([\d, ]+)\. Wait queue",
)
SCAN = "select count(*) from pgbench_accounts where filler <> 'x';\n"
SETTINGS: dict[str, str | int | float | bool] = {
    "track_wal_io_timing": True,
    "track_io_timing": True,
    "log_lock_waits": True,
    "deadlock_timeout": "10ms",
    "log_line_prefix": "%n ",
    "max_connections": 250,
    "max_parallel_workers_per_gather": 2,
    "parallel_setup_cost": 0,
    "min_parallel_table_scan_size": 0,
}
LEAST_MS = 5.0
"""Events with less time are not printed."""


def counted(engine: EmbeddedPostgres) -> dict[str, tuple[int, float]]:
    """What pg_stat_wal and pg_stat_io have counted: number and milliseconds by event."""
    with psycopg.connect(**engine.conninfo(), autocommit=True) as connection:  # type: ignore[arg-type]
        version = connection.info.server_version // 10_000
        asked = {"IO:WALSync": WAL} if version < 18 else {}
        asked |= {"IO:DataFileRead": READS} if version >= 16 else {}
        found = {event: connection.execute(query).fetchone() for event, query in asked.items()}
    return {event: (int(row[0]), float(row[1])) for event, row in found.items() if row is not None}


@contextlib.contextmanager
def first_core() -> Iterator[None]:
    """Start threads on the first core if this process was bound to another one."""
    bound = os.sched_getaffinity(0)
    if bound != CORES:
        os.sched_setaffinity(0, {min(CORES)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, bound)


def both(engine: EmbeddedPostgres, folder: Path, limit: float, options: list[str]) -> JsonObject:
    """One turn of pgbench under both recorders; the report of the looks, and what the server counted meanwhile."""
    place = ServerProcess(int(engine.pid or 0))
    exact = RecordingOptions(cost_limit=0, mode="sites")
    looks = RecordingOptions(cost_limit=limit, mode="read")
    with contextlib.ExitStack() as recordings:
        recordings.enter_context(recording(place, folder / "sites", exact))
        with first_core():
            it = recordings.enter_context(recording(place, folder / "read", looks))
        before = counted(engine)
        pgbench(engine, *options)
        after = counted(engine)
    differences = {event: (after[event][0] - count, after[event][1] - ms) for event, (count, ms) in before.items()}
    return {**it.report, "counted": differences}


def compare(name: str, folder: Path, report: JsonObject) -> None:
    """Prints both views of a load, event by event."""
    with duckdb.connect() as connection:
        for table, run in (("timed", "sites"), ("looked", "read")):
            connection.execute(f"create table {table} as {WAITS.format(run=folder / run)}")
        rows = connection.execute(COMPARED).fetchall()
        sums = dict(connection.execute(SUMS).fetchall())
    print(
        f"{name}: a look every {report['mean_ns'] / 1e3:.0f} us, gaps {report['gap_ns'] / report['elapsed_ns']:.1%} of"
        f" the time, looks {report['looks_cpu_ns'] / report['elapsed_ns']:.1%} of a core"
    )
    for event, count, found, ms in rows:
        if ms < LEAST_MS or not count:
            continue
        ratio = sums.get(event, 0.0) / ms
        print(
            f"  {event:24} >= 20 us: {count:7,}, seen {found / count:6.1%}; {ms:9.1f} ms timed, {ratio:.3f} of it read"
        )
        figure(f"{name}: {event}, time", sums.get(event, 0.0), "ms", against="probes", ratio=ratio, aim="within 1 %")
    for event, (count, ms) in report["counted"].items():
        of_looks = next((one for one in report["events"] if one["event"].lower() == event.lower()), None)
        if of_looks and count:
            print(
                f"  the server's own count of {event}: {count:,}, {ms:.0f} ms; looks: {of_looks['seen']:,} seen,"
                f" {of_looks['estimate']} by the estimate, {of_looks['elapsed_ns'] / 1e6:.0f} ms"
            )


def compare_holders(engine: EmbeddedPostgres, folder: Path, limit: float, options: list[str]) -> None:
    """Prints of how many logged waits the looks found the holder that the server's log names."""
    begin = engine.log_file.stat().st_size
    looks = RecordingOptions(cost_limit=limit, mode="read")
    with contextlib.ExitStack() as recordings:
        with first_core():
            recordings.enter_context(recording(ServerProcess(int(engine.pid or 0)), folder / "read", looks))
        pgbench(engine, *options)
    logged = LOGGED.findall(engine.log_file.read_bytes()[begin:].decode(errors="replace"))
    same = unknown = other = 0
    with duckdb.connect() as connection:
        for second, waiter, holders in logged:
            at_ns = round(float(second) * 1e9)
            rows = connection.execute(HELD.format(run=folder / "read"), [int(waiter), at_ns, at_ns]).fetchall()
            found = {row[0] for row in rows if row[0]}
            wanted = {int(one) for one in holders.split(",")}
            same, unknown = same + bool(found & wanted), unknown + (not found)
            other += bool(found) and not found & wanted
    print(f"holders: of {len(logged)} logged waits {same} with the log's holder, {other} another, {unknown} unknown")
    if logged:
        figure(
            "holders of locks as in the server's log", same, "waits", against="log_lock_waits", ratio=same / len(logged)
        )


@contextlib.contextmanager
def server(chosen: argparse.Namespace, binaries: Binaries | None, volumes: list[Volume]) -> Iterator[EmbeddedPostgres]:
    """A server with pgbench's tables."""
    with EmbeddedPostgres(settings=SETTINGS, binaries=binaries, volumes=volumes) as engine:
        pgbench(engine, "-i", "-s", "1" if chosen.smoke else "5", "-q")
        yield engine


def one_load(name: str, engine: EmbeddedPostgres, chosen: argparse.Namespace, options: list[str]) -> None:
    """Prints both views of one load."""
    with tempfile.TemporaryDirectory() as runs:
        compare(name, Path(runs), both(engine, Path(runs), chosen.cost_limit / 100, options))


def main() -> None:
    """All loads."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--cost-limit", type=float, default=2)
    parser.add_argument("--own-core", action="store_true", help="the looks have a core for themselves, and spin")
    parser.add_argument("--bindir", type=Path, help="programs of another version of PostgreSQL")
    chosen = parse(parser, seconds=1)
    if chosen.own_core:
        chosen.cost_limit = 100
        os.sched_setaffinity(0, {max(CORES)})
    binaries = binaries_in(chosen.bindir, "--bindir") if chosen.bindir else None
    lasting = ["-n", *length(chosen.seconds, 5), "-M", "prepared"]
    crowd = "20" if SMOKE else "200"
    with tempfile.TemporaryDirectory() as folder:
        convoy, held, scan = (Path(folder) / f"{name}.sql" for name in ("convoy", "held", "scan"))
        convoy.write_text(CONVOY)
        held.write_text(CONVOY.replace("end;", "select pg_sleep(.02);\nend;"))
        scan.write_text(SCAN)
        loads = {
            "TPC-B, 4 sessions": ["-c", "4", *lasting],
            "select-only, 2 sessions": ["-S", "-c", "2", *lasting],
            "convoy on one row, 4 sessions": ["-f", str(convoy), "-c", "4", *lasting],
            f"TPC-B, {crowd} sessions": ["-c", crowd, *lasting],
            "parallel scans, 2 sessions": ["-f", str(scan), "-c", "2", *lasting],
        }
        with server(chosen, binaries, []) as engine:
            for name, options in loads.items():
                one_load(name, engine, chosen, options)
            compare_holders(engine, Path(folder), chosen.cost_limit / 100, ["-f", str(held), "-c", "4", *lasting])
        try:
            check_machine()
        except DeviceError as error:
            print(f"the slow disk is left out: {error}")
            return
        with server(chosen, binaries, volumes_of({"data": "disk-7200", "wal": "disk-7200"})) as engine:
            one_load("TPC-B on a slow disk, 4 sessions", engine, chosen, ["-c", "4", *lasting])


if __name__ == "__main__":
    main()
