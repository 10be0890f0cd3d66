"""A live MariaDB as a bench: embedded, or by its connection string.

What alters the server is claimed, noted and registered with the guardian before it is done. Where arms differ by what a
session can be told they alternate in slices, their sessions open side by side; else each turn puts its arm's settings
and SQL in effect, and reads them back.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dbdyno.bench.mariadb.address import driver, said
from dbdyno.bench.mariadb.global_settings import claim, in_effect, other_values
from dbdyno.bench.mariadb.objects import turn_sql, workload_objects
from dbdyno.bench.mariadb.observer import Observer
from dbdyno.bench.mariadb.prepare import EMBEDDED, Prepared, in_own_words, open_targets, prepare
from dbdyno.bench.mariadb.restore import refuse_left
from dbdyno.bench.protocol import Circumstances, Facts, Reads, Ready, Traits
from dbdyno.bench.recorder import AgainError
from dbdyno.errors import PlanError, TargetError
from dbdyno.study.plan.network import differing

if TYPE_CHECKING:
    from dbdyno.bench.mariadb.server import MariaDB
    from dbdyno.bench.recorder import Recorder
    from dbdyno.evidence.run import Run
    from dbdyno.study.plan.plan import Plan
    from dbdyno.study.plan.schedule import Turn


class MariaDBBench:
    """The servers of a plan's arms."""

    traits = Traits(grows=True, warms_up_again=True, lines=True)

    def __init__(self, plan: Plan, around: Circumstances) -> None:
        self.around = around
        self.guardian, self.stopping = around.guardian, around.stopping
        if around.cut is not None and around.target:
            plan = replace(plan, dsn=around.target)
        self.plan = in_own_words(plan)
        self.held = contextlib.ExitStack()

    def can(self, plan: Plan) -> str | None:
        """Whether its workload is SQL."""
        if plan.workload.kind is not None:
            return f"its workload {plan.workload.kind!r} has no form in MariaDB's SQL"
        if any(arm.client or arm.fetch_size for arm in plan.arms):
            return "an arm has a client of its own, which runs on PostgreSQL only"
        if any(arm.cold or arm.command for arm in plan.arms):
            return "an arm begins cold or has a command, which MariaDB's bench does not do"
        if plan.watch.statements:
            return "its plan watches pg_stat_statements"
        return None

    @staticmethod
    def orders(plan: Plan, target: str | None) -> list[str]:
        """The servers it connects to or starts, what it sends and sets there."""
        work = plan.workload
        sent = [*work.setup, *(script.text for script in work.scripts), *work.teardown]
        servers = {arm.dsn or target or plan.dsn or EMBEDDED for arm in plan.arms}
        lines = [f"connects to {server}" for server in sorted(servers)]
        lines += [f"sets {name} = {value} when it starts the server" for name, value in plan.embedded_settings.items()]
        for arm in plan.arms:
            lines += [f"sets {name} = {value} ({arm.name})" for name, value in arm.settings.items()]
            sent += [*arm.before_sql, *(script.text for script in arm.scripts or []), *arm.after_sql]
        return lines + [f"sends {text}" for text in sent]

    def prepare(self, seed: int | None = None) -> Ready:
        """Opens the servers. What altered settings were is read under the lock of their server."""
        with server_errors():
            targets = self.held.enter_context(open_targets(self.plan, self.guardian))
            self.ready = prepare(self.plan, targets, seed)
            if self.around.only_looks:
                return self.ready
            for target in self._others().values():
                refuse_left(target)
            if altered := self._altered():
                for target in altered.values():
                    claim(target, self.guardian)
                self.ready = prepare(self.plan, targets, self.ready.seed)
            if self.around.cut is not None:
                self._as_before(self.around.cut)
        return self.ready

    def _as_before(self, run: Run) -> None:
        for known, now in zip(run.manifest["arms"], self.ready.arms, strict=True):
            for change in now.of("global"):
                was = known["was"].get(change.name, change.before)
                if was != change.before and not now.target.owned:
                    raise PlanError(
                        f"{change.name} was {was} when the run began and is {change.before} now: its blocks before"
                        " and after would not be comparable",
                        where=run.id,
                        next_step=f"set it to {was} again, or begin a new run",
                    )
        if self.ready.timing.switch != run.manifest["switch"]:
            raise PlanError("the server would switch arms in another way than before", where=run.id)
        grown = {key: run.manifest[key] for key in ("slice_ns", "turn_ns") if run.manifest.get(key)}
        self.ready = self.ready.retimed(replace(self.ready.timing, **grown))

    def describe(self) -> str:
        """What a run would do."""
        from dbdyno.bench.describe_engine import describe_prepared

        return describe_prepared(self.ready, self.ready.arms, "an option of the server, and restart")

    def facts(self) -> Facts:
        """The servers, and how each arm takes effect there."""
        with server_errors():
            targets = {name: target.facts() for name, target in self._targets().items()}
        arms = [self._arm(number) for number in range(len(self.ready.arms))]
        return Facts(targets, arms, Reads())

    def retime(self, ready: Ready) -> None:
        """Only what comes next is longer."""
        assert isinstance(ready, Prepared)
        self.ready = ready

    def begin(self, run: Run, resumed: int) -> None:
        """Makes the workload's objects, opens the sessions that last. A resumed run draws other random numbers than
        before."""
        from dbdyno import _core

        self.name = str(run.path.resolve())
        with server_errors():
            for target in self._altered().values():
                claim(target, self.guardian, self.name)
            for target in self._targets().values():
                objects = workload_objects(self.ready.plan.workload, target, self.guardian, self.stopping)
                self.held.enter_context(objects)
            self.load = _core.Load(replace(self.ready, seed=self.ready.seed + 1_000_003 * resumed).load_spec())
            self.observer = Observer(self.ready)
            if self._lasting():
                for arm in range(len(self.ready.arms)):
                    self._connect(arm)
            self.held.enter_context(self.observer)

    def progress(self) -> tuple[str, int]:
        """Of the load under way."""
        return "", self.load.progress()

    def stop(self) -> None:
        """The load ends its turn."""
        if hasattr(self, "load"):
            self.load.stop()

    def put_back(self) -> None:
        """Objects, settings, embedded servers: all undone."""
        with server_errors():
            self.held.close()

    @contextlib.contextmanager
    def watch(self, recorder: Recorder) -> Iterator[None]:
        """Canaries before; calls, waits and counters of the block as parts after."""
        with server_errors():
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
        """Runs turns, watched or not; between arms that last not, each puts its own in effect."""
        with server_errors():
            for watched, same in itertools.groupby(turns, key=lambda turn: turn.watched):
                own = list(same)
                self.observer.watch(watched)
                if self._lasting():
                    arm = own[0].arm if len({turn.arm for turn in own}) == 1 else None
                    self._stretch(own, recorder, self._name(arm))
                    continue
                for number, alike in itertools.groupby(own, key=lambda turn: turn.arm):
                    self.stopping.check()
                    with self._in_force(number):
                        self._stretch(list(alike), recorder, self._name(number))
                        self._read_back(number)
            self.observer.watch(True)

    def _stretch(self, turns: list[Turn], recorder: Recorder, arm: str) -> None:
        slices = [(t.arm, t.slice, t.length_ns, t.transactions) for t in turns]
        block = recorder.planned.index
        words = ", ".join(dict.fromkeys(self._name(t.arm) for t in turns))
        with self.observer.stretch(block, arm):
            report = recorder.wait(lambda: self.load.run(block, slices), words, self.load.progress)
        recorder.reports.append({**report, "wall_ns": report["ended_ns"] - report["started_ns"]})

    def _connect(self, arm: int) -> None:
        try:
            self.load.connect(arm)
        except TargetError:
            self.stopping.check()  # what a wish to stop cut short is no failure
            raise

    def _lasting(self) -> bool:
        """Whether the sessions of all arms stay open side by side."""
        ready = self.ready
        return ready.timing.in_slices or (len(ready.arms) == 1 and not ready.arms[0].changes)

    def _name(self, arm: int | None) -> str:
        return "" if arm is None else self.ready.arms[arm].arm.name

    def _targets(self) -> dict[str, MariaDB]:
        return {arm.target.safe_dsn: arm.target for arm in self.ready.arms}

    def _others(self) -> dict[str, MariaDB]:
        return {name: target for name, target in self._targets().items() if not target.owned}

    def _altered(self) -> dict[str, MariaDB]:
        """Servers that are not ours and of which a setting of all is altered."""
        return {arm.target.safe_dsn: arm.target for arm in self.ready.arms if arm.of("global") and not arm.target.owned}

    @contextlib.contextmanager
    def _in_force(self, number: int) -> Iterator[None]:
        """The arm's settings and SQL in effect, its sessions open; all put back at the end."""
        ready = self.ready.arms[number]
        with contextlib.ExitStack() as stack:
            if self.ready.timing.switch == "restart":
                # Every turn of every arm begins alike, with caches as after a start.
                self.observer.drop_connections()
                ready.target.restart({change.name: change.literal.strip("'") for change in ready.of("restart")})
            stack.enter_context(in_effect(ready.target, ready.changes, self.guardian, self.name))
            self._read_back(number)
            before, after = ready.arm.before_sql, ready.arm.after_sql
            stack.enter_context(turn_sql(before, after, ready.target, self.guardian, self.stopping))
            self._connect(number)
            try:
                yield
            finally:
                self.load.disconnect(number)

    def _read_back(self, number: int) -> None:
        """Whether the settings that any arm alters are what this arm wants, in a new session. Raises
        `OtherValueError`."""
        own = self.ready.arms[number]
        wanted = {
            change.name: change.before
            for arm in self.ready.arms
            if arm.target is own.target
            for change in (*arm.of("global"), *arm.of("restart"))
        }
        wanted |= {change.name: change.value for change in (*own.of("global"), *own.of("restart"))}
        if wanted and (differing := other_values(own.target, wanted)):
            raise OtherValueError(
                f"a setting is not what the arm {own.arm.name!r} wants: {differing}",
                where=own.target.safe_dsn,
                next_step="find out who alters it, or write the value that the server makes of it; then run again",
            )

    def _arm(self, number: int) -> dict[str, Any]:
        own = self.ready.arms[number]
        line = differing(self.ready.plan.network_of(own.arm))
        return {
            "name": own.arm.name,
            "description": own.arm.description,
            "sessions": self.ready.plan.sessions_of(own.arm),
            "rate_per_s": self.ready.plan.rate_of(own.arm),
            "protocol": own.arm.protocol or self.ready.plan.workload.protocol,
            "target": own.target.safe_dsn,
            "changes": {change.name: change.value for change in own.changes} | line,
            "how": {change.name: change.how for change in own.changes},
            "was": {change.name: change.before for change in own.changes},
            "against": own.arm.against,
        }


BENCH = MariaDBBench


class OtherValueError(AgainError):
    """A turn ran under another value than its arm's: it does not count."""


@contextlib.contextmanager
def server_errors() -> Iterator[None]:
    """A server, or the way to it, that went away in between is an error with a next step."""
    try:
        yield
    except driver().Error as error:
        raise TargetError(
            f"the server broke off: {said(error)}",
            next_step="look at the server's log; `dbdyno run --resume last` goes on with a run that has whole blocks",
        ) from error


__all__ = ["BENCH", "EMBEDDED", "MariaDBBench", "OtherValueError"]
