"""Handling of SIGINT, SIGTERM and SIGHUP in every phase: planning, running, computing, analysing and rendering.

Ctrl-C, SIGTERM and SIGHUP raise `KeyboardInterrupt` in the main thread, so that everything open is closed and restored
on the way out; the exit code is 130. While a run is in progress (inside `StopSignals`) the first signal only sets a
flag that the run checks; the current turn ends and everything is restored.

The main thread may be unable to handle a signal (inside a long computation of the core, a driver or a renderer).
Therefore a separate thread counts signals: it tells the user about the delay, ends the process a few seconds after the
second signal and immediately after the third, whatever the main thread waits for; the guardian then restores what is
still changed.

A signal that was ignored when the process started (nohup, a shell's background job) stays ignored, but a run in
progress reacts to SIGINT anyway, so that a script can stop it.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import select
import signal
import threading
import weakref
from collections.abc import Callable
from types import FrameType
from typing import Any, Protocol, Self, TypeVar

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
GRACE_S = 3.0
"""Time that the process may continue after the second signal, in seconds."""
GRACE_IN_RUN_S = 5.0
"""Time that the process may continue after the second signal in a run, which has settings to restore, in seconds."""
PATIENCE_S = 2.0
"""Time that the main thread may leave a signal unhandled before the user is informed, in seconds."""
INTERRUPTED = 130

_WAITING = b"dbdyno: a computation is under way and ends first; a second signal ends it\n"
_ENDED = b"dbdyno: ended at once\n"
HARD_END = b"dbdyno: ended at once; the guardian puts back what is left (`dbdyno doctor --target DSN` shows it)\n"


class Interrupted(Exception):  # noqa: N818
    """Interruption of a run that the user or the system has requested."""


class Interruptible(Protocol):
    """An object that may be working in threads that receive no signals, for example a DuckDB connection."""

    def interrupt(self) -> None:
        """Make the object end its work."""


_Worker = TypeVar("_Worker", bound=Interruptible)
_interruptible: set[weakref.ref[Interruptible]] = set()


def interruptible(worker: _Worker) -> _Worker:
    """Register `worker` to be interrupted when a signal arrives, for as long as it exists, and return it.

    DuckDB checks for signals only in the thread that called it: without this function its other threads continue with
    their part of the query, and the caller waits for them.
    """
    _interruptible.add(weakref.ref(worker, _interruptible.discard))
    return worker


def _interrupt_all() -> None:
    for reference in _interruptible.copy():
        worker = reference()
        if worker is not None:
            with contextlib.suppress(Exception):  # it is closed
                worker.interrupt()


class _Counter:
    """A thread that counts signals independently of the main thread; `close` ends it."""

    def __init__(self, grace_s: Callable[[], float], last_words: bytes, is_deaf: Callable[[], bool] | None) -> None:
        self._end, self._told = os.pipe()
        os.set_blocking(self._told, False)
        self._grace_s, self._last_words, self._is_deaf = grace_s, last_words, is_deaf
        self._before = signal.set_wakeup_fd(self._told, warn_on_full_buffer=False)
        threading.Thread(target=self._listen, name="signals", daemon=True).start()

    def close(self) -> None:
        """Stop counting, and restore the file descriptor that received signal numbers before."""
        signal.set_wakeup_fd(self._before)
        os.close(self._told)

    def _listen(self) -> None:
        with contextlib.ExitStack() as stack:
            stack.callback(os.close, self._end)
            count, asked = 0, False
            while count < 2:
                if count and not asked and self._is_deaf is not None:
                    asked = True
                    if not self._ready(PATIENCE_S) and self._is_deaf():
                        os.write(2, _WAITING)
                found = self._signals()
                if found is None:
                    return
                count += found
            if count == 2 and self._ready(self._grace_s()) and self._signals() is None:
                return
            os.write(2, self._last_words)
            os._exit(INTERRUPTED)

    def _ready(self, seconds: float) -> bool:
        ready, _, _ = select.select([self._end], [], [], seconds)
        return bool(ready)

    def _signals(self) -> int | None:
        """Wait for signals and return how many arrived since the last call, or None once the counter is closed."""
        told = os.read(self._end, 64)
        return sum(number in SIGNALS for number in told) if told else None


class Listener:
    """Handler of signals for the rest of the process's lifetime."""

    def __init__(self) -> None:
        self._heard = threading.Event()
        self._started = False

    def start(self) -> None:
        """Install the signal handlers; do nothing outside the main thread."""
        if threading.current_thread() is not threading.main_thread():
            return
        for number in SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._handle)
        _Counter(lambda: GRACE_S, _ENDED, lambda: not self._heard.is_set())
        self._started = True
        # Registered first, so it runs last. After it Python restores the default signal handlers, and a signal would
        # replace the exit code of a command that has already ended.
        atexit.register(_set_all, signal.SIG_IGN)

    def mark_ended(self) -> None:
        """Record that the command has ended: signals no longer change its result.

        A second signal still ends a process that hangs.
        """
        if self._started:
            _set_all(_heard_too_late)

    def ended_query(self, error: BaseException) -> bool:
        """Return True if a signal ended the query: DuckDB then raises its own exception instead of `Interrupted`."""
        return self._heard.is_set() and isinstance(error, RuntimeError) and str(error) == "Query interrupted"

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self._heard.set()
        _interrupt_all()
        raise KeyboardInterrupt


def _heard_too_late(number: int, frame: FrameType | None) -> None:
    """Ignore a signal after the end of the command; the counting thread still counts it."""


def _set_all(handler: Callable[[int, FrameType | None], None] | signal.Handlers) -> None:
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)


class StopSignals:
    """Context in which SIGINT, SIGTERM and SIGHUP set `asked` and call `on_ask`.

    A second signal raises `KeyboardInterrupt`.
    """

    def __init__(self) -> None:
        self.asked = False
        self.on_ask: Callable[[], object] | None = None
        self._before: dict[int, Any] = {}
        self._counter: _Counter | None = None

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
                    self._before[number] = signal.signal(number, self._handle)
            self._counter = _Counter(lambda: GRACE_IN_RUN_S, HARD_END, None)
        return self

    def __exit__(self, *_: object) -> None:
        if self._counter is not None:
            self._counter.close()
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def check(self) -> None:
        """Raise `Interrupted` if a signal has arrived."""
        if self.asked:
            raise Interrupted

    def is_requested(self) -> bool:
        """Return True if a signal has arrived, for code that waits and can stop waiting."""
        return self.asked

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        if self.on_ask is not None:
            self.on_ask()
