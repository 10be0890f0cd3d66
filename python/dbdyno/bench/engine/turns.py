"""Base class of benches on live engines: turns of arms run by the load generator, with the server observed meanwhile.

Each engine adds how its servers are opened, how an arm's settings take effect and are read back, and what is restored
at the end.
"""

from __future__ import annotations

import contextlib
import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dbdyno.base.errors import PlanError, TargetError
from dbdyno.base.json_types import JsonObject
from dbdyno.bench.clients.arms import describe_client, manifest_record
from dbdyno.bench.clients.load import ClientArm, CombinedLoad
from dbdyno.bench.engine.arm_server import describe_server
from dbdyno.bench.engine.host_loads import HostLoads
from dbdyno.bench.engine.prepare import EngineArm, EngineFunctions, PreparedEnginePlan
from dbdyno.bench.engine.remaining_sessions import RemainingSessions
from dbdyno.bench.engine.spread import refuse_unfit_for_hosts
from dbdyno.bench.engine.volumes import describe_devices, differing_devices
from dbdyno.bench.protocol import EvidenceReading, Facts, RunLayout, Traits
from dbdyno.bench.recorder import RepeatBlockError
from dbdyno.cells.hosts import hosts_of
from dbdyno.study.plan.network import differing_network

if TYPE_CHECKING:
    from dbdyno import _core
    from dbdyno.base.core_types import LoadSpec
    from dbdyno.bench.engine.observer import Observer
    from dbdyno.bench.protocol import BenchContext
    from dbdyno.bench.recorder import Recorder
    from dbdyno.evidence.run import Run
    from dbdyno.hosts.workers import Workers
    from dbdyno.study.plan.plan import Plan
    from dbdyno.study.plan.schedule import Turn


SERVER_LOST_STEP = (
    "check the server's log; then continue with `dbdyno run --resume last` if the run has a complete block"
)
"""Next step of an error after a server disappeared during a run."""


class SettingMismatchError(RepeatBlockError):
    """Error for a turn that ran with a setting that differs from its arm's value; the block does not count."""


class EngineBench(ABC):
    """Bench on the servers of a plan's arms.

    `ready` is set by `prepare`; `load` and `observer` exist once the run has begun.
    """

    traits = Traits(grows=True, warms_up_again=True, spreads=True, lines=True, devices=True)
    restart_words = "ALTER SYSTEM and restart"
    """How a setting that needs a restart takes effect."""
    counts_at_once = False
    """True if the server counts a statement as soon as it ends; PostgreSQL's counters lag by up to a second."""
    engine: EngineFunctions
    ready: PreparedEnginePlan
    clients: dict[int, ClientArm]
    load: Any
    observer: Observer[Any, Any]

    def __init__(self, plan: Plan, around: BenchContext) -> None:
        self.plan = plan
        self.around = around
        self.guardian, self.stopping = around.guardian, around.stopping
        self.held = contextlib.ExitStack()

    @abstractmethod
    def server_errors(self) -> contextlib.AbstractContextManager[None]:
        """Return a context that turns the loss of a server or its connection into a `TargetError` with a next step."""

    @abstractmethod
    def _apply_settings(self, ready: Any, stack: contextlib.ExitStack) -> None:
        """Put the arm's settings in effect until the stack closes, after a cold start if the arm requests one."""

    @contextlib.contextmanager
    def _in_force(self, number: int) -> Iterator[None]:
        """Yield with the arm's settings and SQL in effect and its sessions open; undo all at the end."""
        ready = self.ready.arms[number]
        with contextlib.ExitStack() as stack:
            self._apply_settings(ready, stack)
            self._read_back(number)
            before, after = ready.arm.before_sql, ready.arm.after_sql
            stack.enter_context(self.engine.turn_sql(before, after, ready.target, self.guardian, self.stopping))
            stack.enter_context(self._connection_of(number))
            yield

    @abstractmethod
    def _claim_servers(self) -> bool:
        """Lock the servers whose settings the run alters, and return True if there are any.

        Raises:
            TargetError: An earlier run left settings changed on a server, or another run holds its lock.
        """

    @abstractmethod
    def _version_words(self, facts: JsonObject) -> str:
        """Return the version in a server's facts, in words; empty if unknown."""

    @abstractmethod
    def _read_back(self, number: int) -> None:
        """Check that the settings still have the arm's values.

        Raises:
            SettingMismatchError: A setting has another value.
        """

    def prepare(self, seed: int | None = None) -> RunLayout:
        """Open the servers and prepare the run.

        The previous values of the settings to be changed are read again once the server's lock is held.

        Raises:
            TargetError: A server cannot run the plan, or an earlier run left settings changed on it.
            PlanError: The plan cannot be run as written.
        """
        with self.server_errors():
            targets = self.held.enter_context(self.engine.open_targets(self.plan, self.guardian))
            self.ready = self.engine.prepare(self.plan, targets, seed)
            self.clients = self._client_arms(self.ready)
            self._refuse_unfit_for_hosts(self.ready.load_spec())
            if self.around.only_looks:
                return self.ready
            if self._claim_servers():
                self.ready = self.engine.prepare(self.plan, targets, self.ready.seed)
            self._start_clients()
            if self.around.cut is not None:
                self._as_before(self.around.cut)
        return self.ready

    def describe(self) -> str:
        """Return the description of what a run would do."""
        from dbdyno.bench.engine.describe import describe_prepared

        clients = {
            at: describe_client(own.arm, own.protocol)
            for at, own in enumerate(self.ready.arms)
            if own.arm.client is not None
        }
        return describe_prepared(self.ready, self.restart_words, clients)

    def facts(self) -> Facts:
        """Return facts about the servers, and how each arm's settings take effect there."""
        with self.server_errors():
            targets = {name: self._facts_of(target) for name, target in self._targets().items()}
        arms = [self._row(own, self._version_words(targets[own.target.safe_dsn])) for own in self.ready.arms]
        for number, client in self.clients.items():
            arms[number]["changes"] |= manifest_record(client)
        return Facts(targets, arms, EvidenceReading(), self._volumes())

    def _facts_of(self, target: Any) -> JsonObject:
        """Return facts about a server for the manifest."""
        facts: JsonObject = target.facts()
        return facts

    def retime(self, ready: RunLayout) -> None:
        """Use the new, longer timing for the turns that follow."""
        assert isinstance(ready, PreparedEnginePlan)
        self.ready = ready

    def progress(self) -> tuple[str, int]:
        """Return the progress of the running load."""
        return "", self.load.progress()

    def stop(self) -> None:
        """Ask the load to end its turn."""
        if hasattr(self, "load"):
            self.load.stop()

    def restore(self) -> None:
        """Restore objects and settings and remove embedded servers."""
        with self.server_errors():
            self.held.close()

    @contextlib.contextmanager
    def watch(self, recorder: Recorder) -> Iterator[None]:
        """Measure canaries before the block, and write its calls, waits and counters as evidence parts after it."""
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
            if isinstance(self.load, HostLoads):
                self.load.add_to(recorder)
            self.observer.write(recorder.folder, recorder.name)
        if lost := sum(piece["reconnects"] for piece in recorder.reports):
            recorder.marks.append(f"{lost} reconnect(s)")

    def run(self, turns: Sequence[Turn], recorder: Recorder) -> None:
        """Run turns, each of them observed or not, as planned.

        If the sessions of all arms do not stay open at the same time, each arm's settings are put in effect before its
        turns and restored afterwards. The settling turn of a cold arm is skipped: the arm would be warm after it.
        """
        turns = [turn for turn in turns if turn.counts or not self.ready.arms[turn.arm].arm.cold]
        with self.server_errors():
            for watched, same in itertools.groupby(turns, key=lambda turn: turn.watched):
                own = list(same)
                self.observer.set_watching(watched)
                if self._stays_open():
                    for some in self._stretches(own, recorder.planned.kind):
                        arm = some[0].arm if len({turn.arm for turn in some}) == 1 else None
                        self._stretch(some, recorder, self._name(arm))
                    continue
                for number, alike in itertools.groupby(own, key=lambda turn: turn.arm):
                    self.stopping.check()
                    with self._in_force(number):
                        self._stretch(list(alike), recorder, self._name(number))
                        self._read_back(number)
            self.observer.set_watching(True)

    def _stretches(self, turns: list[Turn], kind: str) -> list[list[Turn]]:
        """Return the turns of arms in slices, divided into stretches; normally all turns form one stretch.

        A warm-up, whose times do not count, has one stretch per arm if the server's counters are current. The rows that
        each arm reads through each index are then known, although the server counts all its sessions together.
        """
        if kind != "warmup" or not (self.counts_at_once and self.plan.watch.counters):
            return [turns]
        ordered = sorted(turns, key=lambda turn: turn.arm)
        return [list(own) for _, own in itertools.groupby(ordered, key=lambda turn: turn.arm)]

    def _stretch(self, turns: list[Turn], recorder: Recorder, arm: str) -> None:
        slices = [(t.arm, t.slice, t.length_ns, t.transactions) for t in turns]
        block = recorder.planned.index
        words = ", ".join(dict.fromkeys(self._name(t.arm) for t in turns))
        with self.observer.stretch(block, arm):
            bill = self.observer.first_usage()
            report = recorder.wait(lambda: self.load.run(block, slices), words, self.load.progress, answered=True)
            arms = self.observer.with_cache_sizes(bill.add_to_reports(report["arms"]))
        recorder.reports.append({**report, "arms": arms, "wall_ns": report["ended_ns"] - report["started_ns"]})

    def _connect(self, arm: int) -> None:
        try:
            self.load.connect(arm)
        except TargetError:
            self.stopping.check()  # a connection interrupted by a stop request is not a failure
            raise

    def _connect_lasting(self) -> None:
        """Open all arms' sessions if they stay open during the run, and start the observer."""
        if self._stays_open():
            for arm in range(len(self.ready.arms)):
                self._connect(arm)
        self.held.enter_context(self.observer)

    @contextlib.contextmanager
    def _connection_of(self, arm: int) -> Iterator[None]:
        self._connect(arm)
        try:
            yield
        finally:
            self.load.disconnect(arm)

    def _refuse_unfit_for_hosts(self, spec: LoadSpec) -> None:
        """Raise `PlanError` if the user or the plan named hosts and the load cannot be spread over them."""
        workers: Workers | None = self.around.ways.get("workers")
        if workers is not None or self.plan.hosts:
            count = len(hosts_of(self.plan.hosts)) if workers is None else len(workers.addresses)
            refuse_unfit_for_hosts(count, self.ready, spec)

    def _host_loads(self, spec: LoadSpec) -> HostLoads | None:
        """Return the load that the user's workers will generate, or None if there are no workers."""
        workers: Workers | None = self.around.ways.get("workers")
        if workers is None:
            return None
        servers = [self.engine.server_sessions(own.target) for own in self.ready.arms]
        for own, arm in zip(servers, spec["arms"], strict=True):
            arm["connection"] = own.with_keepalives(arm["connection"])
        load = HostLoads(workers, spec, RemainingSessions(servers), self.plan.shared_folder)
        self.held.callback(load.close)
        return load

    def _stays_open(self) -> bool:
        """Return True if the sessions of all arms stay open at the same time."""
        return self.ready.timing.in_slices

    def _name(self, arm: int | None) -> str:
        return "" if arm is None else self.ready.arms[arm].arm.name

    def _targets(self) -> JsonObject:
        """Return the servers by address, each once."""
        return {arm.target.safe_dsn: arm.target for arm in self.ready.arms}

    def _volumes(self) -> JsonObject:
        """Return what the manifest says about the modelled devices below the servers; empty if there are no devices."""
        rows = [
            {"target": name, **row}
            for name, target in self._targets().items()
            if target.engine is not None
            for row in target.engine.volumes.records()
        ]
        return {"volumes": rows} if rows else {}

    def _start_clients(self) -> None:
        """Start the external clients; the bench ends them when it closes."""
        for client in self.clients.values():
            self.held.callback(client.end)
            client.guardian = self.guardian
            client.start()

    def _client_arms(self, ready: PreparedEnginePlan) -> dict[int, ClientArm]:
        """Return the arms that an external client runs, by arm number."""
        arms = zip(ready.arms, ready.load_spec()["arms"], strict=True)
        return {
            number: self.engine.client_arm(own, arm, ready.seed)
            for number, (own, arm) in enumerate(arms)
            if own.arm.client is not None
        }

    def _load(self, resumed: int) -> CombinedLoad | HostLoads | _core.Load:
        """Return the load generator for the run's turns; a resumed run draws different random numbers."""
        from dbdyno import _core

        ready = replace(self.ready, seed=self.ready.seed + 1_000_003 * resumed)
        if resumed:
            for number, again in self._client_arms(ready).items():
                self.clients[number].job = again.job
        if self.clients:
            return CombinedLoad(ready.load_spec(), self.clients)
        return self._host_loads(ready.load_spec()) or _core.Load(ready.load_spec())

    def _as_before(self, run: Run) -> None:
        """Restore a resumed run's slice and turn lengths; raise `PlanError` if the run cannot continue as it began.

        It cannot continue if a setting has changed since the run began, or if arms would now be switched in another
        way.
        """
        for known, now in zip(run.manifest.arms, self.ready.arms, strict=True):
            refuse_changed_settings(run.id, known["was"], now)
        if self.ready.timing.switch != run.manifest.switch:
            raise PlanError("its arms would now alternate differently than at the start of the run", where=run.id)
        how = self.ready.timing
        slice_ns, turn_ns = run.manifest.slice_ns or how.slice_ns, run.manifest.turn_ns or how.turn_ns
        self.ready = self.ready.with_timing(replace(how, slice_ns=slice_ns, turn_ns=turn_ns))

    def _row(self, own: EngineArm, version: str) -> JsonObject:
        """Return what the manifest says about an arm; `version` is that of its server, in words."""
        plan = self.ready.plan
        changes = {change.name: change.value for change in own.changes}
        return {
            "name": own.arm.name,
            "description": own.arm.description,
            "sessions": plan.sessions_of(own.arm),
            "rate_per_s": plan.rate_of(own.arm),
            "protocol": own.protocol,
            "target": own.target.safe_dsn,
            "changes": {
                **describe_server(own.arm.server, version),
                **differing_devices(plan.device_of(own.arm)),
                **differing_network(plan.network_of(own.arm)),
                **changes,
            },
            "how": {change.name: change.how for change in own.changes},
            "was": {change.name: change.before for change in own.changes},
            "against": own.arm.against,
        }


def refuse_changed_settings(run: str, was: Mapping[str, str], arm: EngineArm) -> None:
    """Raise `PlanError` if a server-wide setting has changed since the run began.

    Blocks before and after the change would not be comparable. Servers that dbdyno starts are not checked.

    Raises:
        PlanError: A setting has changed since the run began.
    """
    for change in arm.server_changes():
        before = was.get(change.name, change.before)
        if before != change.before and not arm.target.is_embedded:
            raise PlanError(
                f"{change.name} was {before} when the run began and is {change.before} now: blocks before"
                " and after the change would not be comparable",
                where=run,
                next_step=f"set it to {before} again, or start a new run",
            )


def server_side_effects(plan: Plan, target: str | None, embedded: str) -> tuple[list[str], list[str]]:
    """Return what a plan does to servers, as two lists of sentences: connections and settings, and what is sent."""
    work = plan.workload
    servers = {arm.dsn or target or plan.dsn or embedded for arm in plan.arms}
    lines = [f"connects to {server}" for server in sorted(servers)]
    lines += [f"sets {name} = {value} when it starts the server" for name, value in plan.embedded_settings.items()]
    scripts = [] if work.replay else work.scripts
    sent = [*work.setup, *(script.text for script in scripts), *work.teardown]
    if work.replay:
        lines.append(f"sends everything captured in {work.replay}")
    if work.template:
        lines.append(f"copies the database {work.template}, and drops the copies")
    for arm in plan.arms:
        if plan.device_of(arm):
            lines.append(f"mounts a folder for {describe_devices(plan.device_of(arm))} ({arm.name})")
        lines += [f"sets {name} = {value} ({arm.name})" for name, value in arm.settings.items()]
        sent += [*arm.before_sql, *(script.text for script in arm.scripts or []), *arm.after_sql]
    return lines, [f"sends {text}" for text in sent]
