"""Progress of commands that simulate: one line on a terminal, which is removed at the end."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator

from dbdyno.base.escaping import unwrap_stream

WIDTH = 78


@contextlib.contextmanager
def progress() -> Iterator[Callable[[str], None]]:
    """Yield a function that shows the current step; it shows nothing if stderr is not a terminal."""
    shown = sys.stderr.isatty()

    def tell(words: str) -> None:
        if shown:
            unwrap_stream(sys.stderr).write(f"\r\x1b[K{words[:WIDTH]}")
            sys.stderr.flush()

    try:
        yield tell
    finally:
        tell("")
