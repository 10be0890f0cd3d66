"""Runs a prepared plan, block by block, and keeps what it records.

One thread runs the load (outside of the interpreter's lock); the main thread waits, shows progress
and answers signals; the watcher has threads of its own. Whatever changes the engine is registered
with the guardian before it is done.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dbdyno.errors import TargetError
from dbdyno.evidence.run import Block, Run, SliceRecord
from dbdyno.study.analysis.timeline import STEP, RunClock
from dbdyno.study.plan.schedule import PlannedBlock, Turn
from dbdyno.study.run.growth import regrown, told
from dbdyno.study.run.objects import turn_sql
from dbdyno.study.run.prepare import Prepared
from dbdyno.study.run.server_settings import OtherValueError, read_back
from dbdyno.study.run.stopping import Interrupted

if TYPE_CHECKING:
    from dbdyno.bench.guardian import Guardian
    from dbdyno.core_types import LoadReport, LoadSpec
    from dbdyno.study.run.observer import Observer
    from dbdyno.study.run.progress import Progress
    from dbdyno.study.run.stopping import Stopping


BLOCK_TRIES = 3
"""How often a block is run before somebody else's changes of settings end the run."""

STOP_S = 10.0
"""How long a load that was told to stop is waited for."""


class Runner:
    """Runs blocks of a prepared plan into a run folder."""

    def __init__(
        self,
        ready: Prepared,
        run: Run,
        guardian: Guardian,
        stopping: Stopping,
        progress: Progress,
        observer: Observer,
        load_spec: LoadSpec,
    ) -> None:
        from dbdyno import _core

        self.ready = ready
        self.run = run
        self.guardian = guardian
        self.stopping = stopping
        self.progress = progress
        self.observer = observer
        self.load = _core.Load(load_spec)
        self.clock = RunClock()
        stopping.on_ask = self.load.stop

    def go(self, todo: list[int]) -> None:
        """Runs the blocks of these numbers; raises `Interrupted` when asked to stop, other errors as
        they come."""
        if self._lasting():
            for arm in range(len(self.ready.arms)):
                self._connect(arm)
        began = time.monotonic()
        before = float(self.run.manifest.get("wall_s", 0.0))
        try:
            with self.observer:
                for index in todo:
                    self.stopping.check()
                    self._block(self.ready.blocks[index])
                self.observer.write_statements(self.run.path)
        finally:
            self.run.manifest["wall_s"] = before + time.monotonic() - began

    def _connect(self, arm: int) -> None:
        try:
            self.load.connect(arm)
        except TargetError:
            self.stopping.check()  # what a wish to stop cut short is no failure
            raise

    def _lasting(self) -> bool:
        """Whether the sessions of all arms stay open side by side."""
        return self.ready.timing.in_slices or len(self.ready.arms) == 1

    def _block(self, planned: PlannedBlock) -> None:
        """Runs a block; one with a turn under another value than its arm's is run again."""
        for again in range(BLOCK_TRIES - 1):
            try:
                self._try_block(planned, again)
            except OtherValueError as error:
                self.progress.note(f"block {planned.index} is run again: {error.message}")
            else:
                return
        self._try_block(planned, BLOCK_TRIES - 1)

    def _try_block(self, planned: PlannedBlock, again: int) -> None:
        name = f"b{planned.index:06d}"
        canaries = self.observer.canaries()
        self.load.begin_block(self.run.path / "calls", name)
        step_ns, started = self.clock.step_ns(), self.clock.now_ns()
        try:
            turns, pieces = self._turns(planned)
        except BaseException:
            self.load.abandon_block()
            self.observer.forget()
            raise
        ended = self.clock.now_ns()
        rows = self.load.end_block()
        self.observer.write(self.run.path, name)
        report = {**_joined(pieces), STEP: step_ns}
        block = Block(
            index=planned.index,
            kind=planned.kind,
            started_ns=started,
            ended_ns=ended,
            rows=rows,
            slices=[SliceRecord(t.arm, t.slice, t.counts, t.watched) for t in turns],
            marks=[*_marks(report), *(["run again: a setting was changed in between"] if again else [])],
            report=report,
            canaries=canaries,
        )
        self.run.add_block(block)
        self.progress.block(planned.index, planned.kind, self._rates(report, turns), block.marks)
        if planned.kind == "warmup" or planned.index == 0:
            self._refuse_hopeless(report)
        if planned.kind == "warmup":
            self._grow(report, planned.index + 1)

    def _grow(self, report: dict[str, Any], next_block: int) -> None:
        """Lets slices or turns grow to what the warm-up shows that they need."""
        before, self.ready = self.ready, regrown(self.ready, report)
        if before.timing != self.ready.timing:
            how = self.ready.timing
            self.progress.note(told(before, self.ready, report, next_block))
            self.run.save(slice_ns=how.slice_ns if how.in_slices else None, turn_ns=how.turn_ns)

    def _turns(self, planned: PlannedBlock) -> tuple[list[Turn], list[dict[str, Any]]]:
        """Runs a block's turns; which were run, and what they report. A warm-up in slices ends when
        it has taken twice its time: its transactions are longer than its slices."""
        if planned.kind != "warmup" or not self.ready.timing.in_slices:
            return planned.turns, self._stretches(planned)
        quad, began = 2 * len(self.ready.arms), time.monotonic()
        planned_turns = planned.turns
        whole_s = sum(turn.length_ns or 0 for turn in planned_turns) / 1e9
        done: list[Turn] = []
        pieces: list[dict[str, Any]] = []
        for at in range(0, len(planned_turns), quad):
            turns = planned_turns[at : at + quad]
            pieces += self._stretches(replace(planned, given=turns))
            done += turns
            if time.monotonic() - began > 2 * whole_s:
                break
        return done, pieces

    def _stretches(self, planned: PlannedBlock) -> list[dict[str, Any]]:
        pieces = []
        for watched, same in itertools.groupby(planned.turns, key=lambda turn: turn.watched):
            turns = list(same)
            self.observer.watch(watched)
            if self._lasting():
                arm = turns[0].arm if len({turn.arm for turn in turns}) == 1 else None
                with self.observer.stretch(planned.index, self._name(arm)):
                    pieces.append(self._load(planned, turns))
                continue
            for arm, own in itertools.groupby(turns, key=lambda turn: turn.arm):
                self.stopping.check()
                with self._in_force(arm):
                    with self.observer.stretch(planned.index, self._name(arm)):
                        pieces.append(self._load(planned, list(own)))
                    read_back(self.ready, arm)
        self.observer.watch(True)
        return pieces

    def _name(self, arm: int | None) -> str:
        return "" if arm is None else self.ready.arms[arm].arm.name

    @contextlib.contextmanager
    def _in_force(self, number: int) -> Iterator[None]:
        """The arm's settings and SQL in force, its sessions open; all put back at the end."""
        from dbdyno.bench.postgres.alter import apply_server_settings

        ready = self.ready.arms[number]
        with contextlib.ExitStack() as stack:
            with self.observer.apart():
                stack.enter_context(
                    apply_server_settings(
                        ready.target,
                        ready.changes,
                        guardian=self.guardian,
                        allow_alter_system=self.ready.plan.alter_system,
                        run=str(self.run.path.resolve()),
                    )
                )
            read_back(self.ready, number)
            before, after = ready.arm.before_sql, ready.arm.after_sql
            stack.enter_context(turn_sql(before, after, ready.target, self.guardian, self.stopping))
            self._connect(number)
            try:
                yield
            finally:
                self.load.disconnect(number)

    def _load(self, planned: PlannedBlock, turns: list[Turn]) -> dict[str, Any]:
        """Runs turns in the load generator while this thread shows progress."""
        slices = [(t.arm, t.slice, t.length_ns, t.transactions) for t in turns]
        answer: list[LoadReport] = []
        failure: list[BaseException] = []

        def work() -> None:
            try:
                answer.append(self.load.run(planned.index, slices))
            except BaseException as error:
                failure.append(error)

        thread = threading.Thread(target=work, name="load", daemon=True)
        thread.start()
        arms = ", ".join(dict.fromkeys(self._name(t.arm) for t in turns))
        stop_by = None
        while thread.is_alive():
            thread.join(0.2)
            if self.stopping.asked:
                stop_by = stop_by or time.monotonic() + STOP_S
                if time.monotonic() > stop_by:
                    raise Interrupted
            self.progress.tick(planned.index, planned.kind, arms, self.load.progress())
        if failure:
            raise failure[0]
        self.stopping.check()
        return {**answer[0]}

    def _rates(self, report: dict[str, Any], turns: list[Turn]) -> dict[str, float]:
        """Successful transactions per second by arm: of the time that its sessions were busy, in an
        open loop of the time in which arrivals were due."""
        rates = {}
        for arm in report["arms"]:
            ready = self.ready.arms[arm["arm"]]
            done = arm["transactions"] - arm["errors"]
            due_ns = sum(turn.length_ns or 0 for turn in turns if turn.arm == arm["arm"])
            if self.ready.plan.rate_of(ready.arm) and due_ns:
                rates[ready.arm.name] = done * 1e9 / due_ns
            elif arm["busy_ns"]:
                sessions = self.ready.plan.sessions_of(ready.arm)
                rates[ready.arm.name] = done * sessions * 1e9 / arm["busy_ns"]
        return rates

    def _refuse_hopeless(self, report: dict[str, Any]) -> None:
        """Raises `TargetError` when nothing of an arm went well: its script or its settings do not
        fit the engine."""
        for arm in report["arms"]:
            tried, said = arm["transactions"], arm["first_error"] or "?"
            if tried and arm["errors"] == tried:
                raise TargetError(
                    f"all {tried:,} transactions failed in the first block, the first with: {said}",
                    where=f"arm {self._name(arm['arm'])!r}",
                    next_step="run the script by hand on the engine, then mend the plan",
                )


def _joined(pieces: list[dict[str, Any]]) -> dict[str, Any]:
    """One report of a block's pieces: sums, and the largest lag."""
    arms: dict[int, dict[str, Any]] = {}
    for piece in pieces:
        for arm in piece["arms"]:
            own = arms.setdefault(arm["arm"], {"arm": arm["arm"], "lag_max_ns": 0})
            for name in ("transactions", "errors", "retries", "skipped", "busy_ns"):
                own[name] = own.get(name, 0) + arm[name]
            own["lag_max_ns"] = max(own["lag_max_ns"], arm["lag_max_ns"])
            own["first_error"] = own.get("first_error") or arm["first_error"]
    return {
        "reconnects": sum(piece["reconnects"] for piece in pieces),
        "cpu_ns": sum(piece["cpu_ns"] for piece in pieces),
        "wall_ns": sum(piece["ended_ns"] - piece["started_ns"] for piece in pieces),
        "arms": list(arms.values()),
    }


def _marks(report: dict[str, Any]) -> list[str]:
    marks = []
    if report["reconnects"]:
        marks.append(f"{report['reconnects']} reconnect(s)")
    return marks
