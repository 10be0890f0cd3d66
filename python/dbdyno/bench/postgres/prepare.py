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
from dbdyno.bench.engine import prepare as shared
from dbdyno.bench.engine.volumes import volumes_of
from dbdyno.study.plan.plan import Arm, Plan, Server

if TYPE_CHECKING:
    from dbdyno.base.core_types import LoadArm, LoadSpec
    from dbdyno.bench.guardian import Guardian
    from dbdyno.bench.postgres.server import Postgres
    from dbdyno.bench.postgres.settings import SettingChange


EMBEDDED_SESSIONS = 180
"""Number of sessions that an embedded engine can serve with its default settings."""


@dataclass(frozen=True)
class ReadyArm(shared.EngineArm):
    """An arm on its server, with the way in which each of its settings takes effect."""

    target: Postgres
    changes: list[SettingChange]


@dataclass(frozen=True)
class PreparedPlan(shared.PreparedEnginePlan):
    """A plan that is ready to run on its servers."""

    arms: Sequence[ReadyArm] = field(default_factory=list)

    def load_spec(self) -> LoadSpec:
        arms = [_arm_spec(self.plan, ready) for ready in self.arms]
        return {"seed": self.seed, "protocol": self.plan.workload.protocol, "arms": arms}


def open_targets(plan: Plan, guardian: Guardian | None = None) -> contextlib.AbstractContextManager[list[Postgres]]:
    """Open the servers of the arms; an arm without a DSN uses an embedded one."""
    return shared.open_each(plan, lambda arm, _: _target_of(plan, arm, guardian))


def _target_of(plan: Plan, arm: Arm, guardian: Guardian | None) -> contextlib.AbstractContextManager[Postgres]:
    from dbdyno.bench.postgres.binaries import binaries_in
    from dbdyno.bench.postgres.server import open_target

    own = arm.server
    # Not every driver supports Unix sockets, and all arms must use the same way.
    tcp = any(arm.client is not None for arm in plan.arms)
    volumes = volumes_of(plan.device_of(arm))
    if own is None and not volumes:
        dsn = arm.dsn or plan.dsn
        return open_target(dsn, settings=None if dsn else _embedded_settings(plan), guardian=guardian, tcp=tcp)
    own = own or Server()
    binaries = binaries_in(Path(own.bindir), f"arm {arm.name!r}") if own.bindir else None
    settings = {**_embedded_settings(plan), **own.settings}
    workdir = Path(own.workdir) if own.workdir else None
    return open_target(
        None,
        settings=settings,
        guardian=guardian,
        workdir=workdir,
        binaries=binaries,
        initdb=own.initdb,
        tcp=tcp,
        volumes=volumes,
    )


def _embedded_settings(plan: Plan) -> dict[str, str]:
    """Return the settings of an embedded engine: the plan's, statement counters if observed, enough connections.

    Raises:
        TargetError: The server's binaries lack the extension for statement counters.
    """
    from dbdyno.bench.postgres.statements import preload_setting

    sessions = sum(plan.sessions_of(arm) for arm in plan.arms if arm.server or not (arm.dsn or plan.dsn))
    room = {"max_connections": str(sessions + 20)} if sessions > EMBEDDED_SESSIONS else {}
    return {**room, **(preload_setting() if plan.watch.statements else {}), **plan.embedded_settings}


def prepare(plan: Plan, targets: list[Postgres], seed: int | None = None) -> PreparedPlan:
    """Determine how the arms' settings take effect on their servers, and prepare the run; see `EngineFunctions`."""
    from dbdyno.bench.clients.arms import refuse_unfit_arm
    from dbdyno.bench.postgres import capture_check
    from dbdyno.study.plan.typed_workloads import compile_workload

    plan = compile_workload(plan)
    # Turns to measure the cost of observation would each need a restart; probes cannot be switched between slices.
    if any(arm.cold for arm in plan.arms) or plan.watch.waits == "exact":
        plan = replace(plan, watch=replace(plan.watch, overhead_blocks=0))
    shared.check_scripts(plan)
    for arm in plan.arms:
        refuse_unfit_arm(plan, arm)
    arms = [_ready(arm, target, plan) for arm, target in zip(plan.arms, targets, strict=True)]
    arms, notes = _past_poolers(arms)
    notes += capture_check.replay_notes(plan, targets)
    switch = shared.choose_switch(plan, arms)
    for ready in arms:
        check_workload(plan, ready)
    return shared.lay_out(PreparedPlan, plan, arms, switch, seed, notes, _free)


def _past_poolers(arms: list[ReadyArm]) -> tuple[list[ReadyArm], tuple[str, ...]]:
    """Return the arms with one protocol that works behind all their poolers, and a note if the protocol changed."""
    from dbdyno.bench.postgres.pooler import REASON, keeps_prepared_statements

    behind = {id(ready.target): ready.target for ready in arms if ready.target.pooled and ready.protocol == "prepared"}
    if all(keeps_prepared_statements(target) for target in behind.values()):
        return arms, ()
    return [replace(ready, protocol="extended") if ready.protocol == "prepared" else ready for ready in arms], (REASON,)


def check_workload(plan: Plan, ready: ReadyArm) -> None:
    """Check that the arm's server supports what the scripts need.

    Raises:
        TargetError: The server does not support it, or its statement counters cannot be read.
    """
    kinds = ["read"]
    if any("\\redo" in script.text for script in plan.scripts_of(ready.arm)):
        kinds.append("redo")
    if plan.workload.builtin:
        kinds.append("schema")
    where = f"arm {ready.arm.name!r} on {ready.target.safe_dsn}"
    for reason in filter(None, map(ready.target.refusal, kinds)):
        raise TargetError(reason, where=where)
    if plan.watch.statements:
        from dbdyno.bench.postgres.statements import make_readable

        make_readable(ready.target, where)


def _free(target: Postgres) -> int | None:
    """Return how many more sessions the server accepts, or None if unknown."""
    with contextlib.closing(target.connect()) as conn:
        row = conn.execute(
            "select current_setting('max_connections')::int"
            " - current_setting('superuser_reserved_connections')::int"
            " - (select count(*) from pg_stat_activity where backend_type = 'client backend')"
        ).fetchone()
    return int(row[0]) if row else None


def _ready(arm: Arm, target: Postgres, plan: Plan) -> ReadyArm:
    from dbdyno.bench.engine import cold_start
    from dbdyno.bench.postgres.permission import ALLOW, refusal
    from dbdyno.bench.postgres.settings import classify

    with contextlib.closing(target.connect()) as conn:
        try:
            changes = classify(conn, arm.settings)
            refused = refusal(target, conn, changes, allow_alter_system=plan.alter_system)
        except TargetError as error:
            raise TargetError(
                error.message,
                where=f"arm {arm.name!r}, {error.where or target.safe_dsn}",
                next_step=error.next_step,
            ) from error
    if arm.cold and (reason := cold_start.refusal(target)):
        raise TargetError(
            reason, where=f"arm {arm.name!r} on {target.safe_dsn}", next_step="leave the target of the arm out"
        )
    if target.pooled and any(change.how in ("session", "reload") for change in changes):
        raise TargetError(
            "there is a connection pooler in between: session settings would reach other sessions, and the lock "
            "on server settings could belong to any session",
            where=f"arm {arm.name!r} on {target.safe_dsn}",
            next_step="connect to the server directly, not through the pooler",
        )
    if refused is not None:
        step = refused.next_step
        if step and step.startswith(ALLOW):
            step = f"set alter_system = true under [target]{step.removeprefix(ALLOW)}"
        raise TargetError(refused.message, where=f"arm {arm.name!r}", next_step=step)
    return ReadyArm(arm, target, changes, arm.protocol or plan.workload.protocol)


def _arm_spec(plan: Plan, ready: ReadyArm) -> LoadArm:
    from dbdyno.bench.postgres.settings import connection_options, session_sql
    from dbdyno.bench.postgres.watch import application_names

    arm = ready.arm
    connection = dict(ready.target.conninfo())
    connection["application_name"] = application_names([a.name for a in plan.arms])[arm.name]
    options = [connection.get("options"), connection_options(ready.changes)]
    connection["options"] = " ".join(option for option in options if option) or None
    own = session_sql(ready.changes)
    return shared.load_arm(plan, arm, connection, own, ready.protocol, pooled=ready.target.pooled)
