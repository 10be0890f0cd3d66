"""What a campaign of power cuts asks of an engine."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from dbdyno.bench.undo import server_processes
from dbdyno.cuts.ledger import Content, Ledger

LOAD_S = 4.0
"""Seconds after which the power is cut if the drawn change has not come."""
POLL_S = 0.002
KILL_S = 10.0


class CutEngine(Protocol):
    """An engine of which the data are in the folder `back`, mounted at `folder`."""

    folder: Path
    back: Path
    changes_least: int
    changes_most: int
    """Range of the changes of files before the power goes."""
    recovery_changes_most: int
    """The same in a recovery, from 1."""

    def create(self) -> None:
        """Make an empty database in `back`, synced and whole."""

    def start(self) -> None:
        """Start the engine, which recovers.

        Raises:
            BrokenEngineError: it does not start.
        """

    def load(self, ledger: Ledger, is_off: Callable[[], bool]) -> float:
        """Commit until the power is off; returns the time at which that was seen (`time.monotonic`)."""

    def content(self) -> Content:
        """Return everything in the database, and what its checks found.

        Raises:
            BrokenEngineError: it does not answer.
        """

    def log_bytes(self) -> int:
        """Return how much of the log the last recovery had to read [bytes]; 0 if it has none, or if that is unknown."""

    def kill(self) -> None:
        """End all its processes at once."""

    def close(self) -> None:
        """Remove everything."""


class BrokenEngineError(Exception):
    """An engine that does not start or answer."""


def wait_for_cut(is_off: Callable[[], bool]) -> float:
    """Wait until the power is off, or the load has lasted long enough; returns the time."""
    deadline = time.monotonic() + LOAD_S
    while not is_off() and time.monotonic() < deadline:
        time.sleep(POLL_S)
    return time.monotonic()


def end_processes(folder: Path) -> None:
    """Kill all processes of the server whose data are in a folder, as a power cut does."""
    deadline = time.monotonic() + KILL_S
    while (found := list(server_processes(folder))) and time.monotonic() < deadline:
        for process, _ in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGKILL)
        time.sleep(0.01)


def last_words(text: str) -> str:
    """Return the line of a server's last words that says most."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    telling = [line for line in lines if any(word in line for word in ("PANIC", "FATAL", "ERROR", "[ERROR]"))]
    return (telling or lines or ["no answer"])[-1]
