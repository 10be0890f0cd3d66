"""Measures the processor time that no report of snapshots by a command can avoid, and adds it up to a bound.

    python benches/bounds.py [--snapshots 43201] [--rounds 5]

The parts: the start of Python with click and DuckDB, the modules of a report (with their bytecode kept, as that of an
installed package is), one private database, and a look at the manifest of each snapshot, since each may have been
changed. What is left of the aim is for reading the files of the interval and for the report itself.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from figures import figure, parse

from dbdyno.snapshot.reading.sums.manifests import Manifests
from dbdyno.snapshot.store.manifest import NAME

START = "import click, duckdb"
DATABASE = f"{START}; duckdb.connect(config={{'threads': 1}})"
MODULES = f"{START}; import dbdyno.cli.main, dbdyno.cli.snap.report, dbdyno.judge.interval_report"
MODULES += "; import dbdyno.snapshot.engines.postgres, dbdyno.report.terminal"
AIM_S = 1.0


def cpu_s(program: str, cache: str, rounds: int) -> float:
    """The least processor time of a Python program, after one run that keeps its bytecode."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = cache
    found = []
    for _ in range(rounds + 1):
        process = subprocess.Popen([sys.executable, "-c", program], env=environment)
        _, status, usage = os.wait4(process.pid, 0)
        assert os.waitstatus_to_exitcode(status) == 0, program
        found.append(usage.ru_utime + usage.ru_stime)
    return min(found[1:])


def listing_s(folder: Path, count: int, rounds: int) -> float:
    """The least processor time of a look at the manifests of so many snapshots."""
    for number in range(1, count + 1):
        place = folder / f"{number:06d}"
        place.mkdir()
        (place / NAME).write_bytes(b"{}")
    found = []
    for _ in range(rounds):
        began = time.process_time()
        assert sum(one[0] for one in Manifests(folder).totals.values()) == count
        found.append(time.process_time() - began)
    return min(found)


def main() -> None:
    """Prints the parts and their sum."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--snapshots", type=int, default=43_201, help="snapshots of the store: a month of minutes")
    parser.add_argument("--rounds", type=int, default=5)
    given = parse(parser, snapshots=200, rounds=1)
    with tempfile.TemporaryDirectory(prefix="dbdyno-bench-") as name:
        cache, folder = str(Path(name) / "bytecode"), Path(name) / "snaps"
        folder.mkdir()
        start, database, modules = (cpu_s(one, cache, given.rounds) for one in (START, DATABASE, MODULES))
        parts = {
            "start of Python, click and DuckDB": start,
            "a private database": max(database - start, 0.0),
            "the modules of a report": max(modules - start, 0.0),
            f"a look at {given.snapshots:,} manifests": listing_s(folder, given.snapshots, given.rounds),
        }
    whole = sum(parts.values())
    for what, cost in {**parts, "bound of a report": whole}.items():
        print(f"{what}: {cost:.3f} s of processor time")
        figure(what, cost, "s of CPU")
    print(f"{whole / AIM_S:.0%} of the aim of {AIM_S:g} s for a day")
    figure("bound against the aim for a day", whole, "s of CPU", against="aim of a day", ratio=whole / AIM_S, aim="< 1")


if __name__ == "__main__":
    main()
