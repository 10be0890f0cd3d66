"""Reader of the last part of what a process writes to stderr, however much it writes.

The pipe is read continuously, so that the process never waits for a reader and no disk is filled; only the last part of
the output is kept.
"""

from __future__ import annotations

import contextlib
import os
import threading
from typing import IO

KEPT_BYTES = 1 << 14
PATIENCE_S = 0.5
"""Seconds to wait for the end of the pipe after a process has ended."""


class StderrTail:
    """Thread that reads a pipe until EOF, keeps the last `KEPT_BYTES` bytes, and then closes the pipe."""

    def __init__(self, pipe: IO[bytes]) -> None:
        self._kept = b""
        self._ended = threading.Event()
        threading.Thread(target=self._read, args=(pipe,), name="last words", daemon=True).start()

    def _read(self, pipe: IO[bytes]) -> None:
        with pipe, contextlib.suppress(OSError):
            while data := os.read(pipe.fileno(), 1 << 16):
                self._kept = (self._kept + data)[-KEPT_BYTES:]
        self._ended.set()

    def text(self) -> str:
        """Return the kept text after waiting at most `PATIENCE_S` for the end of the pipe."""
        self._ended.wait(PATIENCE_S)
        return self._kept.decode(errors="replace")
