"""Signals are heard wherever a command is: while it plans, computes, analyses or renders.

Ctrl-C, SIGTERM and SIGHUP raise `KeyboardInterrupt` in the main thread, so that whatever is open is closed
and put back on the way out; exit code 130. Where the main thread does not get to hear it (inside a long
computation of the core, a driver, a renderer) a thread of its own says so, and a second signal ends the
process `GRACE_S` later, a third at once: the guardian puts back what is left. A run has a way of its own to
stop between turns (`dbdyno.study.run.stopping`) and hears signals itself meanwhile.

A signal that was ignored when the process was started (nohup, a shell's background job) stays ignored.
"""

from __future__ import annotations

import os
import select
import signal
import threading
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
GRACE_S = 3.0
"""How long a process may go on after the second signal."""
PATIENCE_S = 2.0
"""How long the main thread may be deaf before the user is told."""
INTERRUPTED = 130

_WAITING = b"dbdyno: a computation is under way and ends first; a second signal ends it\n"
_ENDED = b"dbdyno: ended at once\n"


class Listener:
    """Hears signals for the rest of the process."""

    def __init__(self) -> None:
        self._heard = threading.Event()
        self._end, told = os.pipe()
        os.set_blocking(told, False)
        self._told = told

    def start(self) -> None:
        """Takes the signals over; nothing where this is not the main thread."""
        if threading.current_thread() is not threading.main_thread():
            return
        for number in SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._handle)
        signal.set_wakeup_fd(self._told, warn_on_full_buffer=False)
        threading.Thread(target=self._listen, name="listener", daemon=True).start()

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self._heard.set()
        raise KeyboardInterrupt

    def _listen(self) -> None:
        """Counts signals, whatever the main thread does."""
        count = self._signals()
        while count < 2:
            if not self._heard.is_set() and self._is_deaf():
                os.write(2, _WAITING)
                self._heard.set()
            count += self._signals()
        if count == 2:
            select.select([self._end], [], [], GRACE_S)
        os.write(2, _ENDED)
        os._exit(INTERRUPTED)

    def _is_deaf(self) -> bool:
        """Whether the main thread has not heard of the signal within its time, nor another came."""
        ready, _, _ = select.select([self._end], [], [], PATIENCE_S)
        return not ready and not self._heard.is_set()

    def _signals(self) -> int:
        """How many came since the last time; waits for one."""
        return sum(number in SIGNALS for number in os.read(self._end, 64))
