"""Start times of a run's blocks, computed from their lengths instead of the wall clock.

Blocks are ordered by their number. Their times come from one monotonic clock, which is set from the wall clock once.
When a run is resumed, that clock is set again. Older evidence has times from the wall clock itself, which may have been
stepped between blocks or during a block. Impossible times are corrected here: a block does not start before the
previous one ended.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass

from dbdyno.evidence.run import Block

BACK_S = 0.01
"""A block that starts this much before the end of the previous block was timed by another clock [s]."""
PAUSE_TIMES, PAUSE_S = 20.0, 60.0
"""In older evidence, a gap is a clock step if it is longer than this multiple of a block and this many seconds."""
STEP = "clock_step_ns"


class RunClock:
    """Clock of nanoseconds since 1970 that never steps: it starts at the wall clock's time and runs monotonically."""

    def __init__(self) -> None:
        self._wall_ns, self._monotonic_ns = time.time_ns(), time.monotonic_ns()
        self._apart_ns = 0

    def now_ns(self) -> int:
        """Return the current time [ns]."""
        return self._wall_ns + time.monotonic_ns() - self._monotonic_ns

    def step_ns(self) -> int:
        """Return how far the wall clock was moved since the last call [ns]."""
        apart = time.time_ns() - self.now_ns()
        step, self._apart_ns = apart - self._apart_ns, apart
        return step


@dataclass(frozen=True)
class Timeline:
    """Positions of blocks in time.

    Attributes:
        begins_s: Seconds from the start of the first block to that of each block, by its number.
        length_s: Seconds to the end of the last block.
        steps: Known steps of the wall clock: (block, seconds).
    """

    begins_s: dict[int, float]
    length_s: float
    steps: list[tuple[int, float]]


def timeline(blocks: Sequence[Block], resumed: Sequence[int] = ()) -> Timeline:
    """Return the blocks placed one after another; `resumed` lists the blocks after which the run was resumed."""
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
    """Return a block's length, and how far the clock was set forward or back during it [s]."""
    raw, load = (block.ended_ns - block.started_ns) / 1e9, block.report.get("wall_ns", 0) / 1e9
    return (load, raw - load) if raw < 0.9 * load - BACK_S else (raw, 0.0)


def _gap_s(before: Block, block: Block, usual_s: float, resumed: bool) -> tuple[float, float]:
    """Return the time between two blocks, and how far the clock was set forward or back in it [s].

    Both are 0 for a model, because the day between two of its blocks has no meaning.
    """
    gap = (block.started_ns - before.ended_ns) / 1e9
    if "invariants" in block.report:
        return 0.0, 0.0
    if gap < -BACK_S:
        return 0.0, 0.0 if resumed else gap
    told = STEP in block.report or resumed
    if not told and gap > max(PAUSE_S, PAUSE_TIMES * usual_s):
        return 0.0, gap
    return gap, 0.0
