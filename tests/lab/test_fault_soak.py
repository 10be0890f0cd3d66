"""Tests of the promises of docs/explanation/reliability.md by hundreds of faults injected into real runs.

    make soak                                     350 faults, 18 kinds
    DBDYNO_FAULTS=36 pytest -s -m soak tests/lab/test_fault_soak.py
    DBDYNO_FAULT_FROM=231 DBDYNO_FAULT_SEED=120911 ...           the rest of an interrupted run

The test prints its seed first, then each kind of fault with its outcomes. A fault is drawn from the seed and its number
only, so that a range of faults, or a single one, can be repeated. A promise that does not hold fails the test.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path

import psycopg
import pytest
from fault_injection import HUNG_S, Bench, BrokenError, Injection

from together import together

PROMISED_S = 60.0
"""Time within which a run must end on a silent network: 30 s, doubled for the busy machine of a soak [s]."""
FAULTS = int(os.environ.get("DBDYNO_FAULTS", "350"))
FIRST = int(os.environ.get("DBDYNO_FAULT_FROM", "0"))
WORKERS = int(os.environ.get("DBDYNO_FAULT_WORKERS", "2"))
SEED = int(os.environ.get("DBDYNO_FAULT_SEED", str(random.randrange(10**6))))


def _kill(pid: int | None, number: int = signal.SIGKILL) -> None:
    if pid is not None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def kill_runner(_: Bench, case: Injection) -> None:
    _kill(case.running.pid)


def kill_guardian(_: Bench, case: Injection) -> None:
    _kill(case.guardian())


def kill_both(_: Bench, case: Injection) -> None:
    _kill(case.guardian())
    _kill(case.running.pid)


def kill_backend(bench: Bench, case: Injection) -> None:
    """Kill a server process: the server terminates all sessions and restarts."""
    with psycopg.connect(bench.direct) as conn:
        row = conn.execute("select pid from pg_stat_activity where application_name like 'dbdyno%' limit 1").fetchone()
    _kill(row[0] if row else None)


def kill_server(bench: Bench, case: Injection) -> None:
    _kill(bench.engine.pid)
    time.sleep(bench.dice.uniform(0, 2))
    bench.engine.restart()


def restart_server(bench: Bench, case: Injection) -> None:
    bench.engine.restart()


def stop_server_and_kill_runner(bench: Bench, case: Injection) -> None:
    """Kill the runner while the server is down; the guardian finds it down, and the server returns after a while."""
    bench.engine.stop()
    _kill(case.running.pid)
    time.sleep(bench.dice.uniform(1, 6))
    bench.engine.start()


def stall_server(bench: Bench, case: Injection) -> None:
    _stalled(bench, int(bench.engine.pid or 0))
    with psycopg.connect(bench.direct) as conn:
        pids = [
            row[0] for row in conn.execute("select pid from pg_stat_activity where application_name like 'dbdyno/%'")
        ]
    _stalled(bench, *pids)


def stall_runner(bench: Bench, case: Injection) -> None:
    _stalled(bench, case.running.pid)


def _stalled(bench: Bench, *pids: int) -> None:
    for pid in pids:
        _kill(pid, signal.SIGSTOP)
    time.sleep(bench.dice.uniform(1, 4))
    for pid in pids:
        _kill(pid, signal.SIGCONT)


def cut_network(bench: Bench, case: Injection) -> None:
    bench.network.cut()


def silent_network(bench: Bench, case: Injection) -> None:
    """Silence the network, and send SIGTERM two seconds later."""
    bench.network.mode = "silent"
    time.sleep(2)
    _kill(case.running.pid, signal.SIGTERM)


def silent_network_two_signals(bench: Bench, case: Injection) -> None:
    bench.network.mode = "silent"
    for _ in range(2):
        time.sleep(1)
        _kill(case.running.pid, signal.SIGTERM)


def silent_network_without_a_signal(bench: Bench, case: Injection) -> None:
    """Silence the network and send no signal; the run must end by itself within the promised time."""
    bench.network.mode = "silent"
    begun = time.monotonic()
    case.running.wait(HUNG_S)
    if time.monotonic() - begun > PROMISED_S:
        raise BrokenError(f"it ended {time.monotonic() - begun:.0f} s after the network fell silent")


def slow_network(bench: Bench, case: Injection) -> None:
    bench.network.mode = "slow"


def terminate(_: Bench, case: Injection) -> None:
    _kill(case.running.pid, signal.SIGTERM)


def full_disk(_: Bench, case: Injection) -> None:
    """Limit the process's files to a random size, which has the effect of a full disk."""


full_disk.prepare = lambda case: case.prefix.extend(  # type: ignore[attr-defined]
    ["prlimit", f"--fsize={case.bench.dice.choice([0, 500, 2_000, 8_000, 20_000, 60_000])}", "--"]
)


def clock_steps(bench: Bench, case: Injection) -> None:
    Path(case.more["CLOCK_SHIM"]).write_text(bench.dice.choice(["3600", "-3600"]))


def _with_shim(case: Injection) -> None:
    shim = case.folder / "shim.so"
    source = Path(__file__).with_name("clock_shim.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", str(shim), str(source), "-ldl"], check=True)
    offset = case.folder / "offset"
    offset.write_text("0")
    case.more = {"LD_PRELOAD": str(shim), "CLOCK_SHIM": str(offset)}


clock_steps.prepare = _with_shim  # type: ignore[attr-defined]


def two_runs(bench: Bench, case: Injection) -> str | None:
    """Start a second run that alters the same setting; it is refused while the first is running."""
    second = case.start("second")
    second.wait(HUNG_S)
    said = (case.folder / "second.err").read_text()
    first_alive = case.running.poll() is None
    if first_alive and "another dbdyno run alters settings" not in said:
        raise BrokenError(f"two runs altered one setting\n{said}")
    return None if not first_alive else "the second was refused, the first complete"


FAULTS_OF: tuple[Callable[[Bench, Injection], str | None], ...] = (
    kill_runner,
    kill_guardian,
    kill_both,
    kill_backend,
    kill_server,
    restart_server,
    stop_server_and_kill_runner,
    stall_server,
    stall_runner,
    cut_network,
    silent_network,
    silent_network_two_signals,
    silent_network_without_a_signal,
    slow_network,
    terminate,
    full_disk,
    clock_steps,
    two_runs,
)


@pytest.mark.soak
def test_faults_lose_nothing_hang_nothing_and_leave_nothing(tmp_path: Path) -> None:
    print(f"\nseed {SEED}, faults {FIRST} to {FAULTS - 1}")
    todo = list(range(FIRST, FAULTS))
    assert todo, "DBDYNO_FAULT_FROM is beyond DBDYNO_FAULTS"
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    broken: list[str] = []
    lock = threading.Lock()

    def work(worker: int) -> None:
        with Bench(tmp_path / f"bench{worker}") as bench:
            while True:
                with lock:
                    if not todo:
                        return
                    number = todo.pop(0)
                fault = FAULTS_OF[number % len(FAULTS_OF)]
                try:
                    outcome = bench.inject(fault, f"{SEED}/{number}")
                except BrokenError as error:
                    outcome = "BROKEN: " + str(error).splitlines()[0]
                    broken.append(f"{number} {fault.__name__}: {error}")
                with lock:
                    counts[fault.__name__][outcome] += 1
                    print(f"{number} {fault.__name__}: {outcome}", flush=True)

    with together(*(partial(work, worker) for worker in range(WORKERS))):
        pass
    for name, outcomes in sorted(counts.items()):
        print(name, "|", ", ".join(f"{count} {word}" for word, count in outcomes.most_common()))
    assert not broken, "\n\n".join(broken)
    assert sum(map(Counter.total, counts.values())) == FAULTS - FIRST
