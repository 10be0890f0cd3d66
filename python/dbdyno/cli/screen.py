"""A screen that is redrawn repeatedly, and single keys, in any terminal; plain ANSI, no curses.

    with Screen() as screen:
        while screen.wait(2.0) != "q":
            screen.draw(text)

The terminal is restored in every case: at the end, on an error, on SIGINT, SIGTERM and SIGHUP. `wait` returns a signal
as the key q, because an exception could be raised where Python swallows it. A second signal is raised as an exception.
The screen needs a terminal on stdout (`is_usable`); keys are read only if stdin is a terminal too.
"""

from __future__ import annotations

import os
import select
import signal
import sys
from types import FrameType
from typing import Any, Self

from dbdyno.base.escaping import unwrap_stream

_ENTER = "\x1b[?1049h\x1b[?25l\x1b[2J"
_LEAVE = "\x1b[?25h\x1b[?1049l"


def is_usable() -> bool:
    """Return True if stdout is a terminal that supports control sequences."""
    return sys.stdout.isatty() and os.environ.get("TERM", "dumb") not in ("", "dumb")


class Screen:
    """The terminal's alternate screen with the cursor hidden, as a context manager."""

    def __init__(self) -> None:
        self._kept: list[Any] | None = None
        self._handlers: dict[int, Any] = {}
        self._asked = False
        self._bell: tuple[int, int] = (-1, -1)

    def __enter__(self) -> Self:
        self._bell = os.pipe()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            self._handlers[number] = signal.signal(number, self._interrupt)
        if sys.stdin.isatty():
            import termios
            import tty

            self._kept = termios.tcgetattr(sys.stdin)
            tty.setcbreak(sys.stdin)
            modes = termios.tcgetattr(sys.stdin)
            modes[6][termios.VSUSP] = b"\0"  # a process stopped by Ctrl-Z would leave the screen unrestored
            termios.tcsetattr(sys.stdin, termios.TCSANOW, modes)
        unwrap_stream(sys.stdout).write(_ENTER)
        sys.stdout.flush()
        return self

    def __exit__(self, *ending: object) -> None:
        unwrap_stream(sys.stdout).write(_LEAVE)
        sys.stdout.flush()
        if self._kept is not None:
            import termios

            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, self._kept)
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        for end in self._bell:
            os.close(end)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        if self._asked:
            raise KeyboardInterrupt
        self._asked = True
        os.write(self._bell[1], b"!")

    def draw(self, text: str) -> None:
        """Show the text from the upper left corner and clear everything else."""
        lines = "\x1b[K\r\n".join(text.split("\n"))
        unwrap_stream(sys.stdout).write(f"\x1b[H{lines}\x1b[K\x1b[J")
        sys.stdout.flush()

    def wait(self, seconds: float) -> str | None:
        """Return the key pressed within this time, q for a signal, or None if there was neither."""
        keys = [] if self._kept is None else [sys.stdin]
        ready, _, _ = select.select([self._bell[0], *keys], [], [], seconds)
        if self._asked:
            return "q"
        if not ready:
            return None
        return os.read(sys.stdin.fileno(), 64).decode(errors="replace") or "q"
