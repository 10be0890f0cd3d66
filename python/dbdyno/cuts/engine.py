"""Interface of an engine in a campaign of power cuts."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from dbdyno.bench.undo import server_processes
from dbdyno.cuts.ledger import Content, Ledger

LOAD_S = 4.0
"""Time after which the power is cut even if the randomly chosen change has not happened [s]."""
POLL_S = 0.002
KILL_S = 10.0
ERROR_LINE = re.compile(r"PANIC|FATAL|ERROR")


class CutEngine(Protocol):
    """An engine whose data are in the folder `back`, mounted at `folder`."""

    version: str
    """Version of the engine; empty before `create`."""
    repaired: str
    """Repair that was needed before a start; empty if no repair was needed. The campaign clears it."""
    folder: Path
    back: Path
    changes_least: int
    changes_most: int
    """Maximum number of file changes before the power fails."""
    recovery_changes_most: int
    """Maximum number of file changes before the power fails during recovery, at least 1."""

    def create(self) -> None:
        """Create an empty, synced database in `back`."""

    def start(self) -> None:
        """Start the engine, which then recovers.

        Raises:
            BrokenEngineError: it does not start.
        """

    def load(self, ledger: Ledger, is_off: Callable[[], bool]) -> float:
        """Commit until the power is off, and return the time at which that was noticed (`time.monotonic`)."""

    def content(self) -> Content:
        """Return everything in the database, and the results of its checks.

        Raises:
            BrokenEngineError: it does not answer.
        """

    def log_bytes(self) -> int:
        """Return the size of the log that the last recovery read [bytes]; 0 if there is none or it is unknown."""

    def kill(self) -> None:
        """Kill all processes of the engine at once."""

    def close(self) -> None:
        """Remove all files."""


class BrokenEngineError(Exception):
    """An engine that does not start or does not answer."""


def wait_for_cut(is_off: Callable[[], bool]) -> float:
    """Wait until the power is off or `LOAD_S` is over, and return the time (`time.monotonic`)."""
    deadline = time.monotonic() + LOAD_S
    while not is_off() and time.monotonic() < deadline:
        time.sleep(POLL_S)
    return time.monotonic()


def end_processes(folder: Path) -> None:
    """Kill all processes of the server with this data folder, as a power cut does."""
    deadline = time.monotonic() + KILL_S
    while (found := list(server_processes(folder))) and time.monotonic() < deadline:
        for process, _ in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGKILL)
        time.sleep(0.01)


def informative_line(text: str) -> str:
    """Return the most informative line of a server's last output."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    telling = [line for line in lines if ERROR_LINE.search(line) and not line.endswith("[ERROR] Aborting")]
    return (telling or lines or ["no answer"])[-1]
