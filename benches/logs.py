"""Measures seconds and peak memory of `dbdyno trace import --log FILE --out RUN` for a GB of each log format.

    python benches/logs.py [--megabytes 1000] [--rounds 3] [--transactions 2000]

A server of our own logs pgbench with log_min_duration_statement = 0 as text, csvlog and jsonlog: TPC-B by the simple
protocol, whose entries are the shortest there are, then extended and prepared, with their parameters. Each log is
repeated to that size, one day later each time. Measured is the whole process, the best of several, beside `wc -l` of
the same file, which is in the memory of the machine.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from datetime import date, timedelta
from pathlib import Path

from figures import figure, lacks, parse

from dbdyno.bench.postgres.embedded import EmbeddedPostgres

SETTINGS = {
    "logging_collector": True,
    "log_destination": "stderr,csvlog,jsonlog",
    "log_filename": "pg.log",
    "log_line_prefix": "%m [%p] ",
    "log_min_duration_statement": 0,
    "autovacuum": False,
}
SIMPLE, ALL = ("simple",), ("simple", "extended", "prepared")
COMMAND = [sys.executable, "-m", "dbdyno", "trace", "import", "--log"]


def logged(protocols: tuple[str, ...], folder: Path, transactions: int) -> None:
    """Logs of pgbench by these protocols, in all forms, into the folder."""
    with EmbeddedPostgres(settings=SETTINGS) as engine:
        program = engine.binaries.program("pgbench")
        if not program.exists():
            lacks("pgbench is not beside the server: make setup-test installs it")
        known = engine.conninfo()
        names = {"host": "PGHOST", "port": "PGPORT", "user": "PGUSER", "dbname": "PGDATABASE"}
        environment = {**os.environ, **{names[key]: value for key, value in known.items() if key in names}}
        words = [["-i", "-q", "-s", "1"]]
        words += [["-n", "-M", protocol, "-c", "4", "-j", "2", "-t", str(transactions // 4)] for protocol in protocols]
        for each in words:
            subprocess.run([str(program), *each], env=environment, check=True, capture_output=True)
        time.sleep(0.5)
        for file in (engine.socket_dir.parent / "data" / "log").iterdir():
            shutil.copy(file, folder / file.name)


def replicated(source: Path, to: Path, megabytes: int) -> int:
    """Repeats a log to that size, one day later each time; returns the number of its bytes."""
    once = source.read_bytes()
    found = re.search(rb"\d{4}-\d\d-\d\d", once)
    assert found is not None
    day, written = date.fromisoformat(found[0].decode()), 0
    with gzip.open(to, "wb", 1) if to.suffix == ".gz" else to.open("wb") as out:
        while written < megabytes * 1_000_000:
            written += out.write(once.replace(found[0], day.isoformat().encode()))
            day += timedelta(days=1)
    return written


def measured(command: list[str]) -> tuple[float, float, float]:
    """Wall seconds, CPU seconds and peak MB of a command."""
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    said = process.stdout.read() if process.stdout else b""
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - started
    if os.waitstatus_to_exitcode(status):
        raise SystemExit(f"{command} failed: {said.decode()}")
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def importing(what: str, log: Path, size: int, rounds: int) -> None:
    """Seconds for a gigabyte, and peak memory."""
    out = log.parent / "run"
    runs = []
    for _ in range(rounds):
        shutil.rmtree(out, ignore_errors=True)
        runs.append(measured([*COMMAND, str(log), "--out", str(out)]))
    gigabytes = size / 1e9
    wall, cpu, _ = min(runs)
    peak = max(run[2] for run in runs)
    beside, _, _ = min(measured(["wc", "-l", str(log)]) for _ in range(rounds))
    kept = sum(file.stat().st_size for file in out.rglob("*.parquet")) / 1e6
    print(
        f"{what}, {size / 1e6:.0f} MB: {wall / gigabytes:.2f} s for a GB ({wall:.2f} s, {cpu:.2f} of CPU),"
        f" peak {peak:.0f} MB, {kept:.0f} MB of Parquet; wc -l of the file {beside:.2f} s",
        flush=True,
    )
    ratio = {} if log.suffix == ".gz" else {"against": "wc -l", "ratio": wall / max(beside, 1e-6)}
    figure(f"a GB of {what}", wall / gigabytes, "s", **ratio, aim="< 20")
    figure(f"a GB of {what}: peak memory", peak, "MB", aim="< 300")


def main() -> None:
    """Each form, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--transactions", type=int, default=2000)
    given = parse(parser, megabytes=2, rounds=1, transactions=40)
    print(f"load of the machine {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores", flush=True)
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="dbdyno-bench-", dir="/var/tmp")))
        for name, protocols in (("simple", SIMPLE), ("all", ALL)):
            (folder / name).mkdir()
            logged(protocols, folder / name, given.transactions)
        rows = {
            "text, shortest statements": ("simple", "pg.log", "pg.log"),
            "text, three protocols": ("all", "pg.log", "pg.log"),
            "csvlog, shortest statements": ("simple", "pg.csv", "pg.csv"),
            "csvlog, three protocols": ("all", "pg.csv", "pg.csv"),
            "csvlog, gzip": ("all", "pg.csv", "pg.csv.gz"),
            "jsonlog, three protocols": ("all", "pg.json", "pg.json"),
        }
        for what, (made, name, to) in rows.items():
            log = folder / to
            size = replicated(folder / made / name, log, given.megabytes)
            importing(what, log, size, given.rounds)
            log.unlink()


if __name__ == "__main__":
    main()
