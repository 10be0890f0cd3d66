"""Temporary changes of the cells' IORM plans, which are always restored.

A plan is read before each change: it must be the one found at the start or one that this run has set. A plan that
somebody else changed in between is not touched, but reported. After a change the plan is read again; if it differs from
the requested one, that is a failure.

The guardian holds a `PlanUndo`: this process executes it before it ends, or the guardian does if this process was
killed. An ALTER whose connection was cut (killed, timed out) may still take effect after the plan was restored, so the
plan is checked again after `settle_s`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from dbdyno.base.errors import CellsError
from dbdyno.base.json_types import JsonObject
from dbdyno.cells.commands import command_of, failure
from dbdyno.cells.hosts import Host
from dbdyno.cells.iorm_plan import LIST_COMMAND, Directive, IormPlan, alter_command, is_same_plan, plan_of
from dbdyno.cells.ssh import Access, Answer, Fleet

Directives = tuple[Directive, ...]
SETTLE_S = 10.0
"""Time for which a command may still run on a cell after its connection was cut [s]; CellCLI starts slowly."""


async def read_plans(fleet: Fleet) -> dict[Host, IormPlan]:
    """Return every cell's plan.

    Raises:
        CellsError: A cell does not show its plan; the error names the first such cell.
    """
    answers = await fleet.run(LIST_COMMAND)
    _all_well(answers, "its IORM plan cannot be read")
    return {answer.host: plan_of(answer.output, answer.host.name) for answer in answers}


async def set_plans(
    fleet: Fleet, plans: Mapping[Host, Directives], ours: Mapping[Host, tuple[Directives, ...]]
) -> None:
    """Set the plans on all cells at once, and read them back.

    Args:
        fleet: The open fleet.
        plans: The new directives of each cell.
        ours: The directives that each cell may have now; any others are somebody else's.

    Raises:
        CellsError: A cell has another plan or refuses the new one; some cells may already have the new plan.
    """
    for host, plan in (await read_plans(fleet)).items():
        if not any(is_same_plan(plan.directives, own) for own in ours[host]):
            raise CellsError(
                f"another user has changed its IORM plan since the run began: {alter_command(plan.directives)}",
                where=host.name,
                next_step="agree on a time with that user, then run again; that plan is left unchanged",
            )
    texts = {host: command_of(alter_command(plans[host])).shell_command for host in fleet.hosts}
    _all_well(await fleet.run(texts), "its IORM plan cannot be changed")
    for host, plan in (await read_plans(fleet)).items():
        if not is_same_plan(plan.directives, plans[host]):
            raise CellsError(
                f"accepted ALTER IORMPLAN, but shows another plan: {alter_command(plan.directives)}",
                where=host.name,
                next_step=f"compare it with the command that was sent: {alter_command(plans[host])}",
            )


def _all_well(answers: list[Answer], words: str) -> None:
    failed = [(answer, problem) for answer in answers if (problem := failure(answer))]
    if failed:
        answer, problem = failed[0]
        more = f"; {len(failed) - 1} more cell(s) also failed" if len(failed) > 1 else ""
        raise CellsError(f"{words}: {problem}{more}", where=answer.host.name, next_step=answer.next_step)


class CurrentPlan(NamedTuple):
    """Current plan of a cell.

    `state` is 'found' (as it was found), 'ours' (set by an arm), 'other' (somebody else's) or 'unread'; `words` is the
    plan, or why it is unknown.
    """

    state: str
    words: str


class _State(NamedTuple):
    """Problem of a cell's plan, and whether to try again."""

    problem: str
    again: bool


@dataclass(frozen=True, slots=True)
class PlanUndo:
    """Plans to restore on cells, as plain values without secrets, which are also in the run's manifest.

    Each of `cells` has address, port, user and name of a host, the directives `found`, and `ours`: the directives that
    this run may have set. `reach` has the values of an `Access`.
    """

    label: str
    cells: tuple[JsonObject, ...]
    reach: dict[str, object]
    patience_s: float = 60.0
    settle_s: float = 0.0

    @property
    def access(self) -> Access:
        """Return the `Access` with which the cells are reached."""
        return _access(self.reach)

    @property
    def directives_before(self) -> dict[Host, Directives]:
        """Return the directives that each cell had."""
        return {_host(cell): _directives(cell["found"]) for cell in self.cells}

    def only(self, hosts: Collection[Host]) -> PlanUndo:
        """Return the undo for only some of the cells."""
        return replace(self, cells=tuple(cell for cell in self.cells if _host(cell) in hosts))

    def with_access(self, access: Access, user: str | None) -> PlanUndo:
        """Return the undo with other connection options, and with `user` as the login user if one is specified."""
        cells = tuple({**cell, "user": user or cell["user"]} for cell in self.cells)
        return replace(self, cells=cells, reach=_reach(access))

    def current_plans(self) -> dict[Host, CurrentPlan]:
        """Return the current plan of each cell, without changing anything."""

        async def look() -> dict[Host, CurrentPlan]:
            async with Fleet(list(cells), self.access) as fleet:
                return await _looks(fleet, cells)

        cells = {_host(cell): cell for cell in self.cells}
        return asyncio.run(look())

    def state_of(self, host: Host, now: Directives) -> str | None:
        """Return the state (see `CurrentPlan`) of a host with these directives; None if it is not one of the cells."""
        for cell in self.cells:
            if (cell["address"], cell["port"]) == (host.address, host.port):
                return _state(cell, now)
        return None

    def execute(self) -> list[str]:
        """Restore the plans, and return the problems as sentences; empty if all is well."""
        try:
            problems = self.restore_plans()
        except CellsError as error:
            return [f"{self.label}: {error}"]
        return [f"{self.label}: {host.name}: {problem}" for host, problem in problems.items()]

    def restore_plans(self) -> dict[Host, str]:
        """Restore the plans, and return the problems by cell.

        Raises:
            CellsError: The access to the cells is not valid.
        """
        return asyncio.run(self._put_back())

    async def _put_back(self) -> dict[Host, str]:
        states = await self._until_well()
        if self.settle_s:
            await asyncio.sleep(self.settle_s)
            states = await self._until_well()
        return {host: state.problem for host, state in states.items()}

    async def _until_well(self) -> dict[Host, _State]:
        """Retry until every plan is restored or `patience_s` is over, and return the remaining problems by cell."""
        found = {_host(cell): cell for cell in self.cells}
        deadline = time.monotonic() + self.patience_s
        states: dict[Host, _State] = {}
        left = dict(found)
        while left:
            tried = await self._try_once(left)
            states = {h: state for h, state in states.items() if h not in left} | tried
            left = {host: found[host] for host, state in tried.items() if state.again}
            if left and time.monotonic() > deadline:
                break
            await asyncio.sleep(0.5 if left else 0)
        return states

    async def _try_once(self, cells: Mapping[Host, dict[str, object]]) -> dict[Host, _State]:
        """Try to restore each plan once; return the cells whose plan is unread, somebody else's or not yet checked."""
        states: dict[Host, _State] = {}
        back: dict[Host, str] = {}
        async with Fleet(list(cells), self.access) as fleet:
            for host, look in (await _looks(fleet, cells)).items():
                if look.state == "unread":
                    states[host] = _State(look.words, True)
                elif look.state == "ours":
                    back[host] = alter_command(_directives(cells[host]["found"]))
                elif look.state == "other":
                    words = f"somebody else changed its plan to {look.words}; dbdyno does not change it"
                    states[host] = _State(words, False)
        return states | await self._alter(back)

    async def _alter(self, back: Mapping[Host, str]) -> dict[Host, _State]:
        async with Fleet(list(back), self.access) as fleet:
            answers = await fleet.run({h: command_of(text).shell_command for h, text in back.items()})
        words = "was restored but does not show the restored plan"
        return {a.host: _State(f"{failure(a) or words}; manually: {back[a.host]}", True) for a in answers}


async def _looks(fleet: Fleet, cells: Mapping[Host, dict[str, object]]) -> dict[Host, CurrentPlan]:
    looks: dict[Host, CurrentPlan] = {}
    for answer in await fleet.run(LIST_COMMAND):
        try:
            _all_well([answer], "its IORM plan cannot be read")
            now = plan_of(answer.output, answer.host.name).directives
        except CellsError as error:
            looks[answer.host] = CurrentPlan("unread", error.message)
        else:
            looks[answer.host] = CurrentPlan(_state(cells[answer.host], now), alter_command(now))
    return looks


def _state(cell: Mapping[str, Any], now: Directives) -> str:
    if is_same_plan(now, _directives(cell["found"])):
        return "found"
    return "ours" if any(is_same_plan(now, _directives(own)) for own in cell["ours"]) else "other"


def plan_undo(
    found: Mapping[Host, IormPlan],
    ours: Mapping[Host, tuple[Directives, ...]],
    access: Access,
) -> PlanUndo:
    """Return the undo that restores the found plans, whichever of `ours` is in effect."""
    cells = tuple(
        {
            "address": host.address,
            "port": host.port,
            "user": host.user,
            "name": host.name,
            "found": plan.directives,
            "ours": ours[host],
        }
        for host, plan in found.items()
    )
    return PlanUndo("IORM plans", cells, _reach(access), settle_s=SETTLE_S)


def _host(cell: Mapping[str, Any]) -> Host:
    return Host(cell["name"], cell["address"], cell["port"], cell["user"])


def _reach(access: Access) -> dict[str, object]:
    """Return an `Access` as plain values."""
    config = access.config
    return {
        "keys": [str(path.absolute()) for path in access.keys],
        "known_hosts": str(access.known_hosts.absolute()) if access.known_hosts else None,
        "jump": access.jump,
        "timeout_s": access.timeout_s,
        "parallel": access.parallel,
        "config": str(config.absolute()) if isinstance(config, Path) else config,
    }


def _access(reach: Mapping[str, Any]) -> Access:
    known, config = reach["known_hosts"], reach["config"]
    return Access(
        keys=tuple(Path(path) for path in reach["keys"]),
        known_hosts=Path(known) if known else None,
        jump=reach["jump"],
        timeout_s=reach["timeout_s"],
        parallel=reach["parallel"],
        config=Path(config) if isinstance(config, str) else config,
    )


def _directives(wire: Any) -> Directives:
    """Return directives as tuples, even if they are lists because they come from JSON."""
    return tuple(tuple((str(key), str(value)) for key, value in one) for one in wire)
