"""Speed of this host for a database that is not installed yet: CPU, messages, wake-ups, and syncs of a log.

    work       CPU time to look up and change a row by its key in a small database in memory (SQLite)
    message    CPU time to send and receive a message through a socket: work of the kernel
    wake       CPU time to start an idle core
    processors how much longer a computation takes while all others compute; where woken processes run
    delay      extra time of a round trip to a process on another core, compared with the same core
    syncs      flushes of a log, by each method

All are measured in alternating rounds, so that a busy moment affects all of them.
"""

from __future__ import annotations

import os
import random
import socket
import sqlite3
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from dbdyno.bench.canary import MESSAGES, STEPS, WAKE_UPS
from dbdyno.bench.host.machine import host_facts
from dbdyno.bench.host.queue_time import QueueTime, excess_waits
from dbdyno.bench.host.syncs import FLAGS, LogFile, Syncs

ROUNDS = 20
LEAST_NS = 2_000_000_000
"""Minimum time of all rounds together [ns]."""
ROWS = 20_000
PAIRS = 150
"""Number of changes and look-ups, and number of messages, in a round."""
TRIPS = 40
"""Number of round trips in a round."""
IDLE_S = 0.05
"""Time of each round in which this process does nothing, to measure other programs' CPU use [s]."""
LEAST_DELAY_US = 0.5
SPIN_NS = 60_000
"""Time that the other process computes before it answers: about that of a short statement."""
_GIVES_WAY = ("cpu_idle", "cpu_iowait", "cpu_nice")
_ECHO = """
import os, socket, sys, time
here, spin_ns = socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2])
os.sched_setaffinity(0, {int(sys.argv[3])})
while here.recv(1):
    end_ns = time.perf_counter_ns() + spin_ns
    while time.perf_counter_ns() < end_ns:
        pass
    here.send(b"x")
"""


@dataclass
class HostSpeed:
    """Measurements of a host; a list has a value for each round.

    Attributes:
        folder: Folder of the log.
        cores: Number of processors that a process may use.
        cpu: Name of the processor.
        kernel: Name and version of the kernel.
        work_us: CPU time of one look-up and one change together.
        message_us: CPU time to send and receive a message.
        wake_us: CPU time to start an idle core; empty with one core.
        processors: Measured values of the processors, by the name of the canary; empty with one core.
        delays_us: Delays of round trips, of all rounds; empty with one core.
        others: Number of cores that other programs used.
        syncs: Flushes of the log, by method.
    """

    folder: Path
    cores: int
    cpu: str
    kernel: str
    work_us: list[float] = field(default_factory=list)
    message_us: list[float] = field(default_factory=list)
    wake_us: list[float] = field(default_factory=list)
    processors: dict[str, list[float]] = field(default_factory=dict)
    delays_us: list[float] = field(default_factory=list)
    others: list[float] = field(default_factory=list)
    syncs: dict[str, Syncs] = field(default_factory=dict)


def measure_host(
    folder: Path, length_ns: int, on_progress: Callable[[str], None] = lambda words: None, seed: int = 1
) -> HostSpeed:
    """Measure this host for about `length_ns`, most of which is spent on syncs in `folder`.

    Raises:
        DeviceError: The folder cannot be written, or is in memory.
    """
    from dbdyno import _core

    facts = host_facts()
    found = HostSpeed(folder, int(facts["host_cpus"]), str(facts.get("host_cpu", "")), str(facts["host_kernel"]))
    each_ns = max(length_ns, LEAST_NS) // ROUNDS
    with LogFile(folder, seed) as log, ExitStack() as stack:
        echoes = _echoes(stack)
        work = _work(seed)
        for round_ in range(ROUNDS):
            on_progress(f"round {round_ + 1} of {ROUNDS}")
            found.others += _others()
            found.work_us.append(work())
            found.message_us.append(_message_us())
            wake_ns = _core.wake_cost_ns(MESSAGES)
            found.wake_us += [wake_ns / 1e3] if wake_ns is not None else []
            for name, value in _processors().items():
                found.processors.setdefault(name, []).append(value)
            for echo in echoes or ():
                echo.trips()
            for method in FLAGS:
                log.flush_for(method, each_ns // 2 if method == "fdatasync" else each_ns // 6)
        found.delays_us = _delays(*echoes) if echoes else []
        found.syncs = log.syncs
    return found


def _processors() -> dict[str, float]:
    """Return the canaries that describe the processors; empty with one core."""
    from dbdyno import _core

    ratio, places = _core.busy_ratio(STEPS), _core.placement(WAKE_UPS)
    if ratio is None or places is None:
        return {}
    return {"busy_ratio": ratio, **dict(zip(("pulls", "searches", "searches_late"), places, strict=True))}


def _work(seed: int) -> Callable[[], float]:
    """Return a function that updates and looks up rows by key and returns the CPU time of one such pair [us]."""
    database = sqlite3.connect(":memory:", isolation_level=None, cached_statements=8)
    database.execute("create table accounts (id integer primary key, balance integer, filler text)")
    database.executemany("insert into accounts values (?, 0, ?)", ((number, "x" * 84) for number in range(ROWS)))
    dice = random.Random(seed)

    def run() -> float:
        keys = [dice.randrange(ROWS) for _ in range(PAIRS)]
        cpu_ns = time.thread_time_ns()
        for key in keys:
            database.execute("update accounts set balance = balance + 1 where id = ?", (key,))
            database.execute("select balance from accounts where id = ?", (key,)).fetchone()
        return (time.thread_time_ns() - cpu_ns) / PAIRS / 1e3

    run()
    return run


def _message_us() -> float:
    """Return the CPU time of a message through a socket [us]; sender and receiver are this thread."""
    here, there = socket.socketpair()
    with here, there:
        cpu_ns = time.thread_time_ns()
        for _ in range(PAIRS):
            here.send(b"x" * 64)
            there.recv(128)
        return (time.thread_time_ns() - cpu_ns) / PAIRS / 1e3


def _others() -> list[float]:
    """Return how many cores were busy while this process slept; an empty list where the system does not count that."""
    before, begin_ns = _busy_ns(), time.perf_counter_ns()
    time.sleep(IDLE_S)
    after, end_ns = _busy_ns(), time.perf_counter_ns()
    return [(after - before) / (end_ns - begin_ns)] if before is not None and after is not None else []


def _busy_ns() -> int | None:
    """Return the time that this host's processors have been busy since it started [ns].

    Programs of low priority are not counted, because a server gets the processor before them.
    """
    from dbdyno.bench.metrics import host_counters

    found = [one.value for one in host_counters() if one.metric.startswith("cpu_") and one.metric not in _GIVES_WAY]
    return int(sum(found)) if found else None


class _Echo:
    """Another process, on this process's core or another: for each message it computes for a while, then answers."""

    def __init__(self, here: int, there: int) -> None:
        self._spent_us: list[float] = []
        self._core = here
        self._socket, other = socket.socketpair()
        with other:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _ECHO, str(other.fileno()), str(SPIN_NS), str(there)],
                pass_fds=[other.fileno()],
            )
        self._queues = (QueueTime(), QueueTime(self._process.pid))
        self._queued_us: list[float] = []
        self._trip()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()
        self._process.wait()
        for queue in self._queues:
            queue.close()

    def trips(self) -> None:
        """Make the round trips of a round."""
        allowed = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {self._core})
        try:
            for _ in range(TRIPS):
                queue_ns, begin_ns = self._queue_ns(), time.perf_counter_ns()
                self._trip()
                self._spent_us.append((time.perf_counter_ns() - begin_ns - SPIN_NS) / 1e3)
                self._queued_us.append((self._queue_ns() - queue_ns) / 1e3)
        finally:
            os.sched_setaffinity(0, allowed)

    def trips_us(self) -> list[float]:
        """Return the times of all round trips, less the other process's computation and less waits for a core [us]."""
        return [a - b for a, b in zip(self._spent_us, excess_waits(self._queued_us), strict=True)]

    def _queue_ns(self) -> int:
        return sum(queue.ns() for queue in self._queues)

    def _trip(self) -> None:
        self._socket.send(b"x")
        self._socket.recv(1)


def _echoes(stack: ExitStack) -> tuple[_Echo, _Echo] | None:
    """Return an echo on this core and one on another; None with one core, or where processes cannot be bound."""
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_setaffinity") else []
    if len(cores) < 2:
        return None
    return stack.enter_context(_Echo(cores[0], cores[0])), stack.enter_context(_Echo(cores[0], cores[1]))


def _delays(same: _Echo, apart: _Echo) -> list[float]:
    """Return the extra time of round trips to another core, compared with those to this core [us]."""
    usual_us = statistics.median(same.trips_us())
    return [max(us - usual_us, LEAST_DELAY_US) for us in apart.trips_us()]
