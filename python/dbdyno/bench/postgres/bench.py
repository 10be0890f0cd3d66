"""The bench for a live PostgreSQL server, either embedded or named by a connection string.

Every change to the server is claimed, recorded and registered with the guardian before it is made. If arms differ only
in what a session can set, they alternate in slices while the sessions of all arms are open; otherwise each turn puts
its arm's settings and SQL in effect and reads the settings back.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from dbdyno.base.json_types import JsonObject
from dbdyno.bench.clients.arms import start_sentences
from dbdyno.bench.engine import arm_server
from dbdyno.bench.engine.cold_start import restart_cold
from dbdyno.bench.engine.prepare import EngineFunctions
from dbdyno.bench.engine.turns import EngineBench, server_side_effects
from dbdyno.bench.kinds import EMBEDDED
from dbdyno.bench.postgres.capture_check import with_capture
from dbdyno.bench.postgres.clients import client_arm
from dbdyno.bench.postgres.objects import turn_sql, workload_objects
from dbdyno.bench.postgres.observer import PostgresObserver
from dbdyno.bench.postgres.prepare import PreparedPlan, ReadyArm, open_targets, prepare
from dbdyno.bench.postgres.remaining_sessions import PostgresSessions
from dbdyno.bench.postgres.replay import ReplayLoad
from dbdyno.bench.postgres.server_settings import (
    claim_servers,
    read_back,
    record_settings,
    refuse_leftover_settings,
    server_errors,
)
from dbdyno.bench.protocol import BenchContext, RunLayout
from dbdyno.study.plan.typed_workloads import IN_SQL

if TYPE_CHECKING:
    from dbdyno.bench.postgres.server import Postgres
    from dbdyno.bench.recorder import Recorder
    from dbdyno.evidence.run import Run
    from dbdyno.study.plan.plan import Plan

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


class PostgresBench(EngineBench):
    """Bench on the PostgreSQL servers of a plan's arms."""

    traits = replace(EngineBench.traits, replays=True)
    engine = EngineFunctions(open_targets, prepare, client_arm, turn_sql, PostgresSessions)
    ready: PreparedPlan
    observer: PostgresObserver

    def __init__(self, plan: Plan, around: BenchContext) -> None:
        if around.cut is not None:
            plan = replace(plan, dsn=around.target) if around.target else _with_own_secrets(plan)
        super().__init__(plan, around)

    def refusal(self, plan: Plan) -> str | None:
        """Return None if the plan's workload can be written in SQL and no arm runs a command, otherwise the reason."""
        kind = plan.workload.kind
        if any(arm.command for arm in plan.arms):
            return "an arm has a command, which runs on this host"
        return None if kind is None or kind in IN_SQL else f"its workload {kind!r} has no SQL version"

    @staticmethod
    def side_effects(plan: Plan, target: str | None) -> list[str]:
        """Return the servers that the plan connects to, and what it starts, sets and sends there, as sentences."""
        lines, sends = server_side_effects(plan, target, EMBEDDED[0])
        return lines + arm_server.side_effects(plan, "initdb") + start_sentences(plan) + sends

    def prepare(self, seed: int | None = None) -> RunLayout:
        """Open the servers and prepare the run, with the statements of a capture if the plan replays one."""
        self.plan = with_capture(self.plan)
        return super().prepare(seed)

    def _claim_servers(self) -> bool:
        altered = claim_servers(self.ready, self.guardian)
        refuse_leftover_settings(self.ready, self.around.folder)
        return altered

    @server_errors()
    def begin(self, run: Run, resumed: int) -> None:
        """Record the settings, create the workload's objects and open the sessions that stay open.

        A resumed run draws different random numbers than before.
        """
        enter = self.held.enter_context
        enter(record_settings(run, self.ready, self.guardian))
        if self.ready.plan.workload.replay is not None:
            self.load = ReplayLoad(self.ready, self.around)
            enter(self.load.databases())
            self._start_observing(run)
            return
        for target in self._targets().values():
            enter(workload_objects(self.ready.plan.workload, target, self.guardian, self.stopping))
        self.load = self._load(resumed)
        self._start_observing(run)

    def _start_observing(self, run: Run) -> None:
        """Create the observer, open the sessions that stay open, and start observing."""
        self.name = str(run.path.resolve())
        self.observer = PostgresObserver(self.ready, self.stopping.is_requested)
        self._connect_lasting()

    @contextlib.contextmanager
    def watch(self, recorder: Recorder) -> Iterator[None]:
        """Observe a block as on every engine, and write the texts of its statements at the end."""
        with super().watch(recorder):
            yield
        with self.server_errors():
            self.observer.write_statements(recorder.folder)

    def _read_back(self, number: int) -> None:
        read_back(self.ready, number)

    def _stays_open(self) -> bool:
        if self.ready.plan.workload.replay is not None:
            return False
        alone = len(self.ready.arms) == 1 and not self.ready.arms[0].arm.cold
        return super()._stays_open() or alone

    def _apply_settings(self, ready: ReadyArm, stack: contextlib.ExitStack) -> None:
        from dbdyno.bench.postgres.altered_settings import apply_server_settings

        with self.observer.disconnected():
            if ready.arm.cold:
                restart_cold(ready.target)
            stack.enter_context(
                apply_server_settings(
                    ready.target,
                    ready.changes,
                    guardian=self.guardian,
                    allow_alter_system=self.ready.plan.alter_system,
                    run=self.name,
                )
            )

    def _facts_of(self, target: Postgres) -> JsonObject:
        """Return the target's facts, with the settings `ASKED_FIRST` included even if they have their defaults."""
        facts = target.facts()
        known = {setting["name"] for setting in facts["settings"]}
        with contextlib.closing(target.connect()) as conn:
            rows = conn.execute(
                "select name, current_setting(name), source from pg_settings where name = any(%s)",
                [[name for name in ASKED_FIRST if name not in known]],
            ).fetchall()
        facts["settings"] += [{"name": n, "value": v, "source": source} for n, v, source in rows]
        return facts

    def _version_words(self, facts: JsonObject) -> str:
        version = facts.get("server_version")
        return f"PostgreSQL {version}" if version else ""

    def server_errors(self) -> contextlib.AbstractContextManager[None]:
        """Return a context that turns the loss of a server or its connection into a `TargetError` with a next step."""
        return server_errors()


BENCH = PostgresBench


def _with_own_secrets(plan: Plan) -> Plan:
    """Return a manifest's plan without masked passwords; libpq then looks up the real ones, which are never stored."""

    def bare(dsn: str | None) -> str | None:
        return None if dsn is None else dsn.replace(":***@", "@").replace("password=***", "")

    return replace(plan, dsn=bare(plan.dsn), arms=[replace(arm, dsn=bare(arm.dsn)) for arm in plan.arms])
