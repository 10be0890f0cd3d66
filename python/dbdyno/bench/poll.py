"""Periodic polling of a server from a separate thread and connection.

Polling instants are random (uniform, half to one and a half periods apart), so that polling never synchronizes with the
activity that it observes. A lost connection is re-established with growing pauses. No error is ever raised into the
thread that runs the load.
"""

from __future__ import annotations

import contextlib
import random
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Self

from dbdyno.base.errors import Error

WAIT_COLUMNS = ("arm", "block", "session", "started_ns", "elapsed_ns", "event", "event_type", "object", "fidelity")
PAUSE_LONGEST_S = 5.0
LATEST = 20
"""Maximum number of periods that one late sample represents."""
STOP_S = 15.0
"""Seconds to wait for the polling thread to end; it may be in the middle of connecting."""


def columns_of_waits(rows: Sequence[Sequence[Any]]) -> dict[str, list[Any]]:
    """Return rows of waits as columns (`WAIT_COLUMNS`), all of the same length."""
    columns = zip(*rows, strict=True) if rows else ([] for _ in WAIT_COLUMNS)
    return dict(zip(WAIT_COLUMNS, map(list, columns), strict=True))


def session_names(arms: Sequence[str], longest: int) -> dict[str, str]:
    """Return the name that each arm's sessions log in with: `dbdyno/<arm>`, distinct, of at most `longest` bytes.

    Characters that are not printable ASCII are replaced, as PostgreSQL does.
    """
    names: dict[str, str] = {}
    for index, arm in enumerate(arms):
        plain = "".join(char if " " <= char <= "~" else "?" for char in arm)
        name = f"dbdyno/{plain}"[:longest]
        if name in names.values():
            mark = f"~{index}"
            name = name[: longest - len(mark)] + mark
        names[arm] = name
    return names


class Poller(ABC):
    """Thread that calls `_look` about once per period; subclasses implement `_connect` and `_look`.

    `samples` is the number of samples taken; `problem` is the reason for the latest failure, or None after a successful
    sample. `clock` returns UNIX time in ns.
    """

    name = "dbdyno watcher"
    """Name of the thread, and of the connection if the engine shows one."""

    failures: tuple[type[Exception], ...] = (Error, OSError)
    """Exceptions that end a connection and lead to a new one."""

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
        """Start polling; starting twice is not an error."""
        if self._thread is None:
            self._stop.clear()
            self._thread = threading.Thread(target=self._watch, name=self.name, daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Stop polling and close the connection; samples taken so far remain available."""
        self._stop.set()
        self._looking.set()
        if self._thread is not None:
            self._thread.join(STOP_S)
            self._thread = None

    def pause(self) -> None:
        """Suspend polling, for example to measure its cost; the connection stays open."""
        self._looking.clear()

    def resume(self) -> None:
        """Continue polling after `pause`."""
        self._from_here()
        self._looking.set()

    def _from_here(self) -> None:
        """Exclude the time before this instant from the interval that the next sample represents."""
        self._looked_ns = time.monotonic_ns()

    def _stretch_ns(self) -> int:
        """Return the interval that a sample represents, in ns: the time since the previous one.

        The interval is at most `LATEST` periods. On a busy machine it is longer than one period, so that late samples
        do not make the load seem idle.
        """
        now = time.monotonic_ns()
        since, self._looked_ns = now - self._looked_ns, now
        return max(1, min(since, LATEST * self._period_ns))

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @abstractmethod
    def _connect(self) -> Any:
        """Open a new connection, or raise one of `failures`."""

    @abstractmethod
    def _look(self, conn: Any) -> None:
        """Take one sample; raising one of `failures` ends the connection."""

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
