"""Compares pgbench directly, through `dbdyno trace proxy`, through pgbouncer, and through a bare relay, in
alternating turns. The relay forwards bytes unread and never sleeps, so no proxy can cost less (relay.c).

    python benches/proxy.py [--rounds 4] [--seconds 5] [--own-core]

A round trip is a select-only transaction of one session (prepared: one message, one answer); what it takes more is the
proxy's. Throughput is that of eight sessions. The proxy and pgbouncer are processes of their own, on the machine's own
processors: where pgbench and the server use all of them, a core of its own is what neither gets. With `--own-core`
pgbench and the server share the first processor, and the last is the proxy's or pgbouncer's. A round trip then crosses
between processors where the direct one does not: it is the throughput that can be compared.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import pwd
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
from figures import figure, parse

from dbdyno.bench.postgres.embedded import EmbeddedPostgres

BOUNCER = shutil.which("pgbouncer") or "/usr/sbin/pgbouncer"
ROUND_TRIP, THROUGHPUT = 1, 8
RELAY = "bare relay"
PLACED: list[str] = []
"""What a proxy's command begins with, where it has a processor of its own."""


def pgbench(engine: EmbeddedPostgres, port: int, *options: str) -> float:
    """Transactions a second."""
    known = engine.tcp_conninfo()
    environment = {
        **os.environ,
        "PGHOST": "127.0.0.1",
        "PGPORT": str(port),
        "PGUSER": known["user"],
        "PGDATABASE": known["dbname"],
        "PGPASSWORD": known["password"],
        "PGSSLMODE": "disable",
    }
    program = engine.binaries.program("pgbench")
    done = subprocess.run([str(program), *options], env=environment, check=True, capture_output=True, text=True)
    found = re.search(r"tps = ([\d.]+)", done.stdout)
    return float(found[1]) if found else 0.0


@contextlib.contextmanager
def proxy(engine: EmbeddedPostgres, folder: Path, *options: str) -> Iterator[int]:
    """A proxy of its own process; its port."""
    run = folder / f"run-{time.monotonic_ns()}"
    command = [sys.executable, "-m", "dbdyno", "trace", "proxy", "--listen", "127.0.0.1:0", "--out", str(run), *options]
    with subprocess.Popen(
        [*PLACED, *command, "--to", f"127.0.0.1:{engine.port}"],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    ) as process:
        said = process.stderr.readline() if process.stderr else ""
        try:
            yield int(said.split("connect to ")[1].split(";")[0].rpartition(":")[2])
        finally:
            process.terminate()
            process.communicate()
            shutil.rmtree(run, ignore_errors=True)


@contextlib.contextmanager
def bouncer(engine: EmbeddedPostgres, folder: Path) -> Iterator[int]:
    """Debian's pgbouncer with a session of the server for each of its clients'; its port."""
    behind = engine.tcp_conninfo()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = int(free.getsockname()[1])
    (folder / "users").write_text(f'"{behind["user"]}" "{behind["password"]}"\n')
    (folder / "bouncer.ini").write_text(
        f"[databases]\n* = host=127.0.0.1 port={behind['port']}\n[pgbouncer]\nlisten_addr = 127.0.0.1\n"
        f"listen_port = {port}\nunix_socket_dir =\nauth_type = trust\nauth_file = {folder}/users\npool_mode = session\n"
    )
    is_root = os.geteuid() == 0
    if is_root:
        nobody = pwd.getpwnam("nobody")
        for path in (folder, folder / "users", folder / "bouncer.ini"):
            os.chown(path, nobody.pw_uid, nobody.pw_gid)
    command = [*PLACED, BOUNCER, *(["-u", "nobody"] if is_root else []), str(folder / "bouncer.ini")]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/") as process:
        try:
            _await(behind, port)
            yield port
        finally:
            process.terminate()


def relay_of(folder: Path) -> Path | None:
    """The relay as a program, where there is a compiler."""
    if shutil.which("cc") is None:
        return None
    program = folder / "relay"
    subprocess.run(["cc", "-O2", "-o", program, Path(__file__).with_name("relay.c")], check=True)
    return program


@contextlib.contextmanager
def relay(program: Path | None, engine: EmbeddedPostgres) -> Iterator[int]:
    """The relay's port."""
    assert program is not None
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = int(free.getsockname()[1])
    with subprocess.Popen([*PLACED, program, str(port), str(engine.port)]) as process:
        try:
            _await({**engine.tcp_conninfo(), "sslmode": "disable"}, port)
            yield port
        finally:
            process.terminate()


def _await(behind: dict[str, str], port: int) -> None:
    for _ in range(200):
        with contextlib.suppress(psycopg.OperationalError):
            psycopg.connect(**{**behind, "port": str(port)}, connect_timeout=2).close()  # type: ignore[arg-type]
            return
        time.sleep(0.05)
    raise RuntimeError("it did not come up")


def main() -> None:
    """Both questions, in turns."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--own-core", action="store_true")
    chosen = parse(parser, rounds=1, seconds=1)
    if chosen.own_core:
        first, *_, last = sorted(os.sched_getaffinity(0))
        PLACED[:] = ["taskset", "--cpu-list", str(last)]
        os.sched_setaffinity(0, {first})
    with contextlib.ExitStack() as stack:
        engine = stack.enter_context(EmbeddedPostgres())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir="/var/tmp")))
        folder.chmod(0o755)
        pgbench(engine, engine.port, "-i", "-s", "1" if chosen.smoke else "5", "-q")
        ports = {"direct": engine.port, "proxy": stack.enter_context(proxy(engine, folder))}
        ports["proxy --spin off"] = stack.enter_context(proxy(engine, folder, "--spin", "off"))
        ports["proxy --binds"] = stack.enter_context(proxy(engine, folder, "--binds"))
        if Path(BOUNCER).exists():
            (folder / "pgbouncer").mkdir()
            ports["pgbouncer"] = stack.enter_context(bouncer(engine, folder / "pgbouncer"))
        relayed = relay_of(folder)
        found: dict[int, dict[str, list[float]]] = {}
        for clients in (ROUND_TRIP, THROUGHPUT):
            names = [*ports, *([RELAY] if relayed else [])]
            arms = found.setdefault(clients, {name: [] for name in names})
            for name in names if chosen.smoke else [*names, *reversed(names)] * chosen.rounds:
                length = ["-t", "50"] if chosen.smoke else ["-T", str(chosen.seconds)]
                options = ["-n", "-S", "-M", "prepared", "-c", str(clients), *length]
                # The relay never sleeps, so it is there only while it is measured.
                with relay(relayed, engine) if name == RELAY else contextlib.nullcontext(ports[name]) as port:
                    arms[name].append(pgbench(engine, port, *options))
    told(found)


def told(found: dict[int, dict[str, list[float]]]) -> None:
    """Medians of both."""
    direct_us = statistics.median(1e6 / tps for tps in found[ROUND_TRIP]["direct"])
    least_us = 1e6 / max(found[ROUND_TRIP]["direct"])
    print(f"a round trip, one session: {direct_us:.1f} us directly (least {least_us:.1f} us)")
    for name, rates in found[ROUND_TRIP].items():
        taken_us = statistics.median(1e6 / tps for tps in rates)
        if name != "direct":
            print(f"  {name}: {taken_us:.1f} us, {taken_us - direct_us:+.1f} us (least {1e6 / max(rates):.1f} us)")
            figure(f"a round trip by {name}", taken_us, "us", against="direct", ratio=taken_us / direct_us)
    direct = statistics.median(found[THROUGHPUT]["direct"])
    print(f"select-only, eight sessions: {direct:,.0f} transactions/s directly")
    for name, rates in found[THROUGHPUT].items():
        print(f"  {name}: {statistics.median(rates):,.0f} transactions/s, {statistics.median(rates) / direct:.3f}")
        ratio = statistics.median(rates) / direct
        figure(f"select-only of 8 sessions by {name}", statistics.median(rates), "1/s", against="direct", ratio=ratio)


if __name__ == "__main__":
    main()
