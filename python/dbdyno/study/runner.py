"""Runs a prepared plan, block by block, and keeps what it records.

One thread runs the load (outside of the interpreter's lock); the main thread waits, shows progress
and answers signals; the watcher has threads of its own. Whatever changes the engine is registered
with the guardian before it is done.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from dbdyno.errors import TargetError
from dbdyno.evidence.run import Block, Run, SliceRecord
from dbdyno.study.objects import turn_sql
from dbdyno.study.prepare import Prepared
from dbdyno.study.schedule import PlannedBlock, Turn

if TYPE_CHECKING:
    from dbdyno.study.observer import Observer
    from dbdyno.study.progress import Progress
    from dbdyno.study.stopping import Stopping
    from dbdyno.target.guardian import Guardian


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
        load_spec: str,
    ) -> None:
        from dbdyno import _core

        self.ready = ready
        self.run = run
        self.guardian = guardian
        self.stopping = stopping
        self.progress = progress
        self.observer = observer
        self.load = _core.Load(load_spec)
        stopping.on_ask = self.load.stop

    def go(self, todo: list[PlannedBlock]) -> None:
        """Runs the blocks; raises `Interrupted` when asked to stop, other errors as they come."""
        if self._lasting():
            for arm in range(len(self.ready.arms)):
                self._connect(arm)
        with self.observer:
            for block in todo:
                self.stopping.check()
                self._block(block)
            self.observer.write_statements(self.run.path)

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
        name = f"b{planned.index:06d}"
        canaries = self.observer.canaries()
        self.load.begin_block(self.run.path / "calls", name)
        started = time.time_ns()
        try:
            pieces = self._turns(planned)
        except BaseException:
            self.load.abandon_block()
            raise
        ended = time.time_ns()
        rows = self.load.end_block()
        self.observer.write(self.run.path, name)
        report = _joined(pieces)
        block = Block(
            index=planned.index,
            kind=planned.kind,
            started_ns=started,
            ended_ns=ended,
            rows=rows,
            slices=[SliceRecord(t.arm, t.slice, t.counts, t.watched) for t in planned.turns],
            marks=_marks(report),
            report=report,
            canaries=canaries,
        )
        self.run.add_block(block)
        self.progress.block(planned.index, planned.kind, self._rates(report), block.marks)
        if planned.kind == "warmup":
            _refuse_hopeless(report)

    def _turns(self, planned: PlannedBlock) -> list[dict[str, Any]]:
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
                with self._in_force(arm), self.observer.stretch(planned.index, self._name(arm)):
                    pieces.append(self._load(planned, list(own)))
        self.observer.watch(True)
        return pieces

    def _name(self, arm: int | None) -> str:
        return "" if arm is None else self.ready.arms[arm].arm.name

    @contextlib.contextmanager
    def _in_force(self, number: int) -> Iterator[None]:
        """The arm's settings and SQL in force, its sessions open; all put back at the end."""
        from dbdyno.target.alter import apply_server_settings

        ready = self.ready.arms[number]
        with contextlib.ExitStack() as stack:
            with self.observer.apart():
                stack.enter_context(
                    apply_server_settings(
                        ready.target,
                        ready.changes,
                        guardian=self.guardian,
                        allow_alter_system=self.ready.plan.alter_system,
                    )
                )
            before, after = ready.arm.before_sql, ready.arm.after_sql
            stack.enter_context(turn_sql(before, after, ready.target, self.guardian))
            self._connect(number)
            try:
                yield
            finally:
                self.load.disconnect(number)

    def _load(self, planned: PlannedBlock, turns: list[Turn]) -> dict[str, Any]:
        """Runs turns in the load generator while this thread shows progress."""
        slices = [(t.arm, t.slice, t.length_ns, t.transactions) for t in turns]
        answer: list[str] = []
        failure: list[BaseException] = []

        def work() -> None:
            try:
                answer.append(self.load.run(planned.index, slices))
            except BaseException as error:
                failure.append(error)

        thread = threading.Thread(target=work, name="load", daemon=True)
        thread.start()
        arms = ", ".join(dict.fromkeys(self._name(t.arm) for t in turns))
        while thread.is_alive():
            thread.join(0.2)
            self.progress.tick(planned.index, planned.kind, arms, self.load.progress())
        if failure:
            raise failure[0]
        self.stopping.check()
        report: dict[str, Any] = json.loads(answer[0])
        return report

    def _rates(self, report: dict[str, Any]) -> dict[str, float]:
        rates = {}
        for arm in report["arms"]:
            ready = self.ready.arms[arm["arm"]]
            if arm["busy_ns"]:
                sessions = self.ready.plan.sessions_of(ready.arm)
                done = arm["transactions"] - arm["errors"]
                rates[ready.arm.name] = done * sessions * 1e9 / arm["busy_ns"]
        return rates


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


def _refuse_hopeless(report: dict[str, Any]) -> None:
    """Raises `TargetError` when nothing at all went well: the scripts do not fit the engine."""
    tried = sum(arm["transactions"] for arm in report["arms"])
    if tried and sum(arm["errors"] for arm in report["arms"]) == tried:
        said = next((arm["first_error"] for arm in report["arms"] if arm["first_error"]), "?")
        raise TargetError(
            f"all {tried} transactions of the warm-up failed, the first with: {said}",
            next_step="run the script by hand on the engine, then mend the plan",
        )


def _marks(report: dict[str, Any]) -> list[str]:
    marks = []
    if report["reconnects"]:
        marks.append(f"{report['reconnects']} reconnect(s)")
    return marks
