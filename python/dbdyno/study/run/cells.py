"""Carries a plan out on storage cells: their IORM plan is switched, their counters are read.

    survey            every cell's plan and facts; nothing is changed
    manifest <- undo  the plans found, on disk: what `dbdyno cells restore` reads
    guardian <- undo  the same, before the first change
    per turn          ALTER IORMPLAN; wait until every cell has collected after it: begin;
                      wait until every cell has collected again, `turn_ns` later by its own
                      clock: end
    undo              the plans found are put back and read

A cell that collects nothing anew within the patience is told of and waited for no longer: its
column of the block does not count. A cell that cannot be switched ends the run, since its arms
would be mixed.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbdyno.bench.undo import to_wire
from dbdyno.cells.collect import Collection, collect
from dbdyno.cells.iorm_plan import alter
from dbdyno.cells.iorm_switch import SETTLE_S, PlanUndo, plan_undo, put
from dbdyno.cells.ssh import Access, Fleet
from dbdyno.errors import CellsError, Error, PlanError
from dbdyno.evidence.run import Block, Run, SliceRecord, new_run, this_process
from dbdyno.study.plan.cells import CellsPlan
from dbdyno.study.plan.schedule import PlannedBlock, Timing, blocks
from dbdyno.study.run.cells_survey import MARK, Survey, refuse_held, times
from dbdyno.study.run.progress import Silent
from dbdyno.study.run.stopping import Stopping, ending

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from dbdyno.study.run.progress import Progress

_FIRST_WAIT_S, _WAITS_GROW, _MOST_WAIT_S = 0.2, 1.3, 10.0
"""Between two looks at the cells: begun anew for each wait, so that it is overshot by a third."""
_REASON = "ALTER IORMPLAN is in force at once, and cells collect once a minute"


def start_on_cells(
    plan: CellsPlan,
    found: Survey,
    access: Access,
    folder: Path,
    progress: Progress | None = None,
    *,
    seed: int | None = None,
) -> Run:
    """Runs a plan on the cells surveyed, into a new run folder below `folder`.

    Raises `CellsError` for a cell that cannot be switched, `TargetError` where a plan could not be
    put back, `Interrupted` after a signal; the plans found are put back in every case.
    """
    progress = progress or Silent()
    seed = secrets.randbits(31) if seed is None else seed
    refuse_held(plan, found)
    undo = _undo(plan, found, access)
    with Stopping() as stopping:
        stopping.check()
        todo = _blocks(plan, seed)
        run = new_run(folder, plan.common().title, _manifest(plan, found, undo, len(todo), seed))
        progress.note(f"seed {seed}; evidence in {run.path}")
        _carry_out(_Runner(plan, run, found, access, stopping, progress), undo, todo)
    return run


def resume_on_cells(run: Run, plan: CellsPlan, found: Survey, access: Access, progress: Progress | None = None) -> Run:
    """Runs what a run that was cut has not yet run; `plan` is its own, `found` what its cells are
    like now.

    Raises as `start_on_cells`, and `PlanError` where a cell is not as it was found then.
    """
    progress = progress or Silent()
    was = run.manifest["targets"]
    for name, facts in _targets(found).items():
        if facts != was.get(name):
            differs = [key for key in facts if facts[key] != was.get(name, {}).get(key)]
            raise PlanError(
                f"is not as it was found when the run began: {', '.join(differs)}",
                where=name,
                next_step="blocks before and after would not be alike: start a new run",
            )
    undo = _undo(plan, found, access)
    todo = _blocks(plan, int(run.manifest["seed"]))
    with Stopping() as stopping:
        stopping.check()
        run.drop_leftovers()
        whole = {block.index for block in run.blocks()}
        run.save(
            status="running",
            process=this_process(),
            restored=False,
            resumed=[*run.manifest.get("resumed", []), len(whole)],
            iorm={**run.manifest["iorm"], "undo": to_wire(undo)},
        )
        _carry_out(_Runner(plan, run, found, access, stopping, progress), undo, todo, whole)
    return run


def _carry_out(
    runner: _Runner,
    undo: PlanUndo,
    planned: Sequence[PlannedBlock],
    whole: AbstractSet[int] = frozenset(),
) -> None:
    """Runs the blocks that are not whole, and puts the plans back; the run notes both."""
    from dbdyno.bench.guardian import Guardian

    run, progress = runner.run, runner.progress
    progress.begin(run.id, len(planned), len(whole), None)
    with Guardian() as guardian:
        try:
            with ending(run), guardian.undo(undo):
                try:
                    asyncio.run(runner.go([block for block in planned if block.index not in whole]))
                finally:
                    progress.note(f"putting the plans of the cells back, and looking again after {SETTLE_S:g} s")
        finally:
            if not guardian.pending:
                with contextlib.suppress(Error):
                    run.save(restored=True)
            progress.end()


def _blocks(plan: CellsPlan, seed: int) -> list[PlannedBlock]:
    return blocks(plan.common(), Timing("plan", 0, plan.turn_ns, None, 0), seed)


def _undo(plan: CellsPlan, found: Survey, access: Access) -> PlanUndo:
    arms = found.arms(plan)
    ours = {host: tuple(arm[host] for arm in arms) for host in found.found}
    return plan_undo(found.found, ours, access)


class _Runner:
    """Runs blocks on cells into a run folder."""

    def __init__(
        self,
        plan: CellsPlan,
        run: Run,
        found: Survey,
        access: Access,
        stopping: Stopping,
        progress: Progress,
    ) -> None:
        self.plan, self.run, self.arms = plan, run, found.arms(plan)
        self.access, self.stopping, self.progress = access, stopping, progress
        self.hosts = list(found.found)
        self.ours = {host: (found.found[host].directives, *(arm[host] for arm in self.arms)) for host in self.hosts}
        self.stale: dict[str, int | None] = {}

    async def go(self, todo: Sequence[PlannedBlock]) -> None:
        """Runs all blocks, one after the other."""
        async with Fleet(self.hosts, self.access) as fleet:
            for block in todo:
                await self._block(fleet, block)

    async def _block(self, fleet: Fleet, planned: PlannedBlock) -> None:
        """Runs a block; its record is written last."""
        from dbdyno import _core
        from dbdyno.cells.record import columns_of

        began_ns = time.time_ns()
        columns: dict[str, list[Any]] = {}
        marks: list[str] = []
        turns: list[dict[str, Any]] = []
        for turn in planned.turns:
            name = self.plan.names[turn.arm]
            before, after, wrong = await self._turn(fleet, turn.arm, planned.index)
            turns.append({"arm": turn.arm, "wrong": wrong})
            marks += [f"{cell}: {why}" for cell, why in wrong.items()]
            for collection in (before, after):
                for key, values in columns_of(collection, planned.index, name).items():
                    columns.setdefault(key, []).extend(values)
        block = Block(
            index=planned.index,
            kind=planned.kind,
            started_ns=began_ns,
            ended_ns=time.time_ns(),
            rows=len(columns["value"]),
            marks=list(dict.fromkeys(marks)),
            slices=[SliceRecord(t.arm, t.slice, True, False) for t in planned.turns],
            report={"turns": turns},
        )
        _core.write_metrics(self.run.path / "metrics", block.name, columns)
        self.run.add_block(block)
        self.progress.block(block.index, block.kind, {}, block.marks)

    async def _turn(self, fleet: Fleet, arm: int, block: int) -> tuple[Collection, Collection, dict[str, str]]:
        """One turn of an arm: what was collected at its begin and at its end, and which cells do
        not count with the reason."""
        self.stopping.check()
        await put(fleet, self.arms[arm], self.ours)
        word = f"{self.plan.names[arm]}: "
        tick = lambda text: self.progress.tick(block, "measure", word + text, 0)  # noqa: E731
        switched = await times(fleet)
        wrong = await self._fresh(fleet, {n: at and at + 1 for n, at in switched.items()}, tick)
        before = await collect(fleet)
        begun = _collected(before)
        least = {name: at and at + self.plan.turn_ns - 10**9 for name, at in begun.items() if name not in wrong}
        wrong |= await self._fresh(fleet, least, tick)
        after = await collect(fleet)
        wrong |= _incomplete(before, after)
        if len(wrong) == len(self.hosts):
            first = next(iter(wrong.items()))
            raise CellsError(
                f"{first[1]}, and none of the other cells counts either",
                where=first[0],
                next_step="the metrics of the cells must go on: dbdyno cells watch shows them",
            )
        return before, after, wrong

    async def _fresh(self, fleet: Fleet, least: Mapping[str, int | None], tick: Any) -> dict[str, str]:
        """Waits until every cell has collected at its time in `least` or later; those that gave
        nothing new for the whole patience, with the reason."""
        seen: dict[str, int | None] = {}
        moved = dict.fromkeys(least, time.monotonic())
        wait_s = _FIRST_WAIT_S
        while True:
            now = time.monotonic()
            for name, at in (await times(fleet)).items():
                if at is not None and at != seen.get(name):
                    seen[name], moved[name] = at, now
            late = [n for n, at in least.items() if at is None or (seen.get(n) or 0) < at]
            given_up = [name for name in late if self._is_over(name, seen, now - moved[name])]
            if len(given_up) == len(late):
                return {name: self._not_refreshed(name, seen) for name in given_up}
            tick(f"waiting for {len(late)} of {len(least)} cell(s) to collect")
            await self._pause(wait_s)
            wait_s = min(wait_s * _WAITS_GROW, _MOST_WAIT_S)

    def _is_over(self, name: str, seen: Mapping[str, int | None], idle_s: float) -> bool:
        """Whether to wait for a cell no longer; for one that was given up before, at once."""
        given_up = name in self.stale and self.stale[name] == seen.get(name)
        return given_up or idle_s > self.plan.patience_s

    def _not_refreshed(self, name: str, seen: Mapping[str, int | None]) -> str:
        words = f"not refreshed, nothing collected anew for {self.plan.patience_s:g} s"
        if name not in self.stale:
            self.progress.note(f"{name}: {words}; the others go on, its column does not count")
        self.stale[name] = seen.get(name)
        return words

    async def _pause(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.stopping.check()
            await asyncio.sleep(min(left, 0.1))
        self.stopping.check()


def _collected(collection: Collection) -> dict[str, int | None]:
    """When each cell collected what it gave."""
    return {
        column.host.name: next((r.at_ns for r in column.readings if r.name == MARK), None)
        for column in collection.columns
    }


def _incomplete(before: Collection, after: Collection) -> dict[str, str]:
    """The cells whose counters of a turn do not count, with the reason."""
    wrong: dict[str, str] = {}
    for first, last in zip(before.columns, after.columns, strict=True):
        problem = first.problem or last.problem
        if problem:
            wrong[first.host.name] = problem
        elif first.started_ns != last.started_ns:
            wrong[first.host.name] = "its service began anew within the turn"
    return wrong


def _targets(found: Survey) -> dict[str, Any]:
    """The cells as they were found."""
    return {
        host.name: {**found.facts[host], "objective": own.objective, "plan": alter(own.directives)}
        for host, own in found.found.items()
    }


def _manifest(plan: CellsPlan, found: Survey, undo: PlanUndo, count: int, seed: int) -> dict[str, Any]:
    from dbdyno.study.run.execute import common_facts

    common, arms = plan.common(), found.arms(plan)
    return {
        **common_facts(common, seed),
        "switch": "plan",
        "switch_reason": _REASON,
        "slice_ns": None,
        "turn_ns": plan.turn_ns,
        "blocks_planned": count,
        "arms": [
            {
                "name": arm.name,
                "description": arm.description,
                "sessions": None,
                "rate_per_s": None,
                "target": common.dsn,
                "how": {},
                "changes": {host.name: alter(directives) for host, directives in own.items()},
                "was": {host.name: alter(p.directives) for host, p in found.found.items()},
            }
            for arm, own in zip(common.arms, arms, strict=True)
        ],
        "targets": _targets(found),
        "iorm": {
            "databases": list(plan.databases),
            "on": list(plan.arms),
            "cells": [host.name for host in found.found],
            "patience_s": plan.patience_s,
            "held": plan.held,
            "undo": to_wire(undo),
        },
        "restored": False,
        "plan": common.to_dict(),
    }
