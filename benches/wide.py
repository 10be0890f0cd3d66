"""Loads rows into a wide table of Cassandra, and queries one, with dbdyno and its peers alternately on one node.

    make setup-wide; .venv/bin/pip install -r requirements-extra.txt -r requirements-clients.txt
    python benches/wide.py [--rounds 2] [--rows 200000] [--part load|read] [--only WORDS]

A node of our own with 512 MB of heap, a PostgreSQL beside it that the rows come from. Every one is a process of its
own, its start included (a JVM is seconds); order A B C, C B A. CPU and peak memory are those of the process and of all
that it started, looked at ten times a second; the node's CPU stands apart. Each load goes into an emptied table, and
rows and their sum are compared after it; each answer is compared with PostgreSQL's.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
import psycopg
from figures import figure, lacks, parse
from psycopg.conninfo import make_conninfo
from wide_peers import CONCURRENT, CONNECTOR, PANDAS

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
import cassandra_server
from dbdyno.bench.postgres.embedded import EmbeddedPostgres
from dbdyno.wide import spark

LOOK_S = 0.1
PEERS = ("execute_concurrent_with_args", "all of it into pandas")
KEYSPACE = "bench"
A_CUSTOMER = 40
SOURCE = f"""
create table customers as select g as customer, 'segment ' || g % 10 as segment
  from generate_series(0, {{0}} / {A_CUSTOMER} - 1) g;
create table lines as select g / {A_CUSTOMER} as customer, g as line, g * 7919::bigint % 100000 as cents,
  md5(g::text) as note from generate_series(0, {{0}} - 1) g;
"""
JOINED = (
    "select customer, segment, line, cents, note from customers join lines using (customer) order by customer, line"
)
WIDE = """create table {} (customer int, segment text static, line int, cents bigint, note text,
  primary key (customer, line))"""
WHOLE = "select segment, count(*) as n, sum(cents) as cents from customers join lines using (customer) group by segment"
FEW = (
    "select segment, count(*) as n, sum(cents) as cents from customers join lines using (customer)"
    " where customer in (1, 2, 3) group by segment"
)


class Turned:
    """One way, and what its turns cost."""

    def __init__(self, name: str, *command: str) -> None:
        self.name, self.command = name, command
        self.wall: list[float] = []
        self.cpu: list[float] = []
        self.node: list[float] = []
        self.peak_mb = 0.0
        self.rows = self.reason = ""

    def turn(self, node: psutil.Process) -> str:
        """Once; what it printed."""
        if self.reason:
            return ""
        before, begun = _cpu(node), time.monotonic()
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as said:
            process = psutil.Popen([one for one in self.command if one], stdout=out, stderr=said)
            used: dict[int, float] = {}
            while True:
                self._look(process, used)
                with contextlib.suppress(psutil.TimeoutExpired):
                    process.wait(LOOK_S)
                    break
            out.seek(0)
            said.seek(0)
            text, words = out.read(), said.read()
        if process.returncode:
            self.reason = (words.strip().splitlines() or ["ended"])[-1][:200]
            return ""
        self.wall.append(time.monotonic() - begun)
        self.cpu.append(sum(used.values()))
        self.node.append(_cpu(node) - before)
        self.rows = ", ".join(
            one.split("read:")[1].split(" row")[0].strip() for one in words.splitlines() if "read:" in one
        )
        return text

    def _look(self, process: psutil.Process, used: dict[int, float]) -> None:
        memory = 0
        with contextlib.suppress(psutil.NoSuchProcess):
            for one in [process, *process.children(recursive=True)]:
                with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                    times = one.cpu_times()
                    used[one.pid] = times.user + times.system
                    memory += one.memory_info().rss
        self.peak_mb = max(self.peak_mb, memory / 2**20)


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


def main() -> None:
    """Prints a line for each."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--part", choices=["load", "read"])
    parser.add_argument("--only", default="", help="those whose names hold one of these, with commas between")
    given = parse(parser, rounds=1, rows=2_000)
    reason = cassandra_server.missing()
    if reason is not None:
        lacks(reason)
    with (
        cassandra_server.CassandraServer() as server,
        EmbeddedPostgres() as engine,
        tempfile.TemporaryDirectory() as place,
    ):
        session = server.connect()
        session.execute(
            f"create keyspace {KEYSPACE} with replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
        )
        session.set_keyspace(KEYSPACE)
        dsn = make_conninfo("", **engine.tcp_conninfo())
        with psycopg.connect(dsn, autocommit=True) as conn:
            conn.execute(SOURCE.format(given.rows).encode())
            expected = [sorted(conn.execute(text).fetchall()) for text in (WHOLE, FEW)]
        assert server.pid is not None
        run = _Run(given, server, psutil.Process(server.pid), session, dsn, Path(place))
        if given.part != "read":
            run.loads()
        if given.part != "load":
            run.questions(expected)


class _Run:
    def __init__(self, given, server, node, session, dsn, place) -> None:  # type: ignore[no-untyped-def]
        self.given, self.server, self.node, self.session, self.dsn, self.place = (
            given,
            server,
            node,
            session,
            dsn,
            place,
        )
        self.target = server.dsn(KEYSPACE)

    def loads(self) -> None:
        self.session.execute(WIDE.format("t"))
        self.session.execute(WIDE.format("u"))
        job = ["--query", JOINED, "--to", self.target, "--table", "t", "--key", "customer", "--cluster", "line"]
        move = (sys.executable, "-m", "dbdyno", "move", self.dsn, *job, "--static", "segment", "--job", "JOB")
        port = str(self.server.port)
        ways = [
            Turned("dbdyno move", *move),
            Turned("dbdyno move --direct", *move, "--direct"),
            Turned(
                "execute_concurrent_with_args", sys.executable, "-c", CONCURRENT, self.dsn, port, KEYSPACE, "t", JOINED
            ),
        ]
        count = itertools.count()
        for way in self._in_turn(ways):
            self.session.execute("truncate t")
            way.command = tuple(
                str(self.place / f"job{next(count)}") if "/job" in one or one == "JOB" else one for one in way.command
            )
            way.turn(self.node)
            if not way.reason:
                # Page by page: one count(*) over a million rows is more than a small node answers.
                cents = [one.cents for one in self.session.execute("select cents from t", timeout=300)]
                expected = (self.given.rows, sum(g * 7919 % 100000 for g in range(self.given.rows)))
                assert (len(cents), sum(cents)) == expected, f"{way.name}: {len(cents)}, {sum(cents)}"
        self._print(ways, f"{self.given.rows:,} rows of a join into a wide table", self.given.rows)

    def questions(self, expected: list[list[tuple[object, ...]]]) -> None:
        self.session.execute("drop table if exists u")
        if self.given.part == "read":
            self.session.execute(WIDE.format("t"))
            load = Turned("", sys.executable, "-c", CONCURRENT, self.dsn, str(self.server.port), KEYSPACE, "t", JOINED)
            load.turn(self.node)
            assert not load.reason, load.reason
        file = self.place / "map.toml"
        words = ("map", self.target, "--name", "t=lines,customers", "-o", str(file))
        subprocess.run([sys.executable, "-m", "dbdyno", "wide", *words], check=True)
        jars = ",".join(map(str, spark.jars()))
        port = str(self.server.port)
        for title, text, wanted in zip(
            ("the whole table", "three partitions of it"), (WHOLE, FEW), expected, strict=True
        ):
            ask = (sys.executable, "-m", "dbdyno", "wide", "sql", text, "--map", str(file), "--target", self.target)
            more = ("--format", "csv", "--explain")
            few = "1,2,3" if text == FEW else ""
            ways = [
                Turned("dbdyno wide sql", *ask, *more),
                Turned("dbdyno wide sql --engine spark", *ask, *more, "--engine", "spark", "--master", "local[2]"),
                Turned(
                    "spark-cassandra-connector, one table",
                    sys.executable,
                    "-c",
                    CONNECTOR,
                    jars,
                    port,
                    KEYSPACE,
                    few or "-",
                ),
                Turned("all of it into pandas", sys.executable, "-c", PANDAS, port, KEYSPACE, few or "-"),
            ]
            for way in self._in_turn(ways):
                said = way.turn(self.node)
                if not way.reason:
                    found = sorted(tuple(one.split(",")) for one in said.strip().splitlines()[1:])
                    assert found == [tuple(map(str, one)) for one in wanted], f"{way.name}: {found[:3]}"
            self._print(ways, f"sums by group, {title} ({self.given.rows:,} rows)", None)

    def _in_turn(self, ways):  # type: ignore[no-untyped-def]
        words = self.given.only.split(",")
        chosen = [one for one in ways if any(word in one.name for word in words)]
        for turn in range(self.given.rounds):
            yield from chosen if turn % 2 == 0 else chosen[::-1]

    def _print(self, ways: list[Turned], title: str, rows: int | None) -> None:
        print(f"\n{title}; {self.given.rounds} rounds in turn, medians; load {os.getloadavg()[0]:.1f}")
        for one in ways:
            if one.reason or not one.wall:
                print(f"  {one.name:38} {one.reason or 'left out'}")
                continue
            wall, cpu, node = (statistics.median(each) for each in (one.wall, one.cpu, one.node))
            rate = f"  {rows / wall:8,.0f} rows/s" if rows else f"  read {one.rows or '?':>18} rows"
            spent = f"CPU {cpu:6.2f} s, node {node:6.2f} s  peak {one.peak_mb:5.0f} MB"
            print(f"  {one.name:38} {wall:6.1f} s (least {min(one.wall):5.1f}){rate}  {spent}", flush=True)
            peer = next((other for other in ways if other.name in PEERS and other.wall), None)
            if peer is not None and peer is not one:
                least = statistics.median(peer.wall)
                figure(f"{title}: {one.name}", wall, "s", against=peer.name, ratio=wall / least)


if __name__ == "__main__":
    main()
