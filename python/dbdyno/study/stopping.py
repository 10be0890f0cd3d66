"""Ctrl-C and SIGTERM as a question that the run asks itself: "shall I stop?"; how runs end.

The first signal ends the turn and lets everything be put back; a second one ends at once, and the
guardian puts back what is left.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any, Self

from dbdyno.errors import Error

if TYPE_CHECKING:
    from dbdyno.evidence.run import Run


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
        self.on_ask: Callable[[], None] | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def check(self) -> None:
        """Raises `Interrupted` once a signal came."""
        if self.asked:
            raise Interrupted

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        if self.on_ask is not None:
            self.on_ask()
