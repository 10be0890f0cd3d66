"""The end of what a process writes to stderr, however much that is: read as it comes, so that it neither waits for us
nor fills a disk, and forgotten but for the last of it."""

from __future__ import annotations

import contextlib
import os
import threading
from typing import IO

KEPT_BYTES = 1 << 14
PATIENCE_S = 0.5
"""How long the end of the pipe is waited for, of a process that has ended."""


class LastWords:
    """Reads a pipe in a thread of its own, which closes it at its end."""

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
        """What is kept, by now or at the end."""
        self._ended.wait(PATIENCE_S)
        return self._kept.decode(errors="replace")
