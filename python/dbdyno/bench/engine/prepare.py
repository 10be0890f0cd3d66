"""Preparation of a plan that all engines share: how arms are switched, room for sessions, load generator input."""

from __future__ import annotations

import contextlib
import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from dbdyno.base.errors import PlanError, TargetError
from dbdyno.bench.engine.volumes import volumes_of
from dbdyno.bench.protocol import RunLayout
from dbdyno.study.plan.network import line_parameters
from dbdyno.study.plan.schedule import blocks, timing

if TYPE_CHECKING:
    from dbdyno.base.core_types import LoadArm, LoadSpec
    from dbdyno.bench.clients.load import ClientArm
    from dbdyno.bench.engine.remaining_sessions import ServerSessions
    from dbdyno.bench.engine.target import EngineTarget
    from dbdyno.bench.guardian import Guardian
    from dbdyno.study.plan.plan import Arm, Plan
    from dbdyno.study.plan.schedule import Timing

Target = TypeVar("Target", bound="EngineTarget")
Prepared = TypeVar("Prepared", bound="PreparedEnginePlan")
WHOLE_SERVER = {
    "restart": ("restart", "needs a restart"),
    "reload": ("reload", "needs a reload"),
    "global": ("turns", "applies to the whole server"),
}
"""Ways in which a server-wide setting takes effect, slowest first, each with (how arms are switched, reason)."""


class Change(Protocol):
    """A setting of an arm: its value, its previous value, and how it takes effect."""

    @property
    def name(self) -> str: ...
    @property
    def value(self) -> str: ...
    @property
    def before(self) -> str: ...
    @property
    def how(self) -> str: ...


@dataclass(frozen=True)
class EngineArm:
    """An arm with its server and the way in which each of its settings takes effect."""

    arm: Arm
    target: Any
    changes: Sequence[Change]
    protocol: str = "prepared"

    def server_changes(self) -> Sequence[Change]:
        """Return the changes that affect the whole server."""
        return [change for change in self.changes if change.how in WHOLE_SERVER]


@dataclass(frozen=True)
class PreparedEnginePlan(RunLayout, ABC):
    """A plan that is ready to run, with its arms on their servers."""

    arms: Sequence[EngineArm] = field(default_factory=list)

    @abstractmethod
    def load_spec(self) -> LoadSpec:
        """Return the specification for the load generator; it contains passwords, so it must be kept in memory only."""


class EngineFunctions(NamedTuple):
    """What each engine does in its own way.

    Attributes:
        open_targets: Opens the servers of the arms.
        prepare: Determines how the arms' settings take effect on their servers, and prepares the run; it changes
            nothing. Its arguments are the plan, the server of each arm, and the seed of the block order and the load
            (None takes the plan's, or a random one). It raises `PlanError` if a script does not parse or an arm cannot
            be run, and `TargetError` if a setting cannot be put in effect or a server has no room for the sessions.
        client_arm: Returns an arm with an external client, prepared for it. Its arguments are the arm on its server,
            the load's specification of the arm, and the seed. It raises `PlanError` if the client cannot run the arm.
        turn_sql: Runs an arm's SQL before its turn, and the SQL after it when the context ends for any reason. It
            raises `TargetError` for a statement that the server refuses, `Interrupted` for a signal while one runs.
        server_sessions: Returns the sessions at a server.
    """

    open_targets: Callable[[Plan, Guardian], contextlib.AbstractContextManager[list[Any]]]
    prepare: Callable[[Plan, list[Any], int | None], Any]
    client_arm: Callable[[Any, LoadArm, int], ClientArm]
    turn_sql: Callable[..., contextlib.AbstractContextManager[None]]
    server_sessions: Callable[[Any], ServerSessions]


@contextlib.contextmanager
def open_each(plan: Plan, opened_by: Callable[[Arm, int], AbstractContextManager[Target]]) -> Iterator[list[Target]]:
    """Open each server once, and yield the arms' servers in the order of the arms.

    `opened_by` gets an arm and the number of its server, which starts at 1.

    Raises:
        TargetError: A server does not answer or start, or the user's configuration names it as live.
    """
    opened: dict[str, Target] = {}
    with contextlib.ExitStack() as stack:
        for arm in plan.arms:
            if (place := _place(plan, arm)) not in opened:
                opened[place] = stack.enter_context(opened_by(arm, len(opened) + 1))
                opened[place].refuse_live()
        yield [opened[_place(plan, arm)] for arm in plan.arms]


def _place(plan: Plan, arm: Arm) -> str:
    """Return a key that is equal for arms that share a server."""
    if arm.server is None and not plan.device_of(arm):
        return f"dsn {arm.dsn or plan.dsn}"
    return f"{arm.server!r} {volumes_of(plan.device_of(arm))!r}"


def lay_out(
    ready: Callable[..., Prepared],
    plan: Plan,
    arms: Sequence[EngineArm],
    switch: tuple[str, str],
    seed: int | None,
    notes: tuple[str, ...],
    free: Callable[[Any], int | None],
) -> Prepared:
    """Return the plan with timing and blocks; raise an error if the load could not run or a server would refuse it."""
    from dbdyno import _core

    how = timing(plan.schedule, switch[0])
    seed = choose_seed(plan, seed)
    check_room(plan, arms, how, free)
    prepared = ready(plan, seed, how, blocks(plan, how, seed), switch[1], notes, arms)
    _core.Load(prepared.load_spec()).try_connect()
    return prepared


def choose_seed(plan: Plan, seed: int | None) -> int:
    """Return `seed` if given, otherwise the plan's seed, otherwise a random one."""
    if seed is not None:
        return seed
    return plan.schedule.seed if plan.schedule.seed is not None else secrets.randbits(31)


def check_scripts(plan: Plan) -> None:
    """Compile every script of the plan.

    Raises:
        PlanError: A script does not compile (with line and column), or contains no SQL command.
    """
    from dbdyno._core import check_script

    for arm in plan.arms:
        for script in plan.scripts_of(arm):
            if check_script(script.name, script.text) == 0:
                raise PlanError(
                    "contains no SQL command",
                    where=f"script {script.name}",
                    next_step="end each SQL command with ;",
                )


def choose_switch(plan: Plan, arms: Sequence[EngineArm]) -> tuple[str, str]:
    """Return the way of switching arms ('slices', 'turns', 'reload' or 'restart') and the reason in words.

    Raises:
        PlanError: The plan asks for slices, but its arms cannot alternate in slices.
    """
    switch, reason = _cheapest_switch(plan, arms)
    if plan.schedule.switch == "slices" and switch != "slices":
        raise PlanError(
            f"the arms cannot alternate in slices: {reason}",
            where="schedule.switch",
            next_step='leave switch out, or write switch = "turns"',
        )
    return switch, reason


def _cheapest_switch(plan: Plan, arms: Sequence[EngineArm]) -> tuple[str, str]:
    changes = [change for ready in arms for change in ready.changes]
    for how, (switch, why) in WHOLE_SERVER.items():
        if names := sorted({change.name for change in changes if change.how == how}):
            return switch, f"{', '.join(names)} {why}"
    if any(ready.arm.cold for ready in arms):
        return "turns", "an arm begins its turns with a cold cache"
    if any(ready.arm.before_sql or ready.arm.after_sql for ready in arms):
        return "turns", "an arm has SQL to run before or after its turns"
    if plan.schedule.turn_transactions is not None:
        return "turns", "turns are counted in transactions"
    if plan.schedule.switch == "turns" or len(arms) == 1:
        return "turns", "there is one arm" if len(arms) == 1 else "the plan says so"
    return "slices", "the arms differ only in scripts, session settings, sessions, rate, network or DSN"


def check_room(plan: Plan, arms: Sequence[EngineArm], timing: Timing, free: Callable[[Any], int | None]) -> None:
    """Check that each server has room for the sessions that are open at the same time.

    Args:
        plan: The plan.
        arms: Its arms on their servers.
        timing: The timing, which decides whether the sessions of all arms are open at once.
        free: Returns the number of free sessions of a server, or None if unknown.

    Raises:
        TargetError: A server has too few free sessions.
    """
    need: dict[str, int] = {}
    for ready in arms:
        name, own = ready.target.safe_dsn, plan.sessions_of(ready.arm)
        need[name] = need.get(name, 0) + own if timing.in_slices else max(need.get(name, 0), own)
    for name, target in {ready.target.safe_dsn: ready.target for ready in arms}.items():
        room = free(target)
        if room is not None and need[name] + 2 > room:
            raise TargetError(
                f"{need[name]} sessions are needed, but only {max(room - 2, 0)} are free",
                where=name,
                next_step='use fewer sessions or switch = "turns", or raise max_connections',
            )


def load_arm(
    plan: Plan,
    arm: Arm,
    connection: Mapping[str, Any],
    session_sql: Sequence[str],
    protocol: str,
    *,
    pooled: bool = False,
) -> LoadArm:
    """Return an arm in the format of the load generator; it contains passwords, so it must be kept in memory only."""
    work, timeout = plan.workload, plan.statement_timeout_ns
    return {
        "name": arm.name,
        "connection": dict(connection),
        "session_sql": list(session_sql),
        "scripts": [script.spec() for script in plan.scripts_of(arm)],
        "sessions": plan.sessions_of(arm),
        "rate_per_s": plan.rate_of(arm),
        "latency_limit_ns": work.latency_limit_ns,
        "max_tries": work.max_tries,
        "variables": {"scale": str(work.scale), **work.variables, **arm.variables},
        "statement_timeout_ms": max(1, timeout // 10**6) if timeout else None,
        "protocol": protocol,
        "pooled": pooled,
        "expected_errors": work.expected_errors,
        "network": line_parameters(plan.network_of(arm)),
    }
