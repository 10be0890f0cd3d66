"""Separate process that keeps a job's snapshot open after the job is killed, so that `resume` is exact.

    python -m dbdyno.move.engines.postgres.snapshot_holder

It reads as JSON from stdin which snapshot to hold, including secrets, imports the snapshot into its own transaction,
exports it again and writes its name to stdout. If its stdin ends without the word `done`, the job has died: the
snapshot is then held for the requested number of seconds, or until the job's manifest no longer says that the job is
running.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import psycopg

from dbdyno.base.errors import MoveError
from dbdyno.base.processes import python_command, python_environment
from dbdyno.bench.postgres.server import Postgres
from dbdyno.bench.postgres.session import open_session
from dbdyno.move.engines.postgres.source import Snapshot, application_name, session_settings
from dbdyno.move.ledger.folder import INNER, Ledger

LOOK_S = 1.0
END_S = 30.0
DONE = b"done\n"


@contextlib.contextmanager
def hold_snapshot(target: Postgres, snapshot: Snapshot, ledger: Ledger, seconds: int) -> Iterator[None]:
    """Hold the snapshot in a separate process while the context is open, and `seconds` longer if this process dies.

    With 0 seconds no process is started.

    Raises:
        MoveError: The snapshot cannot be held by a second process.
    """
    if seconds <= 0:
        yield
        return
    given = {
        "parameters": {**target.libpq_parameters(), "application_name": f"{application_name(ledger.plan['id'])} holds"},
        "snapshot": snapshot.id,
        "seconds": seconds,
        "manifest": str((ledger.folder / INNER / "manifest.json").absolute()),
    }
    process = subprocess.Popen(
        python_command("dbdyno.move.engines.postgres.snapshot_holder"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=python_environment(),
        start_new_session=True,
    )
    if process.stdin is None or process.stdout is None:
        raise MoveError("the process that holds the snapshot has no pipe to this process")
    try:
        process.stdin.write(json.dumps(given).encode() + b"\n")
        process.stdin.flush()
        name = process.stdout.readline().decode().strip()
        if not name:
            raise MoveError(
                "a second process cannot hold the snapshot",
                next_step="leave --hold out, and keep this process running until the job has ended",
            )
        ledger.manifest["snapshots"][-1]["held"] = name
        ledger.save()
        yield
        process.stdin.write(DONE)
    finally:
        # After a failure nobody waits for the process: it keeps the snapshot for whoever resumes the job.
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        process.stdout.close()
    process.wait(END_S)


def hold(given: Mapping[str, Any]) -> None:
    """Import the snapshot, export it again, and hold it until the job ends or its time limit expires.

    Raises:
        psycopg.Error: The server reports an error.
    """
    from psycopg import sql

    with contextlib.closing(open_session(given["parameters"])) as conn:
        conn.execute("begin isolation level repeatable read read only")
        conn.execute(sql.SQL("set transaction snapshot {}").format(sql.Literal(given["snapshot"])))
        conn.execute(session_settings(conn, idle_only=True))
        row = conn.execute("select pg_export_snapshot()").fetchone()
        sys.stdout.write(f"{row[0] if row else ''}\n")
        sys.stdout.flush()
        if _wait_for_end(sys.stdin.fileno()):
            return
        until = time.monotonic() + given["seconds"]
        while time.monotonic() < until and _is_running(Path(given["manifest"])):
            time.sleep(LOOK_S)


def _wait_for_end(stdin: int) -> bool:
    """Wait for the end of stdin; return True if the job reported its end itself."""
    while True:
        if select.select([stdin], [], [], LOOK_S)[0]:
            return bool(os.read(stdin, len(DONE)))


def _first_line() -> bytes:
    """Read the first line of stdin unbuffered, so that `select` still sees what follows it."""
    line = b""
    while not line.endswith(b"\n"):
        more = os.read(sys.stdin.fileno(), 1)
        if not more:
            break
        line += more
    return line


def _is_running(manifest: Path) -> bool:
    try:
        return bool(json.loads(manifest.read_bytes())["status"] == "running")
    except (OSError, ValueError, KeyError):
        return False


if __name__ == "__main__":
    with contextlib.suppress(psycopg.Error, BrokenPipeError):
        hold(json.loads(_first_line()))
