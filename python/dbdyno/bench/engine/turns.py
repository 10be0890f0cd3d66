"""A live engine as a bench: turns of arms by the load generator, beside it what is seen of the server.

What an engine adds: how its servers are opened, how an arm's settings take effect there and are read back, what is
put back at the end.
"""

from __future__ import annotations

import contextlib
import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dbdyno.base.errors import PlanError, TargetError
from dbdyno.bench.engine.prepare import EngineArm, EngineReady
from dbdyno.bench.protocol import Ready, Traits
from dbdyno.bench.recorder import AgainError
from dbdyno.study.plan.network import differing

if TYPE_CHECKING:
    from dbdyno.bench.engine.observer import Observer
    from dbdyno.bench.protocol import Circumstances
    from dbdyno.bench.recorder import Recorder
    from dbdyno.evidence.run import Run
    from dbdyno.study.plan.plan import Plan
    from dbdyno.study.plan.schedule import Turn


BROKE_OFF = "look at the server's log; `dbdyno run --resume last` goes on with a run that has whole blocks"
"""The next step where a server went away in the middle of a run."""


class OtherValueError(AgainError):
    """A turn ran under another value than its arm's: it does not count."""


class EngineBench(ABC):
    """The servers of a plan's arms. `ready`, `load` and `observer` are there once it has begun."""

    traits = Traits(grows=True, warms_up_again=True, lines=True)
    counts_at_once = False
    """Whether the server's counters hold a statement as soon as it has ended: PostgreSQL's come up to a second late."""
    ready: EngineReady
    load: Any
    observer: Observer[Any, Any]

    def __init__(self, plan: Plan, around: Circumstances) -> None:
        self.plan = plan
        self.around = around
        self.guardian, self.stopping = around.guardian, around.stopping
        self.held = contextlib.ExitStack()

    @abstractmethod
    def server_errors(self) -> contextlib.AbstractContextManager[None]:
        """A server, or the way to it, that went away in between is a `TargetError` with a next step."""

    @abstractmethod
    def _in_force(self, number: int) -> contextlib.AbstractContextManager[None]:
        """The arm's settings and SQL in effect, its sessions open; all put back at the end."""

    @abstractmethod
    def _read_back(self, number: int) -> None:
        """Whether the settings are still what the arm wants. Raises `OtherValueError`."""

    def retime(self, ready: Ready) -> None:
        """Only what comes next is longer."""
        assert isinstance(ready, EngineReady)
        self.ready = ready

    def progress(self) -> tuple[str, int]:
        """Of the load under way."""
        return "", self.load.progress()

    def stop(self) -> None:
        """The load ends its turn."""
        if hasattr(self, "load"):
            self.load.stop()

    def put_back(self) -> None:
        """Objects, settings, embedded servers: all undone."""
        with self.server_errors():
            self.held.close()

    @contextlib.contextmanager
    def watch(self, recorder: Recorder) -> Iterator[None]:
        """Canaries before; calls, waits and counters of the block as parts after."""
        with self.server_errors():
            recorder.canaries = self.observer.canaries()
            self.load.begin_block(recorder.folder / "calls", recorder.name)
            try:
                yield
            except BaseException:
                self.load.abandon_block()
                self.observer.forget()
                raise
            recorder.rows = self.load.end_block()
            self.observer.write(recorder.folder, recorder.name)
        if lost := sum(piece["reconnects"] for piece in recorder.reports):
            recorder.marks.append(f"{lost} reconnect(s)")

    def run(self, turns: Sequence[Turn], recorder: Recorder) -> None:
        """Runs turns, watched or not; between arms that last not, each puts its own in effect. A cold turn does not
        settle: it would be warm after it."""
        turns = [turn for turn in turns if turn.counts or not self.ready.arms[turn.arm].arm.cold]
        with self.server_errors():
            for watched, same in itertools.groupby(turns, key=lambda turn: turn.watched):
                own = list(same)
                self.observer.watch(watched)
                if self._lasting():
                    for some in self._together(own, recorder.planned.kind):
                        arm = some[0].arm if len({turn.arm for turn in some}) == 1 else None
                        self._stretch(some, recorder, self._name(arm))
                    continue
                for number, alike in itertools.groupby(own, key=lambda turn: turn.arm):
                    self.stopping.check()
                    with self._in_force(number):
                        self._stretch(list(alike), recorder, self._name(number))
                        self._read_back(number)
            self.observer.watch(True)

    def _together(self, turns: list[Turn], kind: str) -> list[list[Turn]]:
        """Return the turns of arms in slices, divided into stretches: all in one. A warm-up, whose times do not count,
        has a stretch for each arm where the server's counters are current: so the rows that each arm reads by each
        index are known, which a server counts of all its sessions together."""
        if kind != "warmup" or not (self.counts_at_once and self.plan.watch.counters):
            return [turns]
        ordered = sorted(turns, key=lambda turn: turn.arm)
        return [list(own) for _, own in itertools.groupby(ordered, key=lambda turn: turn.arm)]

    def _stretch(self, turns: list[Turn], recorder: Recorder, arm: str) -> None:
        slices = [(t.arm, t.slice, t.length_ns, t.transactions) for t in turns]
        block = recorder.planned.index
        words = ", ".join(dict.fromkeys(self._name(t.arm) for t in turns))
        with self.observer.stretch(block, arm):
            bill = self.observer.bill()
            report = recorder.wait(lambda: self.load.run(block, slices), words, self.load.progress, answered=True)
            arms = self.observer.with_kept(bill.added_to(report["arms"]))
        recorder.reports.append({**report, "arms": arms, "wall_ns": report["ended_ns"] - report["started_ns"]})

    def _connect(self, arm: int) -> None:
        try:
            self.load.connect(arm)
        except TargetError:
            self.stopping.check()  # what a wish to stop cut short is no failure
            raise

    def _connect_lasting(self) -> None:
        """Opens the sessions that stay open side by side, and begins to watch."""
        if self._lasting():
            for arm in range(len(self.ready.arms)):
                self._connect(arm)
        self.held.enter_context(self.observer)

    @contextlib.contextmanager
    def _connected(self, arm: int) -> Iterator[None]:
        self._connect(arm)
        try:
            yield
        finally:
            self.load.disconnect(arm)

    def _lasting(self) -> bool:
        """Whether the sessions of all arms stay open side by side."""
        return self.ready.timing.in_slices

    def _name(self, arm: int | None) -> str:
        return "" if arm is None else self.ready.arms[arm].arm.name

    def _targets(self) -> dict[str, Any]:
        """The servers, once each."""
        return {arm.target.safe_dsn: arm.target for arm in self.ready.arms}

    def _as_before(self, run: Run) -> None:
        """A run that was cut goes on only where settings are what it found, and in its slices or turns as they had
        grown. Raises `PlanError`."""
        for known, now in zip(run.manifest.arms, self.ready.arms, strict=True):
            refuse_other_befores(run.id, known["was"], now)
        if self.ready.timing.switch != run.manifest.switch:
            raise PlanError("the server would switch arms in another way than before", where=run.id)
        how = self.ready.timing
        slice_ns, turn_ns = run.manifest.slice_ns or how.slice_ns, run.manifest.turn_ns or how.turn_ns
        self.ready = self.ready.retimed(replace(how, slice_ns=slice_ns, turn_ns=turn_ns))

    def _row(self, number: int, protocol: str, special: Mapping[str, str] | None = None) -> dict[str, Any]:
        """What the manifest says of an arm. `special`: of its server."""
        own, plan = self.ready.arms[number], self.ready.plan
        changes = {change.name: change.value for change in own.changes}
        return {
            "name": own.arm.name,
            "description": own.arm.description,
            "sessions": plan.sessions_of(own.arm),
            "rate_per_s": plan.rate_of(own.arm),
            "protocol": protocol,
            "target": own.target.safe_dsn,
            "changes": {**(special or {}), **differing(plan.network_of(own.arm)), **changes},
            "how": {change.name: change.how for change in own.changes},
            "was": {change.name: change.before for change in own.changes},
            "against": own.arm.against,
        }


def refuse_other_befores(run: str, was: Mapping[str, str], arm: EngineArm) -> None:
    """Raises `PlanError` where a setting of the whole server is no longer what a run found when it began: the blocks
    before and after would not be comparable."""
    for change in arm.server_changes():
        before = was.get(change.name, change.before)
        if before != change.before and not arm.target.owned:
            raise PlanError(
                f"{change.name} was {before} when the run began and is {change.before} now: its blocks before"
                " and after would not be comparable",
                where=run,
                next_step=f"set it to {before} again, or begin a new run",
            )


def sent_and_set(plan: Plan, target: str | None, embedded: str) -> tuple[list[str], list[str]]:
    """What a plan would do to servers, as sentences for its reader: (connects and sets, sends)."""
    work = plan.workload
    servers = {arm.dsn or target or plan.dsn or embedded for arm in plan.arms}
    lines = [f"connects to {server}" for server in sorted(servers)]
    lines += [f"sets {name} = {value} when it starts the server" for name, value in plan.embedded_settings.items()]
    scripts = [] if work.replay else work.scripts
    sent = [*work.setup, *(script.text for script in scripts), *work.teardown]
    if work.replay:
        lines.append(f"sends all that was captured in {work.replay}")
    if work.template:
        lines.append(f"copies the database {work.template}, and drops the copies")
    for arm in plan.arms:
        lines += [f"sets {name} = {value} ({arm.name})" for name, value in arm.settings.items()]
        sent += [*arm.before_sql, *(script.text for script in arm.scripts or []), *arm.after_sql]
    return lines, [f"sends {text}" for text in sent]
