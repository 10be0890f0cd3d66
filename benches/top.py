"""Measures the cost of the live screen: `snap top` on a server with 10,000 statements and 200 sessions.

    python benches/top.py [--statements 10000] [--sessions 200] [--every 2] [--frames 30]

The server is one of our own; client and server share the machine. Sessions sleep in short statements of the 10,000, so
that the sampler sees them active. `snap top` writes to a terminal of 50 lines. Printed are its processor time and
memory as a process, without its start, which a second run of two frames measures, and the processor time of its
sessions in the server.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import pty
import subprocess
import sys
import termios
import threading
import time
from pathlib import Path

import psycopg
from figures import figure, parse

from dbdyno.bench.postgres.server import Postgres, open_target
from snapshot import dsn

SETTINGS = {
    "shared_preload_libraries": "pg_stat_statements",
    "pg_stat_statements.max": "20000",
    "max_connections": "300",
}
LOOKS = "select pid from pg_stat_activity where application_name like 'dbdyno snap %'"


def _cpu_s(pid: int) -> float:
    """CPU seconds of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """One measurement."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--statements", type=int, default=10_000)
    parser.add_argument("--sessions", type=int, default=200)
    parser.add_argument("--every", type=float, default=2.0)
    parser.add_argument("--frames", type=int, default=30)
    given = parse(parser, statements=20, sessions=4, every=0.3, frames=3)
    print(f"load of the machine {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores", flush=True)
    with open_target(None, settings=SETTINGS) as target:
        with target.connect() as conn:
            conn.execute("create extension pg_stat_statements")
            for n in range(given.statements):
                conn.execute(statement(n, 0), prepare=False)
            known = conn.execute("select count(*) from pg_stat_statements").fetchone()
        assert known is not None
        stop = threading.Event()
        crowd = [threading.Thread(target=ask, args=(target, n, stop)) for n in range(given.sessions)]
        for one in crowd:
            one.start()
        time.sleep(min(3.0, 2 * given.every))
        short, long_ = (watched(target, given.every, frames) for frames in (2, given.frames))
        stop.set()
        for one in crowd:
            one.join()
    more = given.frames - 2
    cpu_ms, server_ms = (1e3 * (new - old) / more for old, new in zip(short[:2], long_[:2], strict=True))
    print(f"{known[0]} statements, {given.sessions} sessions, {given.frames} refreshes, one each {given.every:g} s:")
    print(f"  a refresh: {cpu_ms:.0f} ms of processor time here, {server_ms:.0f} ms in the server (its looks included)")
    print(f"  memory: {long_[2]:.0f} MB; after two refreshes {short[2]:.0f} MB")
    what = f"snap top beside {known[0]:,} statements and {given.sessions} sessions"
    figure(f"{what}: a refresh here", cpu_ms, "ms of CPU")
    figure(f"{what}: a refresh in the server", server_ms, "ms of CPU")
    figure(f"{what}: peak memory", long_[2], "MB")


def statement(n: int, sleep_s: float) -> str:
    """One of many, each with an identifier of its own."""
    return f"select {'1' + ''.join('+-'[n >> bit & 1] + '1' for bit in range(14))}, pg_sleep({sleep_s})"


def ask(target: Postgres, n: int, stop: threading.Event) -> None:
    """A session that sleeps in one statement after another."""
    with psycopg.connect(dsn(target), autocommit=True, prepare_threshold=None) as conn:
        while not stop.is_set():
            conn.execute(statement(n, 0.5))  # type: ignore[arg-type]
            n = (n + 200) % 10_000


def watched(target: Postgres, every_s: float, frames: int) -> tuple[float, float, float]:
    """Seconds of processor time of the command and of its sessions, and the command's memory in MB."""
    words = ["snap", "top", "--target", dsn(target), "--every", f"{every_s}s", "--frames", str(frames)]
    ours, terminal = pty.openpty()
    termios.tcsetwinsize(terminal, (50, 160))
    child = subprocess.Popen([sys.executable, "-m", "dbdyno", *words], stdin=terminal, stdout=terminal)
    os.close(terminal)
    threading.Thread(target=_drain, args=(ours,), daemon=True).start()
    seen: dict[int, float] = {}
    with psycopg.connect(dsn(target), autocommit=True) as conn:
        while True:
            pid, status, used = os.wait4(child.pid, os.WNOHANG)
            if pid:
                break
            for (one,) in conn.execute(LOOKS):
                seen[one] = max(_cpu_s(one), seen.get(one, 0.0))
            time.sleep(0.2)
    child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode == 0
    return used.ru_utime + used.ru_stime, sum(seen.values()), used.ru_maxrss / 1024


def _drain(terminal: int) -> None:
    """Read and discard what the screen shows, until its program has ended."""
    with contextlib.suppress(OSError):
        while os.read(terminal, 65536):
            pass
    os.close(terminal)


if __name__ == "__main__":
    main()
