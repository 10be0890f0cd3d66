"""A screen that is drawn over and over, and single keys, in any terminal; plain ANSI, no curses.

    with Screen() as screen:
        while screen.wait(2.0) != "q":
            screen.draw(text)

The terminal is put back whatever happens: at the end, on an error, on SIGINT, SIGTERM and SIGHUP.
A signal counts as q, heard by `wait`: raised as an exception, it can come where Python swallows it.
A second one is raised. Needs a terminal on stdout (`usable`); keys only where stdin is one too.
"""

from __future__ import annotations

import os
import select
import signal
import sys
from types import FrameType
from typing import Any, Self

from dbdyno.base.visible import own

_ENTER = "\x1b[?1049h\x1b[?25l\x1b[2J"
_LEAVE = "\x1b[?25h\x1b[?1049l"


def usable() -> bool:
    """Whether stdout is a terminal that understands more than lines."""
    return sys.stdout.isatty() and os.environ.get("TERM", "dumb") not in ("", "dumb")


class Screen:
    """The terminal's second page, without a cursor; a context manager."""

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
            modes[6][termios.VSUSP] = b"\0"  # stopped, it would leave its page behind
            termios.tcsetattr(sys.stdin, termios.TCSANOW, modes)
        own(sys.stdout).write(_ENTER)
        sys.stdout.flush()
        return self

    def __exit__(self, *ending: object) -> None:
        own(sys.stdout).write(_LEAVE)
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
        """Shows the text from the upper left corner; what was there before is gone."""
        lines = "\x1b[K\r\n".join(text.split("\n"))
        own(sys.stdout).write(f"\x1b[H{lines}\x1b[K\x1b[J")
        sys.stdout.flush()

    def wait(self, seconds: float) -> str | None:
        """The key that was pressed within that time, or q for a signal; None for neither."""
        keys = [] if self._kept is None else [sys.stdin]
        ready, _, _ = select.select([self._bell[0], *keys], [], [], seconds)
        if self._asked:
            return "q"
        if not ready:
            return None
        return os.read(sys.stdin.fileno(), 64).decode(errors="replace") or "q"
