"""Looks at a server again and again, from a thread and a connection of its own.

The instants are random (uniform, half to one and a half periods apart), so that looking never falls
into step with what it looks at. A lost connection is made again, with growing pauses; nothing is
ever raised into the thread that is being watched.
"""

from __future__ import annotations

import contextlib
import random
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from dbdyno.base.errors import Error

PAUSE_LONGEST_S = 5.0
LATEST = 20
"""A look that comes later than so many periods stands for no more than these."""
STOP_S = 15.0
"""How long a thread that was told to stop is waited for: it may be connecting."""


class Poller(ABC):
    """A thread that calls `_look` once per period; made concrete by what connects and looks.

    `samples` counts the looks, `problem` tells why there were none lately. `clock` gives UNIX time
    in ns.
    """

    name = "dbdyno watcher"
    """The name of the thread, and of the connection where the engine shows one."""

    failures: tuple[type[Exception], ...] = (Error, OSError)
    """What ends a connection and is tried again with a new one."""

    def __init__(
        self,
        *,
        period_ns: int,
        clock: Callable[[], int] = time.time_ns,
        seed: int = 0,
    ) -> None:
        self.samples = 0
        self.problem: str | None = None
        self._period_ns = period_ns
        self._clock = clock
        self._dice = random.Random(seed)
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._looking = threading.Event()
        self._looking.set()
        self._thread: threading.Thread | None = None
        self._looked_ns = time.monotonic_ns()

    def start(self) -> None:
        """Begin to look. Starting twice is no error."""
        if self._thread is None:
            self._stop.clear()
            self._thread = threading.Thread(target=self._watch, name=self.name, daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Stop looking and close the connection; what was seen stays to be taken."""
        self._stop.set()
        self._looking.set()
        if self._thread is not None:
            self._thread.join(STOP_S)
            self._thread = None

    def pause(self) -> None:
        """Stop looking for a while, to measure what looking costs; the connection stays."""
        self._looking.clear()

    def resume(self) -> None:
        """Look again."""
        self._from_here()
        self._looking.set()

    def _from_here(self) -> None:
        """What was before this instant is no part of the next look's stretch."""
        self._looked_ns = time.monotonic_ns()

    def _stretch_ns(self) -> int:
        """For how long a look stands: the time since the one before. On a busy machine that is more than a period,
        and looks that come late must not make the load seem idle."""
        now = time.monotonic_ns()
        since, self._looked_ns = now - self._looked_ns, now
        return max(1, min(since, LATEST * self._period_ns))

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @abstractmethod
    def _connect(self) -> Any:
        """A new connection; one of `failures` where there is none to be had."""

    @abstractmethod
    def _look(self, conn: Any) -> None:
        """One look; what it raises of `failures` ends the connection."""

    def _watch(self) -> None:
        pause_s = 0.1
        while not self._stop.is_set():
            try:
                with contextlib.closing(self._connect()) as conn:
                    pause_s = 0.1
                    self._look_until_stopped(conn)
            except self.failures as error:
                self.problem = (str(error) or type(error).__name__).splitlines()[0]
                self._stop.wait(pause_s)
                pause_s = min(PAUSE_LONGEST_S, pause_s * 2)

    def _look_until_stopped(self, conn: Any) -> None:
        while not self._stop.wait(self._dice.uniform(0.5, 1.5) * self._period_ns / 1e9):
            if not self._looking.is_set():
                self._looking.wait()
                continue
            self._look(conn)
            self.samples += 1
            self.problem = None
