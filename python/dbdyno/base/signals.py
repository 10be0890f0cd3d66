"""Signals are heard wherever dbdyno is: while it plans, runs, computes, analyses or renders.

Ctrl-C, SIGTERM and SIGHUP raise `KeyboardInterrupt` in the main thread, so that whatever is open is closed
and put back on the way out; exit code 130. While a run is under way (`Stopping` is entered) the first one is a
question that the run asks itself instead: "shall I stop?"; the turn ends and everything is put back.

Where the main thread does not get to hear it (inside a long computation of the core, a driver, a renderer) one
thread of its own counts signals: it says so, and after a second signal the process is gone a few seconds later,
after a third at once, whatever its main thread waits for; the guardian puts back what is left.

A signal that was ignored when the process was started (nohup, a shell's background job) stays ignored; a run that is
under way answers to SIGINT all the same, so that a script can stop it.
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
"""How long a process may go on after the second signal."""
GRACE_IN_RUN_S = 5.0
"""The same while a run puts things back."""
PATIENCE_S = 2.0
"""How long the main thread may be deaf before the user is told."""
INTERRUPTED = 130

_WAITING = b"dbdyno: a computation is under way and ends first; a second signal ends it\n"
_ENDED = b"dbdyno: ended at once\n"
HARD_END = b"dbdyno: ended at once; the guardian puts back what is left (`dbdyno doctor --target DSN` shows it)\n"


class Interrupted(Exception):  # noqa: N818
    """The user or the system asked the run to end."""


class Interruptible(Protocol):
    """What may be at work in threads that hear no signal: a connection of DuckDB."""

    def interrupt(self) -> None:
        """Has it end its work."""


_Worker = TypeVar("_Worker", bound=Interruptible)
_interruptible: set[weakref.ref[Interruptible]] = set()


def interruptible(worker: _Worker) -> _Worker:
    """Has `worker` interrupted when a signal comes, for as long as it exists.

    DuckDB asks for signals in the thread that called it alone: its other threads went on with their part of the
    query, and the caller waited for them.
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
    """A thread that counts signals, whatever the main thread does; `close` ends it."""

    def __init__(self, grace_s: Callable[[], float], last_words: bytes, is_deaf: Callable[[], bool] | None) -> None:
        self._end, self._told = os.pipe()
        os.set_blocking(self._told, False)
        self._grace_s, self._last_words, self._is_deaf = grace_s, last_words, is_deaf
        self._before = signal.set_wakeup_fd(self._told, warn_on_full_buffer=False)
        threading.Thread(target=self._listen, name="signals", daemon=True).start()

    def close(self) -> None:
        """Stops counting; whoever counted before goes on."""
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
        """How many came since the last time, None at the end; waits for one."""
        told = os.read(self._end, 64)
        return sum(number in SIGNALS for number in told) if told else None


class Listener:
    """Hears signals for the rest of the process."""

    def __init__(self) -> None:
        self._heard = threading.Event()
        self._started = False

    def start(self) -> None:
        """Takes the signals over; nothing where this is not the main thread."""
        if threading.current_thread() is not threading.main_thread():
            return
        for number in SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._handle)
        _Counter(lambda: GRACE_S, _ENDED, lambda: not self._heard.is_set())
        self._started = True
        # Registered before anything else, so it comes last: from there on nothing of ours is waited for, and Python
        # gives signals their first meaning back, which would make an ending of its own of what is done already.
        atexit.register(_set_all, signal.SIG_IGN)

    def ending(self) -> None:
        """The command has ended, and how: a signal changes that no more. A second one still ends what hangs."""
        if self._started:
            _set_all(_heard_too_late)

    def broke_off(self, error: BaseException) -> bool:
        """Whether an error is how a query ends when a signal came: DuckDB puts its own in the place of ours."""
        return self._heard.is_set() and isinstance(error, RuntimeError) and str(error) == "Query interrupted"

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self._heard.set()
        _interrupt_all()
        raise KeyboardInterrupt


def _heard_too_late(number: int, frame: FrameType | None) -> None:
    """Counted by the thread, and no more than that."""


def _set_all(handler: Callable[[int, FrameType | None], None] | signal.Handlers) -> None:
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)


class Stopping:
    """While entered, SIGINT, SIGTERM and SIGHUP set `asked` and call `on_ask`."""

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
