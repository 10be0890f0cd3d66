"""Compares the command `move --database` from server to server with pg_dump and pg_restore, and with pgcopydb.

    python benches/move_database.py [--mb 2000] [--rounds 3] [--workers 2] [--skew 0.5]

A made database of 50 tables and 200 indexes (with foreign keys and sequences) on one server goes into an empty database
on another, in turn by each mover, forwards and backwards. The size of the n-th table falls as n to the power of
`--skew`: 0 makes all equal. All use the same number of sessions, on servers with their default durability.

- dbdyno with `--verify counts`, which is what the others do; and with its default, which reads the target again;
- `pg_dump -Fd -j` into a folder, then `pg_restore -j`: a folder cannot be piped; then with `vacuumdb`'s analysis in
  stages, without which nobody uses the database, and which dbdyno and pgcopydb do by themselves;
- pgcopydb (Debian's package), if it is installed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import psycopg
from figures import SMOKE, figure, parse

from dbdyno.bench.postgres.binaries import find_binaries
from dbdyno.bench.postgres.embedded import EmbeddedPostgres

TABLES = 6 if SMOKE else 50
ROW_BYTES = 245
"""Size of a row with its indexes [bytes]."""
TABLE = """
create table shop.t{n} (id bigserial primary key, k int not null, at timestamptz not null default now(),
    amount numeric(12,2), name varchar(40), note text);
insert into shop.t{n} (k, at, amount, name, note)
select g % 1000, '2026-01-01'::timestamptz + g * interval '1 s', g / 100.0, 'name ' || g % 50000,
       md5(g::text) || md5((-g)::text)
from generate_series(1, {rows}) g;
create index on shop.t{n} (k); create index on shop.t{n} (at, k); create index on shop.t{n} (name);
"""
SETTINGS = {"shared_buffers": "512MB", "max_wal_size": "4GB", "autovacuum": False}
Run = Callable[[str, str, Path], None]


def fill(dsn: str, mb: float, skew: float) -> None:
    """Makes the database."""
    weights = [1 / (n + 1) ** skew for n in range(TABLES)]
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("create schema shop")
        for n, weight in enumerate(weights):
            rows = max(round(mb * 1e6 / ROW_BYTES * weight / sum(weights)), 10)
            conn.execute(TABLE.format(n=n, rows=rows).encode())
            if n:
                conn.execute(f"alter table shop.t{n} add foreign key (id) references shop.t{n - 1}".encode())
        conn.execute("vacuum (freeze, analyze)")
        conn.execute("checkpoint")
        found = conn.execute(
            "select pg_database_size(current_database()) / 1e6, count(*) from pg_indexes where schemaname = 'shop'"
        ).fetchone()
    size, indexes = found or (0, 0)
    print(f"{TABLES} tables, {indexes} indexes, {size:,.0f} MB")


def dbdyno(workers: int, *options: str) -> Run:
    """Returns the run of our mover."""

    def run(source: str, target: str, folder: Path) -> None:
        words = [sys.executable, "-m", "dbdyno", "move", source, target, "--database", "--job", str(folder / "job")]
        call([*words, "--workers", str(workers), *options])

    return run


def dump_and_restore(workers: int, *, analysed: bool) -> Run:
    """Returns the run of PostgreSQL's own programs."""
    place = find_binaries().bindir

    def run(source: str, target: str, folder: Path) -> None:
        out = str(folder / "dump")
        call([str(place / "pg_dump"), "-Fd", f"-j{workers}", "-f", out, source])
        call([str(place / "pg_restore"), f"-j{workers}", "-d", target, out])
        if analysed:
            call([str(place / "vacuumdb"), f"-j{workers}", "--analyze-in-stages", "-d", target])

    return run


def pgcopydb(workers: int) -> Run:
    """Returns the run of pgcopydb."""

    def run(source: str, target: str, folder: Path) -> None:
        words = ["pgcopydb", "clone", "--source", source, "--target", target, "--dir", str(folder / "pgcopydb")]
        call([*words, "--table-jobs", str(workers), "--index-jobs", str(workers)])

    return run


def call(words: list[str]) -> None:
    """Runs a program; raises an error with its words where it fails."""
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{words[0]}: {' | '.join(done.stdout.strip().splitlines()[-8:])}")


def main() -> None:
    """Prints a line per mover."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mb", type=float, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--skew", type=float, default=0.5)
    given = parse(parser, mb=1, rounds=1)
    movers = {
        "dbdyno, --verify counts": dbdyno(given.workers, "--verify", "counts"),
        "dbdyno, rows read again": dbdyno(given.workers),
        "pg_dump, pg_restore": dump_and_restore(given.workers, analysed=False),
        "pg_dump, pg_restore, vacuumdb": dump_and_restore(given.workers, analysed=True),
    }
    if shutil.which("pgcopydb"):
        movers["pgcopydb"] = pgcopydb(given.workers)
    else:
        print("pgcopydb is not installed, and is left out", file=sys.stderr)
    took: dict[str, list[float]] = {name: [] for name in movers}
    with (
        EmbeddedPostgres(settings=SETTINGS) as here,
        EmbeddedPostgres(settings=SETTINGS) as there,
        tempfile.TemporaryDirectory(dir="/var/tmp") as place,
    ):
        source, target = (url(one) for one in (here, there))
        fill(source, given.mb, given.skew)
        for turn in range(given.rounds):
            for name in list(movers) if turn % 2 == 0 else list(movers)[::-1]:
                took[name].append(turn_of(movers[name], source, target, Path(place)))
                print(f"  {name}: {took[name][-1]:.2f} s", flush=True)
    show(took)


def url(engine: EmbeddedPostgres) -> str:
    """Returns the connection string of a server."""
    return "postgresql://{user}:{password}@{host}:{port}/{dbname}".format(**engine.tcp_conninfo())


def turn_of(run: Run, source: str, target: str, place: Path) -> float:
    """Moves into a new database, and returns the seconds."""
    with psycopg.connect(target, autocommit=True) as conn:
        conn.execute("drop database if exists copy")
        conn.execute("create database copy template template0")
        conn.execute("checkpoint")
    with tempfile.TemporaryDirectory(dir=place) as folder:
        began = time.monotonic()
        run(source, target.rpartition("/")[0] + "/copy", Path(folder))
        return time.monotonic() - began


def show(took: dict[str, list[float]]) -> None:
    """Prints medians, and their ratios to ours."""
    own, *others = took
    limit = statistics.median(took[own])
    print(f"{'':32}{'median s':>10}{'least s':>10}{'of dbdyno':>11}   (load {os.getloadavg()[0]:.1f})")
    for name, seconds in took.items():
        middle = statistics.median(seconds)
        print(f"{name:32}{middle:10.2f}{min(seconds):10.2f}{middle / limit:11.2f}")
        figure(name, middle, "s", against=own, ratio=middle / limit)
    peers = {name: statistics.median(took[name]) for name in others if not name.startswith("dbdyno")}
    fastest = min(peers, key=lambda name: peers[name])
    print(f"dbdyno takes {limit / peers[fastest]:.2f} of the time of the fastest peer ({fastest})")
    figure("dbdyno beside the fastest peer", limit, "s", against=fastest, ratio=limit / peers[fastest], aim="at most 1")


if __name__ == "__main__":
    main()
