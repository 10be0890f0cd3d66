"""Compares pgbench and dbdyno, alternately on one server: throughput ratio and client CPU per transaction.

    python benches/pgbench_parity.py [--pairs 10] [--seconds 3]

Same script, same protocol (prepared), same sessions, in turn (`parity.py`). dbdyno keeps every latency, pgbench none
(no -l). The throughput of both is that of the time under load, without connecting (and without encoding).
"""

from __future__ import annotations

import functools
import tempfile

from engine import PgbenchResult, engine, load_spec, timed_pgbench
from figures import length, parse
from parity import alone, compare, options

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


def pgbench(target: Postgres, text: str, sessions: int, seconds: float) -> PgbenchResult:
    """One run of pgbench, with a thread for each session up to two."""
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as script:
        script.write(text)
        script.flush()
        size = [
            "-c",
            str(sessions),
            "-j",
            str(min(sessions, 2)),
            *length(max(round(seconds), 1), 50),
            "-D",
            f"scale={SCALE}",
        ]
        return timed_pgbench(target, "-n", "-M", "prepared", *size, "-f", script.name)


def main() -> None:
    """Four points: select-only and TPC-B-like, at 1 and 8 sessions."""
    given = parse(options(__doc__), pairs=1, seconds=0.05)
    with engine(1 if given.smoke else SCALE) as target:
        if given.alone and target.engine:
            alone(target.engine.pid)
        for name, text in (("select-only", SELECT), ("tpcb-like", TPCB)):
            for sessions in (1, 8):
                theirs = functools.partial(pgbench, target, text, sessions)
                compare(f"{name:12s} c{sessions}", "pgbench", theirs, load_spec(target, text, sessions), given)


if __name__ == "__main__":
    main()
