"""Compares ways to see what sessions wait for, on one server of PostgreSQL 15: what each finds, and what it costs.

    python benches/wait_ways.py [--seconds 5] [--rounds 4] [--extension FOLDER]

The ways: probes (`trace record --mode sites`), looks (`--mode read`), `snap watch --sample 100ms` by memory and by
queries, and the extension pg_wait_sampling at its default period of 10 ms. FOLDER holds the unpacked Debian package
postgresql-15-pg-wait-sampling; without it an installed one is used.

Found: one turn of pgbench's TPC-B with four sessions under all of them at once; the time of each event over that of the
probes. Cost: turns of select-only (one session) beside one way each, in a new random order every round; the CPU time
of a transaction in the backend, and the throughput; "nothing again" is a second turn without any way, as a measure of
what turns differ by themselves. The extension needs a server that was started with it, so it has a
server of its own. The server and pgbench are pinned to one processor, the ways to another if there is one.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import io
import os
import random
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import psycopg
from figures import figure, lacks, length, parse
from psycopg.conninfo import make_conninfo
from record import pgbench, recorded, turn
from record_read import WAITS

from dbdyno.base.errors import TargetError
from dbdyno.bench.postgres.binaries import find_binaries
from dbdyno.bench.postgres.embedded import EmbeddedPostgres
from dbdyno.bench.postgres.server import Postgres
from dbdyno.snapshot.engines.postgres.sampler import ACTIVITY, Sampler
from dbdyno.trace.record.process import ServerProcess
from dbdyno.trace.record.recording import RecordingOptions, recording

EXTENSION = "pg_wait_sampling"
PERIOD_MS = 10
SAMPLE_NS = 100_000_000
PROFILE = """
select event_type || ':' || event, sum(count) from pg_wait_sampling_get_profile() p
where pid in (select pid from pg_wait_sampling_get_profile() where event = 'ClientRead')
  and event is not null and event <> 'ClientRead' group by 1
"""
AT = {column.name: place for place, column in enumerate(ACTIVITY)}
WAYS = ("nothing", "nothing again", "sites", "read", "snap by memory", "snap by queries", EXTENSION)
LEAST_MS = 5.0


def library_of(folder: Path | None) -> tuple[Path, Path] | None:
    """The extension's library without its suffix, and its script, of an unpacked package or of an installed one."""
    root = folder or Path("/")
    library = root / "usr/lib/postgresql/15/lib" / EXTENSION
    script = root / "usr/share/postgresql/15/extension" / f"{EXTENSION}--1.1.sql"
    return (library, script) if library.with_suffix(".so").exists() and script.exists() else None


def load_extension(engine: EmbeddedPostgres, library: Path, script: Path) -> None:
    """Makes the extension's functions, by its script: it need not be among the server's own files."""
    text = script.read_text().replace("MODULE_PATHNAME", str(library))
    statements = "\n".join(line for line in text.splitlines() if not line.startswith("\\"))
    with psycopg.connect(**engine.conninfo(), autocommit=True) as connection:  # type: ignore[arg-type]
        connection.execute(statements)


@contextlib.contextmanager
def elsewhere() -> Iterator[None]:
    """Threads that are started in the block run on the processors that the server does not use."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, set(range(os.cpu_count() or 1)) - before or before)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextlib.contextmanager
def sampling(engine: EmbeddedPostgres, period_ns: int, *, by_memory: bool) -> Iterator[Counter[str]]:
    """The sampler of `snap watch` while the block runs; afterwards, the time of each event in ms."""
    sampler = Sampler(Postgres.open(make_conninfo("", **engine.conninfo())), period_ns=period_ns, by_memory=by_memory)
    found: Counter[str] = Counter()
    with sampler:
        while sampler.source is None:
            time.sleep(0.01)
        begin = time.monotonic()
        yield found
        elapsed_ms = (time.monotonic() - begin) * 1e3
        time.sleep(2 * period_ns / 1e9)
    views, looks = sampler.take()
    for row in csv.reader(io.StringIO(bytes(views[0].rows).decode())):
        if row[AT["kind"]] == "client backend" and row[AT["event"]]:
            found[f"{row[AT['event_type']]}:{row[AT['event']]}"] += elapsed_ms / max(looks, 1)


def profile(engine: EmbeddedPostgres) -> Counter[str]:
    """The time of each event in ms by the extension."""
    with psycopg.connect(**engine.conninfo(), autocommit=True) as connection:  # type: ignore[arg-type]
        return Counter({name: int(count) * PERIOD_MS for name, count in connection.execute(PROFILE).fetchall()})


def timed(run: Path) -> Counter[str]:
    """The time of each event in ms by a recording."""
    with duckdb.connect() as connection:
        sums = connection.execute(f"select event, sum(ns) / 1e6 from ({WAITS.format(run=run)}) group by 1").fetchall()
    return Counter({name: float(ms) for name, ms in sums if name != "unobserved"})


def compare_found(engine: EmbeddedPostgres, options: list[str]) -> None:
    """One turn under all ways at once."""
    place = ServerProcess(int(engine.pid or 0))
    with tempfile.TemporaryDirectory() as name:
        sites, read = Path(name) / "sites", Path(name) / "read"
        with contextlib.ExitStack() as stack:
            with elsewhere():
                stack.enter_context(recording(place, sites, RecordingOptions(cost_limit=0, mode="sites")))
                looks = stack.enter_context(recording(place, read, RecordingOptions(mode="read")))
                memory = stack.enter_context(sampling(engine, SAMPLE_NS, by_memory=True))
                queries = stack.enter_context(sampling(engine, SAMPLE_NS, by_memory=False))
            before = profile(engine)
            pgbench(engine, *options)
            extension = profile(engine) - before
        exact = timed(sites)
        ways = {"read": timed(read), "snap by memory": memory, "snap by queries": queries, EXTENSION: extension}
    print(f"TPC-B, 4 sessions, under all ways at once; a look of `read` every {looks.report['mean_ns'] / 1e3:.0f} us")
    print(f"  {'event':24} {'probes, ms':>10} " + " ".join(f"{way:>16}" for way in ways))
    for event, ms in exact.most_common():
        if ms < LEAST_MS or ":" not in event:  # the extension's collector rests in `Extension`
            continue
        ratios = {way: found[event] / ms for way, found in ways.items()}
        print(f"  {event:24} {ms:10,.1f} " + " ".join(f"{ratio:16.3f}" for ratio in ratios.values()))
        for way, ratio in ratios.items():
            figure(f"{event} by {way}", ways[way][event], "ms", against="probes", ratio=ratio)


@contextlib.contextmanager
def way_of(engine: EmbeddedPostgres, way: str) -> Iterator[dict[str, Any]]:
    """A way to look while the block runs; the extension is in the server."""
    looking: contextlib.AbstractContextManager[Any]
    if way.startswith("snap"):
        looking = sampling(engine, SAMPLE_NS, by_memory=way.endswith("memory"))
    else:
        looking = recorded(engine, way if way in ("sites", "read") else None)
    with contextlib.ExitStack() as stack:
        with elsewhere():
            told = stack.enter_context(looking)
        yield {} if way.startswith("snap") else told


def compare_costs(engines: dict[str, EmbeddedPostgres], rounds: int, options: list[str]) -> None:
    """Turns of all ways, in a new order every round; each beside the turn without any way of its round."""
    dice = random.Random(43)
    turns: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
    for _ in range(rounds):
        for way in dice.sample(WAYS, len(WAYS)):
            engine = engines.get(way, engines["nothing"])
            turns[way].append(turn(engine, way_of(engine, way), options))
    print(f"select-only, 1 session, {rounds} rounds (medians; ratios of the same round)")
    for way, ones in turns.items():
        cpu_us = statistics.median(one["cpu_us"] for one in ones)
        ratio, tps = (
            statistics.median(one[what] / base[what] for one, base in zip(ones, turns["nothing"], strict=True))
            for what in ("cpu_us", "tps")
        )
        print(f"  {way:16} CPU of a transaction {cpu_us:6.1f} us ({ratio:.3f}), throughput {tps:.3f}")
        if way != "nothing":
            figure(f"select-only beside {way}: CPU of a transaction", cpu_us, "us", against="nothing", ratio=ratio)
            figure(f"select-only beside {way}: throughput", tps, "ratio", against="nothing", ratio=tps)


def main() -> None:
    """What the ways find, and what they cost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--extension", type=Path, metavar="FOLDER")
    chosen = parse(parser, rounds=1, seconds=1)
    found = library_of(chosen.extension)
    try:
        binaries = find_binaries({**os.environ, "DBDYNO_ENGINE": "installed", "DBDYNO_PG_BIN": ""})
    except TargetError as error:
        lacks(f"no installed PostgreSQL: {error.message}")
    if found is None or binaries.major != 15:
        lacks("needs PostgreSQL 15 and pg_wait_sampling, of Debian's package postgresql-15-pg-wait-sampling")
    # The servers, pgbench and whatever is not started `elsewhere` stay on one processor.
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    settings = {"shared_preload_libraries": EXTENSION, "dynamic_library_path": f"{found[0].parent}:$libdir"}
    with (
        EmbeddedPostgres(binaries=binaries) as plain,
        EmbeddedPostgres(binaries=binaries, settings=settings) as extended,
    ):
        for engine in (plain, extended):
            pgbench(engine, "-i", "-s", "1" if chosen.smoke else "5", "-q")
        load_extension(extended, *found)
        lasting = ["-n", *length(chosen.seconds, 100), "-M", "prepared"]
        compare_found(extended, ["-c", "4", *lasting])
        compare_costs({"nothing": plain, EXTENSION: extended}, chosen.rounds, ["-S", "-c", "1", *lasting])


if __name__ == "__main__":
    main()
