"""Compares sysbench and dbdyno, alternately on one MariaDB server: throughput ratio and client CPU per transaction.

    python benches/mysql_parity.py [--pairs 10] [--seconds 3]

sysbench's own tables (one of 100,000 rows, made by it) and its point-select and read-write mixes, keys drawn evenly,
both prepared, the same sessions, in turn (`parity.py`), over the server's Unix socket. sysbench draws a new text for
each update; dbdyno sends one of the same length. Both try a deadlock again. dbdyno keeps every latency, sysbench a
histogram. The server flushes its log once a second and does not account (performance_schema off), so that clients are
compared and not disks. On a machine that others use the ratios say little without `--alone`.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess

from engine import PgbenchResult
from figures import SMOKE, lacks, parse
from parity import alone, compare, options

from dbdyno.base.json_types import JsonObject
from dbdyno.bench.mariadb.embedded import EmbeddedMariaDB
from dbdyno.bench.mariadb.server import MariaDB

ROWS = 1_000 if SMOKE else 100_000
SETTINGS = {
    "performance_schema": "OFF",
    "innodb_flush_log_at_trx_commit": "0",
    "innodb_buffer_pool_size": "512M",
}
ID = f"\\set id random(1, {ROWS})\n"
POINT = ID + "SELECT c FROM sbtest1 WHERE id=:id;\n"
RANGES = "".join(
    f"{ID}\\set last :id + 99\n{head} FROM sbtest1 WHERE id BETWEEN :id AND :last{tail};\n"
    for head, tail in (
        ("SELECT c", ""),
        ("SELECT SUM(k)", ""),
        ("SELECT c", " ORDER BY c"),
        ("SELECT DISTINCT c", " ORDER BY c"),
    )
)
WRITES = (
    f"{ID}UPDATE sbtest1 SET k=k+1 WHERE id=:id;\n"
    f"{ID}UPDATE sbtest1 SET c=:c WHERE id=:id;\n"
    f"{ID}\\set k random(1, {ROWS})\nDELETE FROM sbtest1 WHERE id=:id;\n"
    "INSERT INTO sbtest1 (id, k, c, pad) VALUES (:id, :k, :c, :pad);\n"
)
MIXES = {
    "point_select": POINT,
    "read_write": "BEGIN;\n" + POINT * 10 + RANGES + WRITES + "COMMIT;\n",
}
TEXT = "-".join(["12345678901"] * 10)


def sysbench(target: MariaDB, mix: str, sessions: int, seconds: float, command: str = "run") -> PgbenchResult:
    """One run of sysbench."""
    given = target.parameters
    arguments = [
        f"oltp_{mix}",
        f"--mysql-socket={given['unix_socket']}",
        f"--mysql-user={given['user']}",
        f"--mysql-db={given['database']}",
        f"--table-size={ROWS}",
        f"--threads={sessions}",
        f"--time={max(seconds, 1):.0f}",
        "--rand-type=uniform",
        *(["--events=20"] if SMOKE else []),
        command,
    ]
    before = os.times()
    done = subprocess.run(["sysbench", *arguments], check=True, text=True, capture_output=True)
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    if command != "run":
        return PgbenchResult(0, 0)
    count, tps = re.search(r"transactions:\s+(\d+)\s+\(([\d.]+) per sec", done.stdout).groups()
    return PgbenchResult(float(tps), cpu * 1e6 / int(count))


def spec(target: MariaDB, mix: str, sessions: int) -> JsonObject:
    """The same for dbdyno's load generator."""
    arm = {
        "name": "a",
        "sessions": sessions,
        "connection": target.load_connection("dbdyno"),
        "scripts": [{"name": mix, "text": MIXES[mix]}],
        "variables": {"c": TEXT, "pad": TEXT[:59]} if mix == "read_write" else {},
        "max_tries": 100,
    }
    return {"seed": 7, "arms": [arm]}


def main() -> None:
    """Four points: point-select and read-write, at 1 and 8 sessions."""
    parser = options(__doc__)
    parser.add_argument("--mix", choices=MIXES, action="append", help="default: both")
    parser.add_argument("--sessions", type=int, action="append", help="default: 1 and 8")
    given = parse(parser, pairs=1, seconds=0.05)
    if shutil.which("sysbench") is None:
        lacks("sysbench is not installed: tools/setup-test installs Debian's")
    with EmbeddedMariaDB(SETTINGS) as engine:
        target = MariaDB.from_engine(engine)
        if given.alone:
            alone(engine.pid)
        sysbench(target, "read_write", 1, 1, "prepare")
        for mix in given.mix or MIXES:
            for sessions in given.sessions or (1, 8):
                theirs = functools.partial(sysbench, target, mix, sessions)
                compare(f"{mix:12s} c{sessions}", "sysbench", theirs, spec(target, mix, sessions), given)


if __name__ == "__main__":
    main()
