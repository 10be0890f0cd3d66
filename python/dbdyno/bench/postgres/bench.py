"""A live PostgreSQL as a bench: embedded, or by its connection string.

What alters the server is claimed, noted and registered with the guardian before it is done. Where arms differ by
what a session can be told they alternate in slices, their sessions open side by side; else each turn puts its arm's
settings and SQL in effect, and reads them back.
"""

from __future__ import annotations

import contextlib
import itertools
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dbdyno.bench.clients.load import Loads
from dbdyno.bench.kinds import EMBEDDED
from dbdyno.bench.postgres.clients import client_arms, in_words, told
from dbdyno.bench.postgres.cold import chill
from dbdyno.bench.postgres.objects import turn_sql, workload_objects
from dbdyno.bench.postgres.observer import Observer
from dbdyno.bench.postgres.prepare import Prepared, ReadyArm, open_targets, prepare
from dbdyno.bench.postgres.server_settings import (
    claim_servers,
    read_back,
    refuse_left_settings,
    refuse_other_befores,
    server_errors,
    settled,
)
from dbdyno.bench.protocol import Circumstances, Facts, Reads, Ready, Traits
from dbdyno.errors import PlanError, TargetError
from dbdyno.study.plan.network import differing
from dbdyno.study.plan.typed import IN_SQL

if TYPE_CHECKING:
    from dbdyno.bench.postgres.server import Postgres
    from dbdyno.bench.recorder import Recorder
    from dbdyno.evidence.run import Run
    from dbdyno.study.plan.plan import Plan, Server
    from dbdyno.study.plan.schedule import Timing, Turn

ASKED_FIRST = (
    "shared_buffers",
    "wal_buffers",
    "work_mem",
    "synchronous_commit",
    "fsync",
    "wal_sync_method",
    "full_page_writes",
    "wal_compression",
    "wal_writer_delay",
    "wal_writer_flush_after",
    "max_wal_size",
    "checkpoint_timeout",
    "autovacuum",
    "jit",
    "effective_cache_size",
    "random_page_cost",
    "max_parallel_workers_per_gather",
    "track_io_timing",
)


class PostgresBench:
    """The engines of a plan's arms."""

    traits = Traits(grows=True, warms_up_again=True, lines=True)

    def __init__(self, plan: Plan, around: Circumstances) -> None:
        self.around = around
        self.guardian, self.stopping = around.guardian, around.stopping
        if around.cut is not None:
            plan = replace(plan, dsn=around.target) if around.target else _with_own_secrets(plan)
        self.plan = plan
        self.held = contextlib.ExitStack()

    def can(self, plan: Plan) -> str | None:
        """Whether its workload has a form in SQL."""
        kind = plan.workload.kind
        if any(arm.command for arm in plan.arms):
            return "an arm has a command, which runs on this host"
        return None if kind is None or kind in IN_SQL else f"its workload {kind!r} has no form in SQL"

    @staticmethod
    def orders(plan: Plan, target: str | None) -> list[str]:
        """The servers it connects to, what it sends and sets there."""
        servers = {arm.dsn or target or plan.dsn or EMBEDDED[0] for arm in plan.arms}
        work = plan.workload
        sent = [*work.setup, *(script.text for script in work.scripts), *work.teardown]
        lines = [f"connects to {server}" for server in sorted(servers)]
        own = plan.embedded_settings.items()
        lines += [f"sets {name} = {value} when it starts the server" for name, value in own]
        for arm in plan.arms:
            if arm.server is not None:
                lines += _started(arm.server, arm.name)
            if arm.client is not None:
                words = arm.client if isinstance(arm.client, str) else shlex.join(arm.client)
                lines.append(f"starts the client {words}, which gets the connection with its password ({arm.name})")
            lines += [f"sets {name} = {value} ({arm.name})" for name, value in arm.settings.items()]
            sent += [*arm.before_sql, *(script.text for script in arm.scripts or []), *arm.after_sql]
        return lines + [f"sends {text}" for text in sent]

    @server_errors()
    def prepare(self, seed: int | None = None) -> Ready:
        """Opens the engines. What altered settings were is read under the lock of their server."""
        targets = self.held.enter_context(open_targets(self.plan, self.guardian))
        self.ready = prepare(self.plan, targets, seed)
        self.clients = client_arms(self.ready)
        if self.around.only_looks:
            return self.ready
        if claim_servers(self.ready, self.guardian):
            self.ready = prepare(self.plan, targets, self.ready.seed)
        refuse_left_settings(self.ready, self.around.folder)
        for client in self.clients.values():
            self.held.callback(client.end)
            client.guardian = self.guardian
            client.start()
        if self.around.cut is not None:
            self._as_before(self.around.cut)
        return self.ready

    def _as_before(self, run: Run) -> None:
        refuse_other_befores(run, self.ready)
        if self.ready.timing.switch != run.manifest["switch"]:
            raise PlanError("the engine would switch arms in another way than before", where=run.id)
        self.ready = self.ready.retimed(_kept(self.ready.timing, run))

    def describe(self) -> str:
        """What a run would do."""
        from dbdyno.bench.describe_engine import describe_prepared

        clients = {at: in_words(arm) for at, arm in enumerate(self.ready.arms) if arm.arm.client is not None}
        return describe_prepared(self.ready, self.ready.arms, clients=clients)

    @server_errors()
    def facts(self) -> Facts:
        """The engines, and how each arm takes effect there."""
        targets = {arm.target.safe_dsn: arm.target for arm in self.ready.arms}
        arms = [_arm(self.ready, number) for number in range(len(self.ready.arms))]
        for number, client in self.clients.items():
            arms[number]["changes"] |= told(client)
        return Facts({name: _facts(target) for name, target in targets.items()}, arms, Reads())

    def retime(self, ready: Ready) -> None:
        """Only what comes next is longer."""
        assert isinstance(ready, Prepared)
        self.ready = ready

    @server_errors()
    def begin(self, run: Run, resumed: int) -> None:
        """Notes the settings, makes the workload's objects, opens the sessions that last. A resumed run draws other
        random numbers than before."""
        from dbdyno import _core

        enter = self.held.enter_context
        enter(settled(run, self.ready, self.guardian))
        for target in {arm.target.safe_dsn: arm.target for arm in self.ready.arms}.values():
            enter(workload_objects(self.ready.plan.workload, target, self.guardian, self.stopping))
        ready = replace(self.ready, seed=self.ready.seed + 1_000_003 * resumed)
        if resumed:
            for number, again in client_arms(ready).items():
                self.clients[number].job = again.job
        if self.clients:
            self.load: Loads | _core.Load = Loads(ready.load_spec(), self.clients)
        else:
            self.load = _core.Load(ready.load_spec())
        self.name = str(run.path.resolve())
        self.observer = Observer(self.ready, self.stopping.is_asked)
        if self._lasting():
            for arm in range(len(self.ready.arms)):
                self._connect(arm)
        enter(self.observer)

    def progress(self) -> tuple[str, int]:
        """Of the load under way."""
        return "", self.load.progress()

    def stop(self) -> None:
        """The load ends its turn."""
        if hasattr(self, "load"):
            self.load.stop()

    @server_errors()
    def put_back(self) -> None:
        """Objects, settings, embedded servers: all undone."""
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
            self.observer.write_statements(recorder.folder)
        if lost := sum(piece["reconnects"] for piece in recorder.reports):
            recorder.marks.append(f"{lost} reconnect(s)")

    @server_errors()
    def run(self, turns: Sequence[Turn], recorder: Recorder) -> None:
        """Runs turns, watched or not; between arms that last not, each puts its own in effect. A cold turn does not
        settle: it would be warm after it."""
        turns = [turn for turn in turns if turn.counts or not self.ready.arms[turn.arm].arm.cold]
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
                    read_back(self.ready, number)
        self.observer.watch(True)

    def _stretch(self, turns: list[Turn], recorder: Recorder, arm: str) -> None:
        slices = [(t.arm, t.slice, t.length_ns, t.transactions) for t in turns]
        block = recorder.planned.index
        words = ", ".join(dict.fromkeys(self._name(t.arm) for t in turns))
        with self.observer.stretch(block, arm):
            bill = self.observer.bill()
            report = recorder.wait(lambda: self.load.run(block, slices), words, self.load.progress)
            arms = bill.added_to(report["arms"])
        recorder.reports.append({**report, "arms": arms, "wall_ns": report["ended_ns"] - report["started_ns"]})

    def _connect(self, arm: int) -> None:
        try:
            self.load.connect(arm)
        except TargetError:
            self.stopping.check()  # what a wish to stop cut short is no failure
            raise

    def _lasting(self) -> bool:
        """Whether the sessions of all arms stay open side by side."""
        alone = len(self.ready.arms) == 1 and not self.ready.arms[0].arm.cold
        return self.ready.timing.in_slices or alone

    def _name(self, arm: int | None) -> str:
        return "" if arm is None else self.ready.arms[arm].arm.name

    @contextlib.contextmanager
    def _in_force(self, number: int) -> Iterator[None]:
        """The arm's settings and SQL in effect, its sessions open; all put back at the end."""
        from dbdyno.bench.postgres.alter import apply_server_settings

        ready = self.ready.arms[number]
        with contextlib.ExitStack() as stack:
            with self.observer.apart():
                if ready.arm.cold:
                    chill(ready.target)
                stack.enter_context(
                    apply_server_settings(
                        ready.target,
                        ready.changes,
                        guardian=self.guardian,
                        allow_alter_system=self.ready.plan.alter_system,
                        run=self.name,
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


BENCH = PostgresBench


def _kept(how: Timing, run: Run) -> Timing:
    """The lengths that a run's slices or turns had grown to, so that all its blocks are alike."""
    grown = {key: run.manifest[key] for key in ("slice_ns", "turn_ns") if run.manifest.get(key)}
    return replace(how, **grown)


def _facts(target: Postgres) -> dict[str, Any]:
    """The target's facts; among the settings also those that a reader asks for first."""
    facts = target.facts()
    known = {setting["name"] for setting in facts["settings"]}
    with contextlib.closing(target.connect()) as conn:
        rows = conn.execute(
            "select name, current_setting(name), source from pg_settings where name = any(%s)",
            [[name for name in ASKED_FIRST if name not in known]],
        ).fetchall()
    facts["settings"] += [{"name": n, "value": v, "source": source} for n, v, source in rows]
    return facts


def _arm(ready: Prepared, number: int) -> dict[str, Any]:
    own = ready.arms[number]
    line = differing(ready.plan.network_of(own.arm))
    return {
        "name": own.arm.name,
        "description": own.arm.description,
        "sessions": ready.plan.sessions_of(own.arm),
        "rate_per_s": ready.plan.rate_of(own.arm),
        "protocol": own.protocol,
        "target": own.target.safe_dsn,
        "changes": {
            **_server(own),
            **line,
            **{change.name: change.value for change in own.changes},
        },
        "how": {change.name: change.how for change in own.changes},
        "was": {change.name: change.before for change in own.changes},
        "against": own.arm.against,
    }


def _started(server: Server, arm: str) -> list[str]:
    """What starting a server for an arm does: its programs, options and settings may run anything."""
    programs = [f"runs the server programs in {server.bindir} ({arm})"] if server.bindir else []
    programs += [f"makes a server's folder in {server.workdir} ({arm})"] if server.workdir else []
    options = [f"runs initdb with {shlex.join(server.initdb)} ({arm})"] if server.initdb else []
    return [*programs, *options, *(f"starts the server with {k} = {v} ({arm})" for k, v in server.settings.items())]


def _server(own: ReadyArm) -> dict[str, str]:
    """What is special about a server that was started for an arm."""
    server = own.arm.server
    if server is None:
        return {}
    version = own.target.facts().get("server_version")
    about = {"server": f"PostgreSQL {version}" if version else "", "initdb": " ".join(server.initdb)}
    return {name: value for name, value in about.items() if value} | server.settings


def _with_own_secrets(plan: Plan) -> Plan:
    """A plan from a manifest: passwords were not kept, so libpq's own sources must give them."""

    def bare(dsn: str | None) -> str | None:
        return None if dsn is None else dsn.replace(":***@", "@").replace("password=***", "")

    return replace(plan, dsn=bare(plan.dsn), arms=[replace(arm, dsn=bare(arm.dsn)) for arm in plan.arms])
