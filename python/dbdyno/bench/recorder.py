"""What a bench reports about a block while running it, and how it waits for a load that runs in a thread.

A recorder belongs to one block. The bench adds reports, marks and counts to it; the runner builds the block's record
from it. The bench does all its waiting through the recorder, so that progress is shown and signals are handled
meanwhile.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from dbdyno.base.errors import TargetError
from dbdyno.base.json_types import JsonObject
from dbdyno.base.signals import Interrupted

if TYPE_CHECKING:
    from pathlib import Path

    from dbdyno.base.signals import StopSignals
    from dbdyno.evidence.run import Run
    from dbdyno.study.plan.schedule import PlannedBlock

T = TypeVar("T")

TICK_S = 0.2
SILENT_S = 10.0
"""Seconds without a finished transaction after which the silence is reported."""
STOP_S = 10.0
"""Seconds to wait for a load that was asked to stop."""


class RepeatBlockError(TargetError):
    """Error that invalidates a block through no fault of its arms; the block is run again."""


class SilenceDetector:
    """Detector of time without a finished transaction; it adds this time to the progress text and reports it once."""

    def __init__(self, note: Callable[[str], None]) -> None:
        self.note = note
        self.count, self.since_s, self.noted = -1, time.monotonic(), False

    def extend_text(self, text: str, count: int) -> str:
        """Return `text`; if `count` has not changed for at least `SILENT_S`, append for how long it has not."""
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
    """Recorder of one block: the folder for its evidence, its plan, and what the bench reports."""

    run: Run
    planned: PlannedBlock
    stopping: StopSignals
    on_tick: Callable[[int, str, str, int], None]
    note: Callable[[str], None]
    reports: list[JsonObject] = field(default_factory=list)
    marks: list[str] = field(default_factory=list)
    canaries: dict[str, float] = field(default_factory=dict)
    started_ns: int = 0
    ended_ns: int = 0
    rows: int = 0
    own: JsonObject = field(default_factory=dict)
    """Fields that are added to the block's record besides the merged reports."""
    uncounted: list[tuple[int, int]] = field(default_factory=list)
    """Additional slices, as (arm, slice), with operations that do not count."""

    @property
    def folder(self) -> Path:
        """Return the run's folder."""
        return self.run.path

    @property
    def name(self) -> str:
        """Return the stem of the block's file names."""
        return f"b{self.planned.index:06d}"

    def tick(self, text: str, done: int = 0) -> None:
        """Show the current activity and the number of transactions done."""
        self.on_tick(self.planned.index, self.planned.kind, text, done)

    def wait(self, work: Callable[[], T], text: str, done: Callable[[], int], *, answered: bool = False) -> T:
        """Run `work` in a thread and return its result, showing progress meanwhile.

        `work` is expected to release the GIL.

        Args:
            work: Function to call.
            text: Progress text.
            done: Returns the number of transactions done so far.
            answered: True if a server answers each counted transaction, so that time without answers is reported.

        Raises:
            Interrupted: A signal asked the run to stop; raised after `work` ends, at the latest `STOP_S` later.
            BaseException: Whatever `work` raises.
        """
        answers: list[T] = []
        failures: list[BaseException] = []

        def carried_out() -> None:
            try:
                answers.append(work())
            except BaseException as error:
                failures.append(error)

        thread = threading.Thread(target=carried_out, name="load", daemon=True)
        thread.start()
        stop_by, silence = None, SilenceDetector(self.note)
        while thread.is_alive():
            thread.join(TICK_S)
            if self.stopping.asked:
                stop_by = stop_by or time.monotonic() + STOP_S
                if time.monotonic() > stop_by:
                    raise Interrupted
            count = done()
            self.tick(silence.extend_text(text, count) if answered else text, count)
        if failures:
            raise failures[0]
        self.stopping.check()
        return answers[0]
