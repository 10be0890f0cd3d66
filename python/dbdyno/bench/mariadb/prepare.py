"""Preparation of a run from a plan and live servers; it reads the servers and changes nothing.

It determines how each arm takes effect, how arms are switched, the order of blocks, and the load's specification.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from dbdyno.base.errors import TargetError
from dbdyno.bench.clients.arms import refuse_unfit_arm
from dbdyno.bench.engine import cold_start
from dbdyno.bench.engine import prepare as shared
from dbdyno.bench.engine.volumes import volumes_of
from dbdyno.bench.mariadb.global_settings import check_may_alter
from dbdyno.bench.mariadb.session import rows
from dbdyno.bench.mariadb.settings import SettingChange, classify, session_sql
from dbdyno.bench.mariadb.watch import NO_WAITS, program_names
from dbdyno.study.plan.plan import Server

if TYPE_CHECKING:
    from dbdyno.base.core_types import LoadSpec
    from dbdyno.bench.guardian import Guardian
    from dbdyno.bench.mariadb.server import MariaDB
    from dbdyno.study.plan.plan import Arm, Plan

EMBEDDED = "mariadb"
"""The target that names an embedded server."""
EMBEDDED_SESSIONS = 280
"""Number of sessions that an embedded server can serve with its default settings."""


@dataclass(frozen=True)
class ReadyArm(shared.EngineArm):
    """An arm on its server, with the way in which each of its settings takes effect."""

    target: MariaDB
    changes: list[SettingChange]

    def changes_by_method(self, how: str) -> list[SettingChange]:
        """Return the changes that take effect by the method `how`."""
        return [change for change in self.changes if change.how == how]


@dataclass(frozen=True)
class PreparedPlan(shared.PreparedEnginePlan):
    """A plan that is ready to run on its servers."""

    arms: Sequence[ReadyArm] = field(default_factory=list)

    def load_spec(self) -> LoadSpec:
        names = program_names([ready.arm.name for ready in self.arms])
        arms = [
            shared.load_arm(
                self.plan,
                ready.arm,
                ready.target.load_connection(names[ready.arm.name]),
                session_sql(ready.changes),
                ready.protocol,
            )
            for ready in self.arms
        ]
        return {"seed": self.seed, "protocol": self.plan.workload.protocol, "arms": arms}


def open_targets(plan: Plan, guardian: Guardian) -> contextlib.AbstractContextManager[list[MariaDB]]:
    """Open the servers of the arms; an arm whose target is `EMBEDDED` uses an embedded one."""
    return shared.open_each(plan, lambda arm, number: _target_of(plan, arm, guardian, number))


def _target_of(plan: Plan, arm: Arm, guardian: Guardian, number: int) -> contextlib.AbstractContextManager[MariaDB]:
    from dbdyno.bench.mariadb.binaries import programs_in
    from dbdyno.bench.mariadb.embedded import EmbeddedMariaDB
    from dbdyno.bench.mariadb.server import open_target

    own, dsn = arm.server or Server(), arm.dsn or plan.dsn
    if arm.server is None and dsn != EMBEDDED:
        return open_target(dsn)
    embedded = EmbeddedMariaDB(
        {**_own_settings(plan), **own.settings},
        guardian=guardian,
        tcp=any(other.client is not None for other in plan.arms),
        workdir=Path(own.workdir) if own.workdir else None,
        install=own.initdb,
        programs=programs_in(Path(own.bindir), f"arm {arm.name!r}") if own.bindir else None,
        number=number,
        volumes=volumes_of(plan.device_of(arm)),
    )
    return open_target(None, embedded)


def _own_settings(plan: Plan) -> dict[str, str]:
    """Return the settings of an embedded server: the plan's, and a higher `max_connections` if the sessions need it."""
    sessions = sum(plan.sessions_of(arm) for arm in plan.arms if arm.server or (arm.dsn or plan.dsn) == EMBEDDED)
    room = {"max_connections": str(sessions + 20)} if sessions > EMBEDDED_SESSIONS else {}
    return {**room, **plan.embedded_settings}


def prepare(plan: Plan, targets: list[MariaDB], seed: int | None = None) -> PreparedPlan:
    """Determine how the arms' settings take effect on their servers, and prepare the run; see `EngineFunctions`."""
    if any(arm.cold for arm in plan.arms):  # turns to measure the cost of observation would each need a restart
        plan = replace(plan, watch=replace(plan.watch, overhead_blocks=0))
    shared.check_scripts(plan)
    arms = [_ready(arm, target, plan) for arm, target in zip(plan.arms, targets, strict=True)]
    return shared.lay_out(PreparedPlan, plan, arms, shared.choose_switch(plan, arms), seed, _notes(plan, arms), _free)


def _notes(plan: Plan, arms: list[ReadyArm]) -> tuple[str, ...]:
    if plan.watch.activity_hz <= 0:
        return ()
    for target in {arm.target.safe_dsn: arm.target for arm in arms}.values():
        with contextlib.closing(target.connect()) as connection:
            if not target.has_performance_schema(connection):
                return (NO_WAITS,)
    return ()


def _free(target: MariaDB) -> int:
    """Return how many more sessions the server accepts."""
    with contextlib.closing(target.connect()) as connection:
        most, used = rows(
            connection,
            "select @@max_connections, (select variable_value from information_schema.global_status"
            " where variable_name = 'THREADS_CONNECTED')",
        )[0]
    return int(most) - int(used)


def _ready(arm: Arm, target: MariaDB, plan: Plan) -> ReadyArm:
    if arm.cold and (reason := cold_start.refusal(target)):
        raise TargetError(
            reason,
            where=f"arm {arm.name!r} on {target.safe_dsn}",
            next_step="use the embedded server: --target mariadb",
        )
    refuse_unfit_arm(plan, arm, EMBEDDED)
    try:
        changes = classify(target, arm.settings)
        check_may_alter(target, changes, allowed=plan.alter_system)
    except TargetError as error:
        place = f"arm {arm.name!r}, {error.where or target.safe_dsn}"
        raise TargetError(error.message, where=place, next_step=error.next_step) from error
    return ReadyArm(arm, target, changes, arm.protocol or plan.workload.protocol)


def in_mariadb_dialect(plan: Plan) -> Plan:
    """Return the plan with the built-in workload in MariaDB's SQL dialect."""
    from dbdyno.study.plan.workloads import workload_for_engine

    return replace(plan, workload=workload_for_engine(plan.workload, "mariadb"))
