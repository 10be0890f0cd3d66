"""Moves a table to Parquet, Parquet into a table, and a table to another, with dbdyno and its peers alternately on
one server. The limit for writing files is COPY BINARY whose output is discarded; for loading, `COPY FROM` of a binary
file. The bound of two workers is the CPU of dbdyno and the server together, divided by the number of processors.

    python benches/move.py [--rounds 3] [--rows 2000000] [--way out|in|both] [--peers /path/to/python] [--spark ...]
    python benches/move.py --set-up    # Debian's pgloader and PostgreSQL's JDBC driver, into target/bench

Two million rows of nine columns, read once before so that they are in memory. Every reader is a process of its own, its
start included; order A B C, C B A. `--peers` names a Python that has connectorx,
adbc-driver-postgresql, pyarrow and duckdb (requirements-clients.txt), `--spark` one with pyspark
(requirements-extra.txt); what it lacks is left out and said to be. CPU of the reader is that of its process and of its
children. Wall time is
rough on a busy machine, CPU of the process less so; memory is its peak.

Reader and server share the processors. The bound of two workers is the CPU that the reader and the server together used
for it, divided by the number of processors: they cannot be faster on this machine even if no processor is ever idle.
The server's CPU is that of all of its processes, before and after; the kernel's own writing is not in it.
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
from pathlib import Path

import psycopg
from figures import SMOKE, dbdyno, figure, parse, with_bytecode
from move_peers import (
    ADBC,
    ADBC_IN,
    CONNECTORX,
    DUCKDB,
    DUCKDB_OUT,
    PGLOADER,
    SPARK_IN,
    SPARK_OUT,
    driver,
    set_up,
)
from psycopg.conninfo import make_conninfo

from dbdyno.bench.postgres.embedded import EmbeddedPostgres

PROGRAMS = Path(__file__).parent.parent / "target" / "bench"
TABLE = """
create table t as select g::bigint id, (g % 1000)::int k, (g % 7)::smallint s, (g / 100.0)::numeric(12,2) amount,
    g::float8 * 1.1 f, '2026-01-01'::timestamptz + g * interval '1 s' as at,
    case when g % 10 = 0 then null else '2026-01-01'::date + (g % 1000)::int end d,
    ('name ' || g % 50000)::varchar(40) as name, md5(g::text) note
from generate_series(1, {}) g
"""


ENVIRONMENT: dict[str, str] = {}
ENDING_S = 0.2
"""Time for the server's processes to end after a reader, before their CPU is read; not measured."""


class Reader:
    """One way to move the table, and what its turns cost."""

    def __init__(self, name: str, *command: str, needs: str = "") -> None:
        self.name = name
        self.command = command
        self.needs = needs
        self.wall: list[float] = []
        self.cpu: list[float] = []
        self.server_cpu: list[float] = []
        self.peak_mb = 0.0
        self.reason = ""

    def turn(self, folder: Path, postmaster: int) -> None:
        """Once, in a process of its own, into a folder that is gone afterwards."""
        if shutil.which(self.command[0]) is None:
            self.reason = f"{self.command[0]} is not installed"
        if self.needs and not Path(self.needs).exists():
            self.reason = f"{self.needs} is not there: python benches/move.py --set-up"
        if self.reason:
            return
        out = folder / "out"
        out.mkdir()
        words = [word.replace("OUT", str(out)) for word in self.command]
        server, begun = server_cpu_s(postmaster), time.monotonic()
        process = os.posix_spawnp(words[0], words, ENVIRONMENT, file_actions=_quiet(folder / "said"))
        _, status, usage = os.wait4(process, 0)
        if status:
            said = (folder / "said").read_text().strip().splitlines()
            self.reason = said[-1] if said else f"ended with {status}"
        else:
            self.wall.append(time.monotonic() - begun)
            self.cpu.append(usage.ru_utime + usage.ru_stime)
            time.sleep(ENDING_S)
            self.server_cpu.append(server_cpu_s(postmaster) - server)
            self.peak_mb = max(self.peak_mb, usage.ru_maxrss / 1024)
        shutil.rmtree(out)


def server_cpu_s(postmaster: int) -> float:
    """CPU time of all processes of a server so far: the postmaster, those that have ended, and those that run.

    A process that ends between the two looks would be in neither: it is read again until none ended meanwhile.
    """
    while True:
        own = _stat(postmaster)
        running = _of_children(postmaster)
        if _stat(postmaster)[13:15] == own[13:15]:
            break
    ended = sum(int(word) for word in own[11:15])  # utime, stime, cutime, cstime
    return (ended + running) / os.sysconf("SC_CLK_TCK")


def _of_children(postmaster: int) -> int:
    """CPU time of the running processes of a server [clock ticks]."""
    whole = 0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            one = _stat(int(folder.name))
        except OSError:  # it ended meanwhile
            continue
        if int(one[1]) == postmaster:
            whole += int(one[11]) + int(one[12])
    return whole


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat from the state on; the next one is the parent."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def _quiet(said: Path) -> list[tuple[int, ...]]:
    opened = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    return [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0), (os.POSIX_SPAWN_OPEN, 2, str(said), opened, 0o600)]  # type: ignore[list-item]


def main() -> None:
    """Prints a line per reader."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--way", choices=["out", "in", "both"], default="both")
    parser.add_argument("--peers", default=sys.executable)
    parser.add_argument("--spark", default=sys.executable, help="a Python with pyspark")
    parser.add_argument("--only", default="", help="readers whose names hold one of these, with commas between")
    parser.add_argument("--set-up", action="store_true")
    given = parse(parser, rounds=1, rows=2_000, way="both")
    if given.set_up:
        set_up(PROGRAMS)
        return
    settings = {"shared_buffers": "512MB", "autovacuum": False, "max_wal_size": "4GB"}
    with EmbeddedPostgres(settings=settings) as engine, tempfile.TemporaryDirectory() as place:
        known = engine.tcp_conninfo()
        dsn = make_conninfo("", **known)
        url = "postgresql://{user}:{password}@{host}:{port}/{dbname}".format(**known)
        with psycopg.connect(dsn, autocommit=True) as conn:
            conn.execute(TABLE.format(given.rows).encode())
            conn.execute("vacuum (freeze, analyze) t")
            conn.execute("select sum(id), sum(length(note)) from t")
            postmaster = int(_stat(conn.info.backend_pid)[1])
        ENVIRONMENT.update(with_bytecode(Path(place) / "bytecode"))
        for way, made in (("out", _out), ("in", _in)):
            if given.way in (way, "both"):
                readers = made(dsn, url, given, Path(place))
                if SMOKE:  # two workers do all that one does
                    readers = [one for one in readers if "1 worker" not in one.name]
                wanted = given.only.split(",")
                readers = [one for one in readers if one is readers[0] or any(word in one.name for word in wanted)]
                in_turn(readers, dsn if way == "in" else "", given.rounds, Path(place), postmaster)
                _print(way, readers, os.getloadavg()[0])


def in_turn(readers: list[Reader], dsn: str, rounds: int, place: Path, postmaster: int) -> None:
    """Every reader once a round, forwards and backwards. `dsn`: where their table is emptied before each."""
    for turn in range(rounds):
        for reader in readers if turn % 2 == 0 else readers[::-1]:
            if dsn:
                with psycopg.connect(dsn, autocommit=True) as conn:
                    conn.execute("truncate u")
                    conn.execute("checkpoint")
            reader.turn(place, postmaster)


def _out(dsn: str, url: str, given: argparse.Namespace, folder: Path) -> list[Reader]:
    peers, jar = given.peers, driver(PROGRAMS)
    move = (sys.executable, "-m", "dbdyno", "move", dsn, "--table", "t", "--to")
    return [
        Reader("COPY BINARY discarded", "psql", dsn, "-qc", "copy t to stdout (format binary)"),
        Reader("dbdyno, 1 worker", *move, "OUT", "--workers", "1"),
        Reader("dbdyno, 2 workers", *move, "OUT", "--workers", "2"),
        Reader("dbdyno, 2 workers, read again", *move, "OUT", "--workers", "2", "--verify", "files"),
        Reader("dbdyno, by values of a column", *move, "OUT", "--workers", "2", "--partition-by", "s"),
        Reader("dbdyno, one Arrow file", *move, "OUT/t.arrow", "--workers", "2"),
        Reader("dbdyno, one CSV file", *move, "OUT/t.csv", "--workers", "2"),
        Reader("ConnectorX, stream", peers, "-c", CONNECTORX, url, "OUT"),
        Reader("ADBC", peers, "-c", ADBC, url, "OUT"),
        Reader("DuckDB's extension", peers, "-c", DUCKDB_OUT, url, "OUT"),
        Reader("Spark JDBC, 2 partitions", given.spark, "-c", SPARK_OUT, url, "OUT", jar, str(given.rows), needs=jar),
    ]


def _in(dsn: str, url: str, given: argparse.Namespace, folder: Path) -> list[Reader]:
    """The same rows into an empty table, from files that were written before."""
    peers, jar = given.peers, driver(PROGRAMS)
    files, binary, csv, plan = folder / "files", folder / "t.copy", folder / "t.csv", folder / "t.load"
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("create table u (like t)")
    dbdyno("move", dsn, "--table", "t", "--to", str(files), "--workers", "2").check_returncode()
    with binary.open("wb") as out:
        subprocess.run(["psql", dsn, "-qc", "copy t to stdout (format binary)"], check=True, stdout=out)
    with csv.open("wb") as out:
        subprocess.run(["psql", dsn, "-qc", "copy t to stdout (format csv, header)"], check=True, stdout=out)
    plan.write_text(PGLOADER.format(csv=csv, url=url))
    move = (sys.executable, "-m", "dbdyno", "move")
    to = ("--to", dsn, "--table", "u", "--mode", "replace", "--workers")
    across = (*move, dsn, "--to", dsn, "--table", "t", "--into", "u", "--job", "OUT", "--mode", "replace", "--workers")
    return [
        Reader("COPY FROM of a binary file", "psql", dsn, "-qc", f"\\copy u from '{binary}' (format binary)"),
        Reader("dbdyno, files in, 1 worker", *move, str(files), *to, "1"),
        Reader("dbdyno, files in, 2 workers", *move, str(files), *to, "2"),
        Reader("dbdyno, table to table, 1 worker", *across, "1"),
        Reader("dbdyno, table to table, 2", *across, "2"),
        Reader("ADBC, ingest", peers, "-c", ADBC_IN, url, str(files)),
        Reader("DuckDB's extension", peers, "-c", DUCKDB, url, str(files)),
        Reader("pgloader, from CSV", "pgloader", str(plan)),
        Reader("Spark JDBC", given.spark, "-c", SPARK_IN, url, str(files), jar, needs=jar),
    ]


def _print(way: str, readers: list[Reader], load: float) -> None:
    limit = statistics.median(readers[0].wall)
    print(f"{way:32}{'wall s':>8}{'least':>8}{'of COPY':>9}{'CPU s':>8}{'server':>8}{'peak MB':>9}   (load {load:.1f})")
    for one in readers:
        if one.reason:
            print(f"{one.name:32}left out: {one.reason}")
            continue
        wall = statistics.median(one.wall)
        share = f"{limit / wall:.0%}"
        cpu, server = statistics.median(one.cpu), statistics.median(one.server_cpu)
        print(f"{one.name:32}{wall:8.2f}{min(one.wall):8.2f}{share:>9}{cpu:8.2f}{server:8.2f}{one.peak_mb:9.0f}")
        peer = readers[0].name
        figure(f"{way}: {one.name}", wall, "s", against=peer, ratio=wall / limit)
        if one.name.endswith("2 workers"):
            bound = statistics.median(map(sum, zip(one.cpu, one.server_cpu, strict=True))) / len(
                os.sched_getaffinity(0)
            )
            print(f"{'  bound by the processors':32}{bound:8.2f}{'':8}{f'{limit / bound:.0%}':>9}")
            figure(f"{way}: {one.name}: bound", bound, "s", against=peer, ratio=bound / limit)


if __name__ == "__main__":
    main()
