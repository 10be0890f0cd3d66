"""pgbench and dbdyno in turn on one server: throughput ratio and client CPU per transaction.

    python benches/pgbench_parity.py [--pairs 10] [--seconds 3]

Same script, same protocol (prepared), same sessions, alternating order. dbdyno keeps every latency:
its CPU includes recording, encoding and writing the Parquet part; pgbench keeps none (no -l). The
throughput of both is that of the time under load, without connecting (and without encoding).
The interval is over pairs (t on log ratios).
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

import numpy as np
from engine import PgbenchResult, engine, load_spec, timed_pgbench
from scipy import stats

from dbdyno import _core
from dbdyno.bench.postgres.server import Postgres

SELECT = """\
\\set aid random(1, 100000 * :scale)
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
"""
TPCB = """\
\\set aid random(1, 100000 * :scale)
\\set bid random(1, 1 * :scale)
\\set tid random(1, 10 * :scale)
\\set delta random(-5000, 5000)
BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid;
UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = :bid;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime)
VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);
END;
"""
SCALE = 10


def dyno(target: Postgres, text: str, sessions: int, seconds: float) -> PgbenchResult:
    """One run of dbdyno's load generator in this process, evidence into a temporary folder."""
    load = _core.Load(load_spec(target, text, sessions))
    with tempfile.TemporaryDirectory() as folder:
        load.connect(0)
        before = os.times()
        load.begin_block(Path(folder), "b")
        report = load.run(0, [(0, 0, round(seconds * 1e9), None)])
        load.end_block()
        after = os.times()
        load.disconnect(0)
    cpu = after.user + after.system - before.user - before.system
    arm = report["arms"][0]
    tps = arm["transactions"] * sessions * 1e9 / arm["busy_ns"]
    return PgbenchResult(tps, cpu * 1e6 / arm["transactions"])


def compare(target: Postgres, name: str, text: str, sessions: int, pairs: int, seconds: float):
    """Alternating pairs; prints one line."""
    log_ratios, cpu_ratios, tps = [], [], []
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as script:
        script.write(text)
        script.flush()
        arguments = [
            "-n",
            "-M",
            "prepared",
            "-c",
            str(sessions),
            "-j",
            str(min(sessions, 2)),
            "-T",
            str(round(seconds)),
            "-f",
            script.name,
            "-D",
            f"scale={SCALE}",
        ]
        for pair in range(pairs + 1):
            runs = [
                lambda: timed_pgbench(target, *arguments),
                lambda: dyno(target, text, sessions, seconds),
            ]
            order = [0, 1] if pair % 2 else [1, 0]
            got = {which: runs[which]() for which in order}
            if pair == 0:
                continue
            log_ratios.append(np.log(got[1].tps / got[0].tps))
            cpu_ratios.append(np.log(got[1].cpu_us / got[0].cpu_us))
            tps.append((got[0].tps, got[1].tps, got[0].cpu_us, got[1].cpu_us))
    middle = np.median(np.array(tps), axis=0)
    print(
        f"{name:12s} c{sessions}: pgbench {middle[0]:8.0f} tps {middle[2]:6.1f} us CPU; "
        f"dbdyno {middle[1]:8.0f} tps {middle[3]:6.1f} us CPU; "
        f"throughput ratio {words(log_ratios)}, CPU ratio {words(cpu_ratios)}",
        flush=True,
    )


def words(logs: list[float]) -> str:
    """Ratio and 95 % interval."""
    values = np.array(logs)
    half = stats.t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    middle = values.mean()
    return f"{np.exp(middle):.3f} ({np.exp(middle - half):.3f} to {np.exp(middle + half):.3f})"


def main() -> None:
    """Four points: select-only and TPC-B-like, at 1 and 8 sessions."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=3)
    options = parser.parse_args()
    with engine(SCALE) as target:
        for name, text in (("select-only", SELECT), ("tpcb-like", TPCB)):
            for sessions in (1, 8):
                compare(target, name, text, sessions, options.pairs, options.seconds)


if __name__ == "__main__":
    main()
