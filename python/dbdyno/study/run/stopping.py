"""Ctrl-C and SIGTERM as a question that the run asks itself: "shall I stop?"; how runs end.

The first signal ends the turn and lets everything be put back. A second one interrupts that, too,
and a thread of its own sees to it that the process is gone `HARD_S` later (or at a third signal),
whatever its main thread waits for; the guardian then puts back what is left.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any, Self

from dbdyno.errors import Error

if TYPE_CHECKING:
    from dbdyno.evidence.run import Run


HARD_S = 5.0
"""How long a process may go on after the second signal."""

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(Exception):  # noqa: N818
    """The user or the system asked the run to end."""


@contextlib.contextmanager
def ending(run: Run) -> Iterator[None]:
    """Notes in a run how its blocks ended: all of them run, or why not."""
    try:
        yield
    except (Interrupted, KeyboardInterrupt, Error) as error:
        word = error.message if isinstance(error, Error) else "interrupted"
        with contextlib.suppress(Error):
            run.save(status="aborted", ended=word)
        raise
    run.save(status="complete", ended="all blocks run")


class Stopping:
    """While entered, SIGINT, SIGTERM and SIGHUP set `asked` and call `on_ask`."""

    def __init__(self) -> None:
        self.asked = False
        self.on_ask: Callable[[], object] | None = None
        self._before: dict[int, Any] = {}
        self._wakeup: tuple[socket.socket, int] | None = None

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                self._before[number] = signal.signal(number, self._handle)
            heard, told = socket.socketpair()
            told.setblocking(False)
            before = signal.set_wakeup_fd(told.fileno(), warn_on_full_buffer=False)
            self._wakeup = (told, before)
            threading.Thread(target=self._watch, args=(heard,), name="signals", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._wakeup is not None:
            told, before = self._wakeup
            signal.set_wakeup_fd(before)
            told.close()
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def check(self) -> None:
        """Raises `Interrupted` once a signal came."""
        if self.asked:
            raise Interrupted

    def is_asked(self) -> bool:
        """Whether a signal came: for those who wait and can give up."""
        return self.asked

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        if self.on_ask is not None:
            self.on_ask()

    def _watch(self, heard: socket.socket) -> None:
        """Counts signals where the main thread may be deaf: inside a driver, a join, a system call."""
        with heard:
            count = 0
            while count < 2:
                told = heard.recv(64)
                if not told:
                    return
                count += sum(number in SIGNALS for number in told)
            heard.settimeout(HARD_S)
            with contextlib.suppress(TimeoutError):
                if count == 2 and not heard.recv(64):
                    return
        os.write(2, HARD_END)
        os._exit(130)


HARD_END = b"dbdyno: ended at once; the guardian puts back what is left (`dbdyno doctor --target DSN` shows it)\n"
