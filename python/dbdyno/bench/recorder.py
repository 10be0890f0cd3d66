"""What a bench tells of a block while it runs it, and how it waits for a load that a thread carries out.

The recorder belongs to one block. The bench puts reports, marks and counts into it; the runner makes the block's
record of it. A bench waits through it, so that progress is shown and a signal is answered wherever time passes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from dbdyno.base.errors import TargetError
from dbdyno.base.signals import Interrupted

if TYPE_CHECKING:
    from pathlib import Path

    from dbdyno.base.signals import Stopping
    from dbdyno.evidence.run import Run
    from dbdyno.study.plan.schedule import PlannedBlock

T = TypeVar("T")

TICK_S = 0.2
SILENT_S = 10.0
"""From so long without a transaction that ended on it is said."""
STOP_S = 10.0
"""How long a load that was told to stop is waited for."""


class AgainError(TargetError):
    """The block does not count, through no fault of the arms: it is run again."""


class Silence:
    """How long no transaction ended, in words beside what is under way; noted once."""

    def __init__(self, note: Callable[[str], None]) -> None:
        self.note = note
        self.count, self.since_s, self.noted = -1, time.monotonic(), False

    def told(self, text: str, count: int) -> str:
        """`text`, with how long `count` has stood still."""
        now_s = time.monotonic()
        if count != self.count:
            self.count, self.since_s = count, now_s
        silent_s = now_s - self.since_s
        if silent_s < SILENT_S:
            return text
        if not self.noted:
            self.noted = True
            self.note(f"{text}: no answer for {silent_s:.0f} s")
        return f"{text}: no answer for {silent_s:.0f} s"


@dataclass
class Recorder:
    """One block: where it goes, what was planned, and what came of it."""

    run: Run
    planned: PlannedBlock
    stopping: Stopping
    on_tick: Callable[[int, str, str, int], None]
    note: Callable[[str], None]
    reports: list[dict[str, Any]] = field(default_factory=list)
    marks: list[str] = field(default_factory=list)
    canaries: dict[str, float] = field(default_factory=dict)
    started_ns: int = 0
    ended_ns: int = 0
    rows: int = 0
    own: dict[str, Any] = field(default_factory=dict)
    """What the record says beside the joined reports."""

    @property
    def folder(self) -> Path:
        """The run's folder."""
        return self.run.path

    @property
    def name(self) -> str:
        """Stem of the block's files."""
        return f"b{self.planned.index:06d}"

    def tick(self, text: str, done: int = 0) -> None:
        """Shows what is under way."""
        self.on_tick(self.planned.index, self.planned.kind, text, done)

    def wait(self, work: Callable[[], T], text: str, done: Callable[[], int], *, answered: bool = False) -> T:
        """Carries `work` out in a thread, outside of the interpreter's lock, while this one shows progress. `answered`:
        a server answers each of what is counted, so that it is said how long it has not. Raises what `work` raises, and
        `Interrupted` where it does not end in time after a signal."""
        answers: list[T] = []
        failures: list[BaseException] = []

        def carried_out() -> None:
            try:
                answers.append(work())
            except BaseException as error:
                failures.append(error)

        thread = threading.Thread(target=carried_out, name="load", daemon=True)
        thread.start()
        stop_by, silence = None, Silence(self.note)
        while thread.is_alive():
            thread.join(TICK_S)
            if self.stopping.asked:
                stop_by = stop_by or time.monotonic() + STOP_S
                if time.monotonic() > stop_by:
                    raise Interrupted
            count = done()
            self.tick(silence.told(text, count) if answered else text, count)
        if failures:
            raise failures[0]
        self.stopping.check()
        return answers[0]
