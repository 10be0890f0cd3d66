"""An embedded PostgreSQL with pgbench's tables, and pgbench itself, for benches."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dbdyno.bench.postgres.binaries import find_binaries
from dbdyno.bench.postgres.server import Postgres, open_target

SETTINGS = {"shared_buffers": "512MB", "max_wal_size": "4GB", "checkpoint_timeout": "30min"}


@dataclass(frozen=True)
class PgbenchResult:
    """Transactions a second, and client CPU per transaction in microseconds."""

    tps: float
    cpu_us: float


@contextlib.contextmanager
def engine(scale: int) -> Iterator[Postgres]:
    """A server with pgbench's tables at this scale."""
    with open_target(None, settings=SETTINGS) as target:
        pgbench(target, "-i", "-q", "-s", str(scale))
        yield target


def pgbench(target: Postgres, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs the server's own pgbench."""
    conninfo = target.conninfo()
    environment = {
        **os.environ,
        "PGHOST": conninfo["host"],
        "PGPORT": str(conninfo["port"]),
        "PGUSER": conninfo["user"],
        "PGDATABASE": conninfo["dbname"],
        "PGPASSWORD": conninfo["password"] or "",
    }
    program = Path(find_binaries().bindir) / "pgbench"
    return subprocess.run([program, *arguments], env=environment, check=True, text=True, capture_output=True)


def timed_pgbench(target: Postgres, *arguments: str) -> PgbenchResult:
    """Runs pgbench and takes the CPU time of its process."""
    before = os.times()
    done = pgbench(target, *arguments)
    after = os.times()
    cpu = after.children_user + after.children_system
    cpu -= before.children_user + before.children_system
    count = int(re.search(r"transactions actually processed: (\d+)", done.stdout)[1])
    tps = float(re.search(r"tps = ([\d.]+)", done.stdout)[1])
    return PgbenchResult(tps, cpu * 1e6 / count)


def load_spec(target: Postgres, text: str, sessions: int, **more: Any) -> dict[str, Any]:
    """A load specification with one arm."""
    arm = {
        "name": "bench",
        "connection": target.conninfo(),
        "session_sql": [],
        "scripts": [{"name": "bench", "text": text, "weight": 1}],
        "sessions": sessions,
        "variables": {"scale": "10"},
        **more,
    }
    return {"seed": 7, "protocol": "prepared", "arms": [arm]}
