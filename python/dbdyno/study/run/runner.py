"""Runner of a prepared plan on any bench, block by block, which records the results.

The bench runs the load; the runner knows the order, completes each block (its record is written last), shows progress
and handles signals. Blocks run in parallel if each depends only on its number.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING

from dbdyno.base.errors import TargetError
from dbdyno.base.signals import Interrupted
from dbdyno.bench.recorder import TICK_S, Recorder, RepeatBlockError
from dbdyno.evidence.run import Block, Run, SliceRecord
from dbdyno.study.analysis.measured.timeline import STEP, RunClock
from dbdyno.study.run.growth import describe, lengthen_turns
from dbdyno.study.run.report import always_failing_arms, join_reports, rates, started_arms

if TYPE_CHECKING:
    from dbdyno.base.signals import StopSignals
    from dbdyno.bench.protocol import Bench, RunLayout
    from dbdyno.study.plan.schedule import PlannedBlock, Turn
    from dbdyno.study.run.progress import Progress

BLOCK_TRIES = 3
"""Largest number of attempts to run a block before its failure ends the run."""
THREADS_MOST = 8


class Runner:
    """Runner of a prepared plan's blocks, which records them in a run folder."""

    side_by_side = True
    """True if blocks can run in parallel on a bench that supports it."""

    def __init__(self, bench: Bench, ready: RunLayout, run: Run, stopping: StopSignals, progress: Progress) -> None:
        self.bench, self.ready, self.run = bench, ready, run
        self.stopping, self.progress = stopping, progress
        self.clock = RunClock()
        self.names = [arm.name for arm in ready.plan.arms]
        self.begun = {arm for block in run.blocks() for arm in started_arms(block.report)}

    def run_blocks(self, todo: Sequence[PlannedBlock]) -> None:
        """Run these blocks.

        Raises:
            Interrupted: The user asked to stop. Other errors are passed on.
        """
        began = time.monotonic()
        before = float(self.run.manifest.wall_s) if self.run.manifest.has("wall_s") else 0.0
        try:
            if self.bench.traits.parallel_blocks and self.side_by_side:
                self._side_by_side(todo)
            else:
                self._one_by_one(todo)
        finally:
            self.run.update_manifest(wall_s=before + time.monotonic() - began)

    def _one_by_one(self, todo: Sequence[PlannedBlock]) -> None:
        for block in todo:
            self.stopping.check()
            self._block(self.ready.blocks[block.index])

    def _block(self, planned: PlannedBlock) -> None:
        """Run a block; repeat it if it does not count for a reason that its arms did not cause."""
        why = ""
        for again in range(BLOCK_TRIES):
            try:
                self._try_block(planned, why)
            except RepeatBlockError as error:
                if again == BLOCK_TRIES - 1:
                    raise
                why = error.message
                self.progress.note(f"block {planned.index} is run again: {error.message}")
            else:
                return

    def _try_block(self, planned: PlannedBlock, why: str) -> None:
        recorder = self._recorder(planned)
        step_ns, started = self.clock.step_ns(), self.clock.now_ns()
        with self.bench.watch(recorder):
            turns = self._turns(planned, recorder)
            recorder.started_ns = recorder.started_ns or started
            recorder.ended_ns = recorder.ended_ns or self.clock.now_ns()
        if why:
            recorder.marks.append(f"run again: {why}")
        report = {**join_reports(recorder.reports), **recorder.own, STEP: step_ns}
        self._keep(recorder, turns, report)
        self._refuse_hopeless(planned, report)
        if planned.kind == "warmup" and self.bench.traits.grows:
            self._grow(report, planned.index + 1)

    def _recorder(self, planned: PlannedBlock) -> Recorder:
        return Recorder(self.run, planned, self.stopping, self.progress.tick, self.progress.note)

    def _keep(self, recorder: Recorder, turns: list[Turn], report: dict[str, object]) -> None:
        """Record a complete block."""
        planned = recorder.planned
        block = Block(
            index=planned.index,
            kind=planned.kind,
            started_ns=recorder.started_ns,
            ended_ns=recorder.ended_ns,
            rows=recorder.rows,
            slices=[
                *(SliceRecord(t.arm, t.slice, t.counts, t.watched) for t in turns),
                *(SliceRecord(arm, number, counts=False) for arm, number in recorder.uncounted),
            ],
            marks=list(dict.fromkeys(recorder.marks)),
            report=report,
            canaries=recorder.canaries,
        )
        self.run.add_block(block)
        self.progress.block(block.index, block.kind, rates(self.ready.plan, report, turns), block.marks)

    def _turns(self, planned: PlannedBlock, recorder: Recorder) -> list[Turn]:
        """Run a block's turns and return those that were run.

        A warm-up in slices that can grow ends after twice its planned time, because its transactions are then longer
        than its slices.
        """
        turns = planned.turns
        if planned.kind != "warmup" or not (self.ready.timing.in_slices and self.bench.traits.grows):
            self.bench.run(turns, recorder)
            return turns
        quad, began = 2 * len(self.names), time.monotonic()
        whole_s = sum(turn.length_ns or 0 for turn in turns) / 1e9
        done: list[Turn] = []
        for at in range(0, len(turns), quad):
            self.bench.run(turns[at : at + quad], recorder)
            done += turns[at : at + quad]
            if time.monotonic() - began > 2 * whole_s:
                break
        return done

    def _grow(self, report: dict[str, object], next_block: int) -> None:
        """Lengthen slices or turns to what the warm-up shows to be necessary."""
        before, self.ready = self.ready, lengthen_turns(self.ready, report)
        if before.timing != self.ready.timing:
            how = self.ready.timing
            self.bench.retime(self.ready)
            self.progress.note(describe(before, self.ready, report, next_block))
            self.run.save(slice_ns=how.slice_ns if how.in_slices else None, turn_ns=how.turn_ns)

    def _refuse_hopeless(self, planned: PlannedBlock, report: dict[str, object]) -> None:
        """Raise an error if all transactions of an arm failed in a warm-up or in its first block.

        Raises:
            TargetError: All transactions of an arm failed; its script or its settings are wrong.
        """
        new = started_arms(report) - self.begun
        self.begun |= new
        for arm, tried, said in always_failing_arms(report):
            if planned.kind != "warmup" and arm not in new:
                continue
            raise TargetError(
                f"all {tried:,} transactions failed in the first block, the first with: {said}",
                where=f"arm {self.names[arm]!r}",
                next_step=f"run the {self.ready.plan.runnable_kind} manually to see the error, then correct the plan",
            )

    def _side_by_side(self, todo: Sequence[PlannedBlock]) -> None:
        """Run blocks on several threads; blocks that ended before they received a stop request are kept."""
        threads = min(THREADS_MOST, len(os.sched_getaffinity(0)), max(len(todo), 1))
        waiting = iter(todo)
        with ThreadPoolExecutor(threads, "bench") as pool:
            flying: set[Future[Recorder]] = set()
            try:
                while not self.stopping.asked:
                    for planned in _take_blocks(waiting, threads - len(flying)):
                        flying.add(pool.submit(self._run_block, planned))
                    if not flying:
                        break
                    done, flying = wait(flying, TICK_S, FIRST_COMPLETED)
                    for future in done:
                        self._keep_apart(future.result())
                    words, count = self.bench.progress()
                    self.progress.tick(len(todo), "measure", words, count)
            finally:
                self.bench.stop()
                for future in flying:
                    with contextlib.suppress(Interrupted):
                        self._keep_apart(future.result())
        self.stopping.check()

    def _run_block(self, planned: PlannedBlock) -> Recorder:
        recorder = self._recorder(planned)
        with self.bench.watch(recorder):
            self.bench.run(planned.turns, recorder)
        return recorder

    def _keep_apart(self, recorder: Recorder) -> None:
        self._keep(recorder, recorder.planned.turns, {**join_reports(recorder.reports), **recorder.own})


def _take_blocks(waiting: Iterator[PlannedBlock], limit: int) -> list[PlannedBlock]:
    return [planned for _, planned in zip(range(limit), waiting, strict=False)]
