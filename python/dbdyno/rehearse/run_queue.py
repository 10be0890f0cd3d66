"""Execution times without the time in which client or server were ready to run but had no processor.

On a busy machine, this wait is the main reason why equal executions take different times. Linux counts it for each
process in `/proc/PID/schedstat`: time on a processor [ns], time ready without one [ns], number of times it got one.
Every user may read it. It is subtracted only if both servers run on this machine. Workers of a parallel plan are
separate processes, whose waits are not known here.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path

_PROC = Path("/proc")
_HOSTS = ("localhost", "127.0.0.1", "::1")
_PROGRAMS = ("postgres", "postmaster")
_YOUNG_S = 10.0
"""Maximum age of a process of a new connection [s]; an older one with its number is not the server's process."""


class RunQueue:
    """Scheduler statistics of one process; must be closed."""

    def __init__(self, folder: Path) -> None:
        self._file = os.open(folder / "schedstat", os.O_RDONLY | os.O_CLOEXEC)

    def read(self) -> tuple[int, int]:
        """Return the process's time on a processor, and its time waiting for one [ns]; both are 0 once it has ended."""
        try:
            had, waited, _ = os.pread(self._file, 100, 0).split()
        except OSError:
            return 0, 0
        return int(had), int(waited)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


class Stopwatch:
    """Times of executions by a server process; the client is the thread that creates the stopwatch.

    Attributes:
        elapsed_ns: Time of all executions by the clock [ns].
        waited_ns: Part of it that was subtracted as waits [ns].
    """

    def __init__(self, server: RunQueue | None) -> None:
        """Watch a server process; with None, times are plain wall-clock times."""
        self._server = server
        self._client = RunQueue(_PROC / "thread-self") if server is not None else None
        self._begun = (0, 0, 0, 0)
        self.elapsed_ns = self.waited_ns = 0

    @property
    def is_counting(self) -> bool:
        """Return True if waits are measured and subtracted."""
        return self._server is not None

    def start(self) -> None:
        """Start the measurement, before a command is sent."""
        self._begun = (*self._waits(), time.perf_counter_ns())

    def stop(self) -> int:
        """Return the time since the start without waits [ns], but at least the server's processor time.

        Client and server may have waited at the same time, and a wait may have begun before the start.
        """
        now = time.perf_counter_ns()
        had, server, client = (end - begin for end, begin in zip(self._waits(), self._begun, strict=False))
        elapsed = now - self._begun[3]
        found = min(max(elapsed - server - client, had), elapsed)
        self.elapsed_ns += elapsed
        self.waited_ns += elapsed - found
        return found

    def close(self) -> None:
        """Close the files."""
        for one in (self._server, self._client):
            if one is not None:
                one.close()

    def _waits(self) -> tuple[int, int, int]:
        if self._server is None or self._client is None:
            return 0, 0, 0
        return (*self._server.read(), self._client.read()[1])


def run_queue_of(process: int, folder: Path = _PROC) -> RunQueue | None:
    """Return the scheduler statistics of the server process of a new connection; None if it is not on this machine.

    Args:
        process: Process number that the server reports.
        folder: Mount point of the proc file system.
    """
    own = folder / str(process)
    try:
        with (own / "stat").open(encoding="ascii", errors="replace") as file:
            name, _, rest = file.read().rpartition(")")
        age_s = time.clock_gettime(time.CLOCK_BOOTTIME) - int(rest.split()[19]) / os.sysconf("SC_CLK_TCK")
        return RunQueue(own) if name.partition("(")[2] in _PROGRAMS and age_s < _YOUNG_S else None
    except (OSError, ValueError, IndexError, AttributeError):
        return None


def is_local(parameters: Mapping[str, str | None]) -> bool:
    """Return True if libpq parameters name a socket or the loopback address of this machine."""
    hosts = (parameters.get("hostaddr") or parameters.get("host") or "").split(",")
    return all(host.startswith("/") or host in _HOSTS for host in hosts)
