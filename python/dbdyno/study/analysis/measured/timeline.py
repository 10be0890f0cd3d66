"""When each block of a run began, told by lengths, not by the wall clock.

Blocks are ordered by their number. Their times are those of one clock that is read once from the
wall and goes on by itself; a run that was resumed has another such clock from there on, and older
evidence has the wall clock's own times, which may have been stepped between blocks or within one.
What cannot be is put right here: a block does not begin before the last one ended.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass

from dbdyno.evidence.run import Block

BACK_S = 0.01
"""A block that begins so long before the end of the last one began under another clock."""
PAUSE_TIMES, PAUSE_S = 20.0, 60.0
"""In older evidence a gap beyond so many blocks' length and so many seconds is a step."""
STEP = "clock_step_ns"


class RunClock:
    """Nanoseconds since 1970 that never step: the wall clock's at first, then the monotonic one's."""

    def __init__(self) -> None:
        self._wall_ns, self._monotonic_ns = time.time_ns(), time.monotonic_ns()
        self._apart_ns = 0

    def now_ns(self) -> int:
        """Now."""
        return self._wall_ns + time.monotonic_ns() - self._monotonic_ns

    def step_ns(self) -> int:
        """How far the wall clock was moved since this was last asked."""
        apart = time.time_ns() - self.now_ns()
        step, self._apart_ns = apart - self._apart_ns, apart
        return step


@dataclass(frozen=True)
class Timeline:
    """`begins_s`: seconds from the first block's begin to that of each, by its number; `length_s`:
    to the end of the last; `steps`: (block, seconds) of the wall clock's steps that are known."""

    begins_s: dict[int, float]
    length_s: float
    steps: list[tuple[int, float]]


def timeline(blocks: Sequence[Block], resumed: Sequence[int] = ()) -> Timeline:
    """The blocks one after the other. `resumed` says after how many blocks the run was resumed."""
    lengths = [_length_s(block) for block in blocks]
    usual = statistics.median(length for length, _ in lengths) if lengths else 0.0
    begins: dict[int, float] = {}
    steps: list[tuple[int, float]] = []
    at, before = 0.0, None
    for block, (length, inside) in zip(blocks, lengths, strict=True):
        gap, step = (0.0, 0.0) if before is None else _gap_s(before, block, usual, block.index in resumed)
        steps += [(block.index, s) for s in (step, inside, block.report.get(STEP, 0) / 1e9) if s]
        at += gap
        begins[block.index] = at
        at, before = at + length, block
    return Timeline(begins, at, steps)


def _length_s(block: Block) -> tuple[float, float]:
    """A block's length, and a step of the clock within it."""
    raw, load = (block.ended_ns - block.started_ns) / 1e9, block.report.get("wall_ns", 0) / 1e9
    return (load, raw - load) if raw < 0.9 * load - BACK_S else (raw, 0.0)


def _gap_s(before: Block, block: Block, usual_s: float, resumed: bool) -> tuple[float, float]:
    """The time between two blocks, and a step of the clock in it. On a model, where blocks lie a
    day apart for nothing, there is neither."""
    gap = (block.started_ns - before.ended_ns) / 1e9
    if "invariants" in block.report:
        return 0.0, 0.0
    if gap < -BACK_S:
        return 0.0, 0.0 if resumed else gap
    told = STEP in block.report or resumed
    if not told and gap > max(PAUSE_S, PAUSE_TIMES * usual_s):
        return 0.0, gap
    return gap, 0.0
