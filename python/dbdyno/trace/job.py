"""Reading of trace files by the core in a separate thread.

The calling thread stays free to show progress and to receive Ctrl-C: it then asks the core to stop, waits for it, and
raises `KeyboardInterrupt`.
"""

from __future__ import annotations

import contextlib
import json
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any

from dbdyno import _core
from dbdyno.base.json_types import JsonObject
from dbdyno.trace import early_read

Progress = Callable[[int, int], None]
"""Function that is called several times a second with the bytes read so far and the total bytes."""

_TICK_S = 0.1
_ENDING = (signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True)
class Options:
    """How traces are read: when a wait for the client counts as think time, and what is kept.

    `tim_unit_ns` is the unit of the files' times, for files whose header and stamps do not state it, or state it
    wrongly.
    """

    think_time_ns: int = 1_000_000_000
    binds: bool = False
    threads: int | None = None
    tim_unit_ns: int | None = None

    def as_json(self, files: Sequence[str]) -> str:
        """Return the options in the form that the core takes."""
        return json.dumps(
            {
                "files": list(files),
                "think_time_ns": self.think_time_ns,
                "binds": self.binds,
                "threads": self.threads,
                "tim_unit_ns": self.tim_unit_ns,
            }
        )


class Terminated(BaseException):
    """Raised when SIGTERM or SIGHUP arrives, so that the stack unwinds as for Ctrl-C."""


@contextlib.contextmanager
def delay_signals() -> Iterator[None]:
    """Delay Ctrl-C, SIGTERM and SIGHUP during a step that could not be undone when half done.

    Python's handler is used instead of a signal mask: a mask of this thread would make the kernel deliver the signal to
    another thread, and Python would raise in the main thread anyway.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard: list[int] = []
    before = {n: signal.signal(n, lambda number, _: heard.append(number)) for n in (signal.SIGINT, *_ENDING)}
    try:
        yield
    finally:
        for hearing, handler in before.items():
            signal.signal(hearing, handler)
        for number in heard[:1]:
            signal.raise_signal(number)


@contextlib.contextmanager
def unwind_on_signals() -> Iterator[None]:
    """Let SIGTERM and SIGHUP unwind the block, so that its files are removed, and then end the process by that signal.

    A signal with another handler, or one that is ignored (nohup), is left unchanged.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard: list[int] = []

    def hear(number: int, _: FrameType | None) -> None:
        heard.append(number)
        if len(heard) == 1:  # a second signal does not interrupt the clean-up
            raise Terminated

    mine = [ending for ending in _ENDING if signal.getsignal(ending) is signal.SIG_DFL]
    for ending in mine:
        signal.signal(ending, hear)
    try:
        yield
    finally:
        for ending in mine:
            signal.signal(ending, signal.SIG_DFL)
        for number in heard[:1]:
            signal.raise_signal(number)


def run_job(
    files: Sequence[str],
    options: Options,
    work: Callable[[Any], str],
    progress: Progress | None = None,
    *,
    begun: str = "",
) -> JsonObject:
    """Run `work` with a `TraceJob` and return its JSON answer; errors of the core are raised.

    `begun` is the request of a profile that may already be in progress (`early_read`).
    """
    told = options.as_json(files)
    reading = early_read.take_reading(told, begun)
    is_begun = reading is not None
    reading = reading or early_read.Reading(_core.TraceJob(told), work)
    try:
        if not is_begun:
            with delay_signals():
                reading.start()
                is_begun = True
        while not reading.done.wait(_TICK_S):
            if progress is not None:
                progress(*reading.job.progress())
    except BaseException:
        if is_begun:
            reading.end()
        raise
    if reading.failure is not None:
        raise reading.failure
    found: JsonObject = json.loads(reading.answer)
    return found
