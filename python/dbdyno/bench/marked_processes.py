"""Processes that we start and that may not know when to end: they carry a random mark in their environment.

What they start inherits it, whatever session or group it moves to; a number that the kernel gives to another process
later does not have it. So the mark can be registered with the guardian before the first process is started.
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
    """A mark that nobody else has."""
    return secrets.token_hex(16)


@dataclass(frozen=True, slots=True)
class MarkUndo:
    """End every process that carries a mark."""

    label: str
    mark: str

    def carry_out(self) -> list[str]:
        """Kills them until none is left; returns what went wrong."""
        deadline = time.monotonic() + PATIENCE_S
        while found := list(marked(self.mark)):
            for pid in found:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            if time.monotonic() > deadline:
                return [f"{self.label}: process {found[0]} cannot be ended"]
            time.sleep(0.02)
        return []


def marked(mark: str, proc: Path = Path("/proc")) -> Iterator[int]:
    """The processes of this user that carry a mark."""
    wanted = f"{NAME}={mark}".encode()
    for entry in proc.glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if wanted in (entry / "environ").read_bytes().split(b"\0"):
                yield int(entry.name)
