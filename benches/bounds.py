"""Measures the processor time that a report of snapshots, or an import of a trace, cannot avoid: a bound for each.

    python benches/bounds.py [--snapshots 43201] [--megabytes 200] [--rounds 5]

A report: the start of Python with click and DuckDB, the modules of a report (with their bytecode kept, as that of an
installed package is), one private database, a list of the folders of all snapshots, since each may have been deleted,
and a look at the manifests near the interval, since each may have been changed. What is left of the aim is for reading
the files of the interval and for the report itself.

An import of a trace: reading it and finding its lines, which is what `wc -l` does, and writing and syncing the bytes of
Parquet that it becomes. What is left of the aim is for decoding the records and encoding the columns. A profile of the
trace has the first part alone as its bound, so its bound against `wc -l` is 1.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from figures import figure, parse, with_bytecode
from replicate import fixture, replicate
from trace_kinds import deep
from traces import DBDYNO, measured, plain_reader

from dbdyno.snapshot.reading.sums.manifests import Manifests
from dbdyno.snapshot.store.manifest import NAME

START = "import click, duckdb"
DATABASE = f"{START}; duckdb.connect(config={{'threads': 1}})"
MODULES = f"{START}; import dbdyno.cli.main, dbdyno.cli.snap.report, dbdyno.judge.interval_report"
MODULES += "; import dbdyno.snapshot.engines.postgres, dbdyno.report.terminal"
AIM_S = 1.0
IMPORT_AIMS = {"waits": 20, "deep recursion": 16}
"""Aims of `trace import`: MB per CPU-second against the plain reader."""


def cpu_s(program: str, cache: Path, rounds: int) -> float:
    """The least processor time of a Python program, after one run that keeps its bytecode."""
    environment = with_bytecode(cache)
    found = []
    for _ in range(rounds + 1):
        process = subprocess.Popen([sys.executable, "-c", program], env=environment)
        _, status, usage = os.wait4(process.pid, 0)
        assert os.waitstatus_to_exitcode(status) == 0, program
        found.append(usage.ru_utime + usage.ru_stime)
    return min(found[1:])


def listing_s(folder: Path, count: int, rounds: int) -> float:
    """The least processor time of a list of so many snapshots, with a look at the manifests of the newest blocks."""
    for number in range(1, count + 1):
        place = folder / f"{number:06d}"
        place.mkdir()
        (place / NAME).write_bytes(b"{}")
    known = {block: (one[0], one[1]) for block, one in Manifests(folder).totals.items()}
    newest = max(known)
    found = []
    for _ in range(rounds):
        began = time.process_time()
        made = Manifests(folder, newest - 1, newest + 1, known)
        assert len(made.unseen) + len(made.totals) == len(known)
        found.append(time.process_time() - began)
    return min(found)


def writing_s(folder: Path, sizes: list[int], rounds: int) -> float:
    """The least processor time of writing and syncing files of these sizes [bytes]."""
    found = []
    for _ in range(rounds):
        began = time.process_time()
        for number, size in enumerate(sizes):
            with (folder / f"{number}.bytes").open("wb", buffering=0) as file:
                file.write(bytes(size))
                os.fsync(file.fileno())
        found.append(time.process_time() - began)
    return min(found)


def of_import(what: str, source: bytes, folder: Path, megabytes: int, rounds: int) -> None:
    """Prints the bound of an import of a trace beside what its aim allows."""
    trace, run = folder / "bound.trc", folder / "run"
    replicate(source, trace, megabytes)
    measured([*DBDYNO, "trace", "import", str(trace), "--out", str(run)])
    sizes = [file.stat().st_size for file in run.rglob("*.parquet")]
    shutil.rmtree(run)
    lines = min(measured(["wc", "-l", str(trace)])[1] for _ in range(rounds))
    written = writing_s(folder, sizes, rounds)
    size = trace.stat().st_size / 1e6
    allowed = size / (IMPORT_AIMS[what] * max(plain_reader(trace) for _ in range(rounds)))
    share = (lines + written) / allowed
    print(
        f"import, {what}, {size:.0f} MB: lines {lines:.3f} s, {sum(sizes) / 1e6:.1f} MB written {written:.3f} s of CPU"
    )
    print(f"import, {what}: the bound is {share:.0%} of the {allowed:.3f} s that {IMPORT_AIMS[what]}x allows")
    figure(f"reading and finding lines, {what}", lines, "s of CPU")
    figure(f"writing its Parquet, {what}", written, "s of CPU")
    figure(f"bound of an import, {what}", lines + written, "s of CPU", against="its aim", ratio=share, aim="< 1")


def main() -> None:
    """Prints the parts and their sum."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--snapshots", type=int, default=43_201, help="snapshots of the store: a month of minutes")
    parser.add_argument("--megabytes", type=int, default=200, help="of each trace")
    parser.add_argument("--rounds", type=int, default=5)
    given = parse(parser, snapshots=200, megabytes=2, rounds=1)
    with tempfile.TemporaryDirectory(prefix="dbdyno-bench-") as name:
        cache, folder = Path(name) / "bytecode", Path(name) / "snaps"
        folder.mkdir()
        start, database, modules = (cpu_s(one, cache, given.rounds) for one in (START, DATABASE, MODULES))
        parts = {
            "start of Python, click and DuckDB": start,
            "a private database": max(database - start, 0.0),
            "the modules of a report": max(modules - start, 0.0),
            f"a list of {given.snapshots:,} snapshots": listing_s(folder, given.snapshots, given.rounds),
        }
    whole = sum(parts.values())
    for what, cost in {**parts, "bound of a report": whole}.items():
        print(f"{what}: {cost:.3f} s of processor time")
        figure(what, cost, "s of CPU")
    print(f"{whole / AIM_S:.0%} of the aim of {AIM_S:g} s for a day")
    figure("bound against the aim for a day", whole, "s of CPU", against="aim of a day", ratio=whole / AIM_S, aim="< 1")
    with tempfile.TemporaryDirectory(prefix="dbdyno-bench-") as name:
        of_import("waits", fixture(), Path(name), given.megabytes, given.rounds)
        of_import("deep recursion", deep(), Path(name), given.megabytes, given.rounds)


if __name__ == "__main__":
    main()
