"""sysbench and dbdyno in turn on one MariaDB server: throughput ratio and client CPU per transaction.

    python benches/mysql_parity.py [--pairs 10] [--seconds 3]

sysbench's own tables (one of 100,000 rows, made by it) and its point-select and read-write mixes, keys drawn evenly,
both prepared, the same sessions, alternating order, over the server's Unix socket. sysbench draws a new text for each
update; dbdyno sends one of the same length. Both try a deadlock again. dbdyno keeps every latency: its CPU includes
recording, encoding and writing the Parquet part; sysbench keeps a histogram. The server flushes its log once a second
and does not account (performance_schema off), so that clients are compared and not disks. The interval is over pairs
(t on log ratios). On a machine that others use the ratios say little: sysbench has a thread per session, and so a
larger share of a busy processor.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from engine import PgbenchResult
from pgbench_parity import words

from dbdyno import _core
from dbdyno.bench.mariadb.embedded import EmbeddedMariaDB
from dbdyno.bench.mariadb.server import MariaDB

ROWS = 100_000
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
        f"--time={seconds:.0f}",
        "--rand-type=uniform",
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


def dyno(target: MariaDB, mix: str, sessions: int, seconds: float) -> PgbenchResult:
    """One run of dbdyno's load generator in this process, evidence into a temporary folder."""
    arm = {
        "name": "a",
        "sessions": sessions,
        "connection": target.load_connection("dbdyno"),
        "scripts": [{"name": mix, "text": MIXES[mix]}],
        "variables": {"c": TEXT, "pad": TEXT[:59]} if mix == "read_write" else {},
        "max_tries": 100,
    }
    load = _core.Load({"seed": 7, "arms": [arm]})
    with tempfile.TemporaryDirectory() as folder:
        load.connect(0)
        before = os.times()
        load.begin_block(Path(folder), "b")
        report = load.run(0, [(0, 0, round(seconds * 1e9), None)])
        load.end_block()
        after = os.times()
        load.disconnect(0)
    cpu = after.user + after.system - before.user - before.system
    found = report["arms"][0]
    assert found["errors"] == 0, found
    return PgbenchResult(found["transactions"] * sessions * 1e9 / found["busy_ns"], cpu * 1e6 / found["transactions"])


def compare(target: MariaDB, mix: str, sessions: int, pairs: int, seconds: float) -> None:
    """Alternating pairs, the first not counted; prints one line."""
    log_ratios, cpu_ratios, seen = [], [], []
    for pair in range(pairs + 1):
        runs = [sysbench, dyno]
        got = {which: runs[which](target, mix, sessions, seconds) for which in ([0, 1] if pair % 2 else [1, 0])}
        if pair == 0:
            continue
        log_ratios.append(np.log(got[1].tps / got[0].tps))
        cpu_ratios.append(np.log(got[1].cpu_us / got[0].cpu_us))
        seen.append((got[0].tps, got[1].tps, got[0].cpu_us, got[1].cpu_us))
    middle = np.median(np.array(seen), axis=0)
    print(
        f"{mix:12s} c{sessions}: sysbench {middle[0]:8.0f} tps {middle[2]:6.1f} us CPU; "
        f"dbdyno {middle[1]:8.0f} tps {middle[3]:6.1f} us CPU; "
        f"throughput ratio {words(log_ratios)}, CPU ratio {words(cpu_ratios)}",
        flush=True,
    )


def main() -> None:
    """Four points: point-select and read-write, at 1 and 8 sessions."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=3)
    options = parser.parse_args()
    if shutil.which("sysbench") is None:
        sys.exit("sysbench is not installed: tools/setup-test installs Debian's")
    with EmbeddedMariaDB(SETTINGS) as engine:
        target = MariaDB.on(engine)
        sysbench(target, "read_write", 1, 1, "prepare")
        for mix in MIXES:
            for sessions in (1, 8):
                compare(target, mix, sessions, options.pairs, options.seconds)


if __name__ == "__main__":
    main()
