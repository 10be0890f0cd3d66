"""Processes found and killed by a random mark in their environment.

All their descendants inherit the mark, whatever session or process group they move to, and a process that later gets a
reused process ID does not have it. The mark can therefore be registered with the guardian before the first process is
started.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

NAME = "DBDYNO_MARK"
PATIENCE_S = 5.0


def new_mark() -> str:
    """Return a new random mark."""
    return secrets.token_hex(16)


@dataclass(frozen=True, slots=True)
class MarkUndo:
    """Undo that kills every process that carries a mark."""

    label: str
    mark: str

    def execute(self) -> list[str]:
        """Kill the processes until none is left and return problems as sentences."""
        deadline = time.monotonic() + PATIENCE_S
        while found := list(marked_pids(self.mark)):
            for pid in found:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            if time.monotonic() > deadline:
                return [f"{self.label}: process {found[0]} cannot be ended"]
            time.sleep(0.02)
        return []


def marked_pids(mark: str, proc: Path = Path("/proc")) -> Iterator[int]:
    """Yield the IDs of this user's processes that carry the mark."""
    wanted = f"{NAME}={mark}".encode()
    for entry in proc.glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if wanted in (entry / "environ").read_bytes().split(b"\0"):
                yield int(entry.name)
