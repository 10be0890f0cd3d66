"""Watches a hundred targets with one process, and measures how much one that never answers delays the others.

That one accepts connections, and says nothing.

    python benches/fleet.py [--targets 100] [--every 20] [--seconds 120] [--sample 1]

All answering targets are one embedded PostgreSQL with 50 tables, so that client and server share the machine. Printed:
CPU, memory and threads of the watching process, how many snapshots each target has of those that were due, and how
late they were.
"""

from __future__ import annotations

import argparse
import itertools
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from figures import figure, parse

from dbdyno.bench.postgres.server import Postgres, open_target
from dbdyno.snapshot.store.folder import Store

SETTINGS = {"shared_preload_libraries": "pg_stat_statements", "max_connections": "400", "shared_buffers": "64MB"}


def main() -> None:
    """Watches for so many seconds, and counts."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--targets", type=int, default=100)
    parser.add_argument("--every", type=float, default=20.0, help="seconds")
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--sample", type=float, default=1.0, help="seconds; 0 for never")
    given = parse(parser, targets=3, every=1.0, seconds=2.0)
    print(f"load of the machine {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores", flush=True)
    with open_target(None, settings=SETTINGS) as target, tempfile.TemporaryDirectory() as folder:
        with target.connect() as connection:
            connection.execute("create extension pg_stat_statements")
            for table in range(50):
                connection.execute(f"create table t{table} (id int primary key, v int)")
        with socket.create_server(("127.0.0.1", 0)) as silent:
            text = fleet(target, given, Path(folder), silent.getsockname()[1])
            (Path(folder) / "fleet.toml").write_text(text)
            watched(Path(folder), given)
        told(Path(folder) / "stores", given)


def fleet(target: Postgres, given: argparse.Namespace, folder: Path, hanging: int) -> str:
    """The file: one target that hangs, and the others."""
    known = target.conninfo()
    dsn = f"host={known['host']} port={known['port']} user={known['user']} dbname={known['dbname']}"
    rows = [f"store = '{folder / 'stores'}'\nevery = '{given.every:g}s'\nsample = '{given.sample:g}s'\n"]
    rows.append(f"[[target]]\nname = 'hangs'\ndsn = 'postgresql://m@127.0.0.1:{hanging}/x'\n")
    rows += [f"[[target]]\nname = 't{at:03d}'\ndsn = \"{dsn}\"\n" for at in range(1, given.targets)]
    return "\n".join(rows)


def watched(folder: Path, given: argparse.Namespace) -> None:
    """Runs the watch, looks at its process, ends it as systemd would."""
    seconds = given.seconds
    with (folder / "said").open("wb") as said:
        child = subprocess.Popen(
            [sys.executable, "-m", "dbdyno", "snap", "watch", str(folder / "fleet.toml")], stdout=said, stderr=said
        )
    began = time.perf_counter()
    threads = 0
    while time.perf_counter() - began < seconds and child.poll() is None:
        time.sleep(1)
        status = Path(f"/proc/{child.pid}/status").read_text()
        threads = max(threads, int(re.search(r"^Threads:\s+(\d+)", status, re.MULTILINE)[1]))
    child.terminate()
    _, _, used = os.wait4(child.pid, 0)
    passed = time.perf_counter() - began
    cpu = used.ru_utime + used.ru_stime
    print(f"one process for {passed:.0f} s: {cpu:.1f} s of CPU ({cpu / passed:.1%} of a core), {threads} threads,")
    print(f"  {used.ru_maxrss / 1024:.0f} MB at most; ended {passed - seconds:.1f} s after SIGTERM")
    what = f"watching {given.targets} targets every {given.every:g} s"
    figure(what, 100 * cpu / passed, "% of a core")
    figure(f"{what}: peak memory", used.ru_maxrss / 1024, "MB")


def told(stores: Path, given: argparse.Namespace) -> None:
    """Snapshots by target, and the time between two."""
    counts, gaps = [], []
    for at in range(1, given.targets):
        chain = list(Store(stores / f"t{at:03d}"))
        counts.append(len(chain))
        gaps += [(b.at_ns - a.at_ns) / 1e9 for a, b in itertools.pairwise(chain[:-1])]
    due = given.seconds / given.every
    print(f"{len(counts)} targets that answer, {due:.0f} snapshots of each due:")
    print(f"  {min(counts)} to {max(counts)} taken, {statistics.median(counts):g} at the middle")
    if gaps:
        gaps.sort()
        print(
            f"  {statistics.median(gaps):.1f} s between two, 99 % within {gaps[int(len(gaps) * 0.99)]:.1f}, at most"
            f" {gaps[-1]:.1f}"
        )
        what = f"longest gap of {given.targets} targets"
        figure(what, gaps[-1], "s", against="--every", ratio=gaps[-1] / given.every)
    print(f"the one that hangs: {len(Store(stores / 'hangs').numbers())} snapshots", flush=True)


if __name__ == "__main__":
    main()
