"""From a plan and live servers to everything a run needs: how each arm takes effect, the way of switching, the order of
the blocks, the specification of the load. Reads the servers; changes nothing.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from dbdyno.bench.mariadb.global_settings import may_alter
from dbdyno.bench.mariadb.observer import NO_WAITS
from dbdyno.bench.mariadb.session import rows
from dbdyno.bench.mariadb.settings import SettingChange, classify, session_sql
from dbdyno.bench.mariadb.watch import program_names
from dbdyno.bench.postgres.prepare import check_scripts
from dbdyno.bench.protocol import Ready
from dbdyno.errors import PlanError, TargetError
from dbdyno.study.plan.network import line
from dbdyno.study.plan.schedule import Timing, blocks, timing

if TYPE_CHECKING:
    from dbdyno.bench.guardian import Guardian
    from dbdyno.bench.mariadb.server import MariaDB
    from dbdyno.core_types import LoadArm, LoadSpec
    from dbdyno.study.plan.plan import Arm, Plan

EMBEDDED = "mariadb"
"""The target that is an embedded server."""
EMBEDDED_SESSIONS = 280
"""Sessions for which an embedded server has room by itself."""


@dataclass(frozen=True)
class ReadyArm:
    """An arm on its server, with how each of its settings takes effect."""

    arm: Arm
    target: MariaDB
    changes: list[SettingChange]

    def of(self, how: str) -> list[SettingChange]:
        """Changes that take effect in this way."""
        return [change for change in self.changes if change.how == how]


@dataclass(frozen=True)
class Prepared(Ready):
    """A plan ready to be run on its servers."""

    arms: list[ReadyArm] = field(default_factory=list)

    def load_spec(self) -> LoadSpec:
        """The specification for the load generator. Holds passwords: keep it in memory."""
        names = program_names([ready.arm.name for ready in self.arms])
        arms = [_arm_spec(self.plan, ready, names[ready.arm.name]) for ready in self.arms]
        return {"seed": self.seed, "protocol": self.plan.workload.protocol, "arms": arms}


@contextlib.contextmanager
def open_targets(plan: Plan, guardian: Guardian) -> Iterator[list[MariaDB]]:
    """The server of each arm, opened once per connection string; an embedded one where the target is none."""
    from dbdyno.bench.mariadb.server import open_target

    names = [arm.dsn or plan.dsn for arm in plan.arms]
    opened: dict[str | None, MariaDB] = {}
    with contextlib.ExitStack() as stack:
        for name in names:
            if name not in opened:
                own = name == EMBEDDED
                target = open_target(None if own else name, settings=_own_settings(plan), guardian=guardian)
                opened[name] = stack.enter_context(target)
        yield [opened[name] for name in names]


def _own_settings(plan: Plan) -> dict[str, str]:
    """What an embedded server is started with beside its own: room for all sessions at once."""
    sessions = sum(plan.sessions_of(arm) for arm in plan.arms if (arm.dsn or plan.dsn) == EMBEDDED)
    room = {"max_connections": str(sessions + 20)} if sessions > EMBEDDED_SESSIONS else {}
    return {**room, **plan.embedded_settings}


def prepare(plan: Plan, targets: list[MariaDB], seed: int | None = None) -> Prepared:
    """Classifies the arms' settings on their servers and lays out the run. Raises `PlanError` or `TargetError` for a
    setting that cannot be put in effect, a script that does not parse, or a server without room for the sessions."""
    from dbdyno import _core

    check_scripts(plan)
    arms = [_ready(arm, target, plan) for arm, target in zip(plan.arms, targets, strict=True)]
    switch, reason = choose_switch(plan, arms)
    how = timing(plan.schedule, switch)
    if seed is None:
        seed = plan.schedule.seed if plan.schedule.seed is not None else secrets.randbits(31)
    check_room(plan, arms, how)
    prepared = Prepared(plan, seed, how, blocks(plan, how, seed), reason, _notes(plan, arms), arms)
    # Refuses what it could not run, and what the server or its certificate would refuse to the load.
    _core.Load(prepared.load_spec()).try_connect()
    return prepared


def _notes(plan: Plan, arms: list[ReadyArm]) -> tuple[str, ...]:
    if plan.watch.activity_hz <= 0:
        return ()
    for target in {arm.target.safe_dsn: arm.target for arm in arms}.values():
        with contextlib.closing(target.connect()) as connection:
            if not target.has_performance_schema(connection):
                return (NO_WAITS,)
    return ()


def choose_switch(plan: Plan, arms: list[ReadyArm]) -> tuple[str, str]:
    """The way of switching ('slices', 'turns' or 'restart') and the reason in words."""
    switch, reason = _cheapest_switch(plan, arms)
    if plan.schedule.switch == "slices" and switch != "slices":
        raise PlanError(
            f"the arms cannot alternate in slices: {reason}",
            where="schedule.switch",
            next_step='leave switch out, or write switch = "turns"',
        )
    return switch, reason


def _cheapest_switch(plan: Plan, arms: list[ReadyArm]) -> tuple[str, str]:
    for how, switch, words in (("restart", "restart", "needs a restart"), ("global", "turns", "is the whole server's")):
        if names := sorted({change.name for ready in arms for change in ready.of(how)}):
            return switch, f"{', '.join(names)} {words}"
    if any(ready.arm.before_sql or ready.arm.after_sql for ready in arms):
        return "turns", "an arm has SQL to run before or after its turns"
    if plan.schedule.turn_transactions is not None:
        return "turns", "turns are counted in transactions"
    if plan.schedule.switch == "turns" or len(arms) == 1:
        return "turns", "there is one arm" if len(arms) == 1 else "the plan says so"
    return "slices", "the arms differ by scripts, session settings, sessions, rate, network or DSN only"


def check_room(plan: Plan, arms: list[ReadyArm], how: Timing) -> None:
    """Whether each server has room for the sessions that are open at once."""
    need: dict[str, int] = {}
    for ready in arms:
        name, own = ready.target.safe_dsn, plan.sessions_of(ready.arm)
        need[name] = need.get(name, 0) + own if how.in_slices else max(need.get(name, 0), own)
    for target in {ready.target.safe_dsn: ready.target for ready in arms}.values():
        with contextlib.closing(target.connect()) as connection:
            most, used = rows(
                connection,
                "select @@max_connections, (select variable_value from information_schema.global_status"
                " where variable_name = 'THREADS_CONNECTED')",
            )[0]
        free = int(most) - int(used) - 2
        if need[target.safe_dsn] > free:
            raise TargetError(
                f"{need[target.safe_dsn]} sessions are wanted, {max(free, 0)} are free",
                where=target.safe_dsn,
                next_step='fewer sessions, switch = "turns", or a higher max_connections',
            )


def _ready(arm: Arm, target: MariaDB, plan: Plan) -> ReadyArm:
    if arm.server is not None:
        raise PlanError(
            "a server of its own is PostgreSQL's so far",
            where=f"arm {arm.name!r}",
            next_step="give the server's connection string as the arm's dsn",
        )
    try:
        changes = classify(target, arm.settings)
        may_alter(target, changes, allowed=plan.alter_system)
    except TargetError as error:
        place = f"arm {arm.name!r}, {error.where or target.safe_dsn}"
        raise TargetError(error.message, where=place, next_step=error.next_step) from error
    return ReadyArm(arm, target, changes)


def _arm_spec(plan: Plan, ready: ReadyArm, name: str) -> LoadArm:
    arm, work, timeout = ready.arm, plan.workload, plan.statement_timeout_ns
    return {
        "name": arm.name,
        "connection": ready.target.load_connection(name),
        "session_sql": session_sql(ready.changes),
        "scripts": [script.spec() for script in plan.scripts_of(arm)],
        "sessions": plan.sessions_of(arm),
        "rate_per_s": plan.rate_of(arm),
        "latency_limit_ns": work.latency_limit_ns,
        "max_tries": work.max_tries,
        "variables": {"scale": str(work.scale), **work.variables, **arm.variables},
        "statement_timeout_ms": max(1, timeout // 10**6) if timeout else None,
        "protocol": arm.protocol or work.protocol,
        "expected_errors": work.expected_errors,
        "network": line(plan.network_of(arm)),
    }


def in_own_words(plan: Plan) -> Plan:
    """The plan with the built-in workload in MariaDB's words."""
    from dbdyno.study.plan.workloads import for_engine

    return replace(plan, workload=for_engine(plan.workload, "mariadb"))
