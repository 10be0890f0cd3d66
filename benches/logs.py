"""Measures seconds and peak memory of `dbdyno trace import --log FILE --out RUN` for a GB of each log format.

    python benches/logs.py [--megabytes 1000] [--rounds 3] [--transactions 2000]

A server of our own logs pgbench with log_min_duration_statement = 0 as text, csvlog and jsonlog: TPC-B by the simple
protocol, whose entries are the shortest there are, then extended and prepared, with their parameters. Each log is
repeated to that size, one day later each time. A MariaDB of our own writes its slow and general logs of the same five
statements. Measured is the whole process, the best of several, beside `wc -l` of the same file, which is in the memory
of the machine.
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
from datetime import date, datetime, timedelta
from pathlib import Path

from figures import SMOKE, figure, lacks, parse

from dbdyno.base.errors import TargetError
from dbdyno.bench.mariadb.embedded import EmbeddedMariaDB
from dbdyno.bench.mariadb.session import open_session
from dbdyno.bench.postgres.embedded import EmbeddedPostgres

SETTINGS = {
    "logging_collector": True,
    "log_destination": "stderr,csvlog,jsonlog",
    "log_filename": "pg.log",
    "log_line_prefix": "%m [%p] ",
    "log_min_duration_statement": 0,
    "autovacuum": False,
}
MARIADB_SETTINGS = {
    "general_log": "1",
    "general_log_file": "general.log",
    "slow_query_log": "1",
    "slow_query_log_file": "slow.log",
    "long_query_time": "0",
}
MARIADB_TABLES = (
    "create table accounts (aid int primary key, abalance int not null)",
    "insert into accounts select seq, 0 from seq_1_to_1000",
    "create table history (aid int, delta int, mtime timestamp)",
)
MARIADB_TRANSACTION = (
    "begin",
    "update accounts set abalance = abalance + {delta} where aid = {aid}",
    "select abalance from accounts where aid = {aid}",
    "insert into history (aid, delta, mtime) values ({aid}, {delta}, current_timestamp)",
    "commit",
)
DAY_S = 86_400
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


def logged_by_mariadb(folder: Path, transactions: int) -> None:
    """Slow and general log of a MariaDB that executes these transactions, into the folder."""
    with EmbeddedMariaDB(MARIADB_SETTINGS) as engine:
        with contextlib.closing(open_session(engine.parameters())) as connection, connection.cursor() as cursor:
            for text in MARIADB_TABLES:
                cursor.execute(text)
            for number in range(transactions):
                for text in MARIADB_TRANSACTION:
                    cursor.execute(text.format(aid=1 + number % 1000, delta=number % 77))
        for name in ("slow.log", "general.log"):
            (found,) = engine.folder.rglob(name)
            shutil.copy(found, folder / name)


def repeated_of_mariadb(source: Path, to: Path, megabytes: int) -> int:
    """Repeats a log of MariaDB to that size, one day later each time; returns the number of its bytes."""
    once, written, days = source.read_bytes(), 0, 0
    with to.open("wb") as out:
        while written < megabytes * 1_000_000:
            written += out.write(later(once, days))
            days += 1
    return written


def later(log: bytes, days: int) -> bytes:
    """A log of MariaDB whose times are these days later."""

    def day(found: re.Match[bytes]) -> bytes:
        of = datetime.strptime(found[2].decode(), "%y%m%d") + timedelta(days=days)
        return found[1] + of.strftime("%y%m%d").encode()

    def second(found: re.Match[bytes]) -> bytes:
        return b"SET timestamp=%d;" % (int(found[1]) + days * DAY_S)

    return re.sub(rb"SET timestamp=(\d+);", second, re.sub(rb"(?m)^(# Time: |)(\d{6})(?=  ?\d)", day, log))


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
    given = parse(parser, megabytes=1, rounds=1, transactions=40)
    print(f"load of the machine {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores", flush=True)
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="dbdyno-bench-", dir="/var/tmp")))
        for name, protocols in (("all", ALL),) if SMOKE else (("simple", SIMPLE), ("all", ALL)):
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
            if not (folder / made).exists():
                continue
            log = folder / to
            size = replicated(folder / made / name, log, given.megabytes)
            importing(what, log, size, given.rounds)
            log.unlink()
        try:
            logged_by_mariadb(folder, given.transactions)
        except TargetError as error:
            print(f"MariaDB's logs are left out: {error}", file=sys.stderr)
            return
        for what, name in (("MariaDB's slow log", "slow.log"), ("MariaDB's general log", "general.log")):
            log = folder / f"long-{name}"
            size = repeated_of_mariadb(folder / name, log, given.megabytes)
            importing(what, log, size, given.rounds)
            log.unlink()


if __name__ == "__main__":
    main()
