"""Storage cells as a bench: their IORM plan is switched and their counters are read.

    prepare           reads every cell's plan and facts; nothing is changed
    manifest <- undo  the plans found, on disk: what `dbdyno cells restore` reads
    guardian <- undo  the same, before the first change
    per turn          ALTER IORMPLAN; wait until every cell has collected after it: begin;
                      wait until every cell has collected again, `turn_ns` later by its own
                      clock: end
    restore           the plans found are restored and read back

If a cell collects nothing new within the patience time, the user is warned and the run no longer waits for the cell:
its column of the block does not count. A cell that cannot be switched ends the run, because its arms would be mixed.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from dbdyno.base.errors import CellsError, Error, PlanError
from dbdyno.base.json_types import JsonObject
from dbdyno.bench.cells.plan import WORKLOAD, CellsPlan
from dbdyno.bench.cells.restore import checked_access, refuse_interrupted_runs, undo_of
from dbdyno.bench.cells.survey import COLLECTION_METRIC, collection_times, describe, refuse_flash_log_set, survey
from dbdyno.bench.passive_bench import PassiveBench, arm_row
from dbdyno.bench.protocol import BenchContext, EvidenceReading, Facts, RunLayout, Traits
from dbdyno.bench.undo import to_wire
from dbdyno.cells.collect import collect
from dbdyno.cells.collection import Collection
from dbdyno.cells.hosts import hosts_of
from dbdyno.cells.iorm_plan import alter_command
from dbdyno.cells.iorm_switch import SETTLE_S, plan_undo, set_plans
from dbdyno.cells.ssh import Fleet
from dbdyno.study.plan.schedule import Timing, blocks

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dbdyno.bench.cells.survey import Survey
    from dbdyno.bench.recorder import Recorder
    from dbdyno.evidence.run import Run
    from dbdyno.study.plan.plan import Plan
    from dbdyno.study.plan.schedule import Turn

_FIRST_WAIT_S, _WAITS_GROW, _MOST_WAIT_S = 0.2, 1.3, 10.0
"""First pause between two reads of the cells, its growth factor, and its maximum, in seconds.

Each wait begins again with the first pause, so a wait ends at most about a third later than it could.
"""
_REASON = "ALTER IORMPLAN is in effect at once, and cells collect once a minute"


class CellsBench(PassiveBench):
    """Bench of the storage cells of one run.

    Two entries of `BenchContext.ways` are used: "reach", a function that returns the access to the cells, and "user",
    the login name.
    """

    traits = Traits(
        asks=True,
        interrupted="the plans of the cells are restored",
        no_errors="the cells' databases make the load",
    )

    def __init__(self, plan: Plan, around: BenchContext) -> None:
        super().__init__(plan, around)
        self.stopping, self.cells = around.stopping, CellsPlan.from_plan(plan)
        self.loop = asyncio.Runner()
        self.held = contextlib.ExitStack()
        self.held.callback(self.loop.close)
        self.stale: dict[str, int | None] = {}
        if around.cut is not None and around.target is not None:
            raise PlanError(
                "can be resumed only with the cells it was started with",
                where=around.cut.id,
                next_step="leave --target out",
            )

    def refusal(self, plan: Plan) -> str | None:
        """Return the reason why this bench cannot run a plan; None if the plan switches flash logs."""
        return None if plan.workload.kind == WORKLOAD else "it runs a load, but on cells the databases make the load"

    def prepare(self, seed: int | None = None) -> RunLayout:
        """Read the state of every cell and prepare the run.

        Raises:
            CellsError: A cell cannot be switched or restored, or another run works on it.
            PlanError: A database does not exist, or a resumed run finds cells that have changed.
        """
        cut, user = self.around.cut, self.around.ways.get("user")
        self.access = self.around.ways["reach"]()
        if cut is None:
            hosts = hosts_of([self.cells.hosts], user=user)
        else:
            undo = undo_of(cut)
            self.access = checked_access(cut, undo, self.access)
            hosts = list(undo.with_access(self.access, user).directives_before)
        self.found = survey(self.cells, hosts, self.access)
        refuse_interrupted_runs(self.around.folder, self.found.found)
        refuse_flash_log_set(self.cells, self.found)
        if cut is not None:
            self._as_before(cut)
        self._lay_out()
        seed = secrets.randbits(31) if seed is None else seed
        how = Timing("plan", 0, self.cells.turn_ns, None, 0)
        return RunLayout(self.plan, seed, how, blocks(self.plan, how, seed), _REASON)

    def _as_before(self, run: Run) -> None:
        was = run.manifest.targets
        for name, facts in _targets(self.found).items():
            if facts != was.get(name):
                differs = [key for key in facts if facts[key] != was.get(name, {}).get(key)]
                raise PlanError(
                    f"has changed since the run began: {', '.join(differs)}",
                    where=name,
                    next_step="start a new run: blocks before and after the change cannot be compared",
                )

    def _lay_out(self) -> None:
        """Compute each cell's plan in each arm, and the undo."""
        self.arms = self.found.arms(self.cells)
        self.hosts = list(self.found.found)
        ours = {host: tuple(arm[host] for arm in self.arms) for host in self.hosts}
        self.undo = plan_undo(self.found.found, ours, self.access)
        self.ours = {host: (self.found.found[host].directives, *ours[host]) for host in self.hosts}

    def describe(self) -> str:
        """Return the description of what a run would do."""
        return describe(self.cells, self.found)

    def facts(self) -> Facts:
        """Return the state of the cells before the run, and what is needed to restore it."""
        plan = self.cells
        arms = [
            arm_row(
                self.plan,
                arm,
                sessions=None,
                changes={host.name: alter_command(directives) for host, directives in own.items()},
                was={host.name: alter_command(p.directives) for host, p in self.found.found.items()},
            )
            for arm, own in zip(self.plan.arms, self.arms, strict=True)
        ]
        iorm = {
            "databases": list(plan.databases),
            "on": list(plan.arms),
            "cells": [host.name for host in self.found.found],
            "patience_s": plan.patience_s,
            "held": plan.held,
            "undo": to_wire(self.undo),
        }
        return Facts(_targets(self.found), arms, EvidenceReading("cells"), {"iorm": iorm, "restored": False})

    def begin(self, run: Run, resumed: int) -> None:
        """Record the state found and register the undo, before the first plan is changed."""
        if resumed:
            run.save(restored=False, iorm={**run.manifest.iorm, "undo": to_wire(self.undo)})
        self.held.callback(self._note_restored, run)
        self.held.enter_context(self.around.guardian.undo(self.undo))
        self.held.callback(
            self.around.note, f"restoring the plans of the cells; checking them again after {SETTLE_S:g} s"
        )
        self.fleet = Fleet(self.hosts, self.access)
        self.loop.run(self.fleet.__aenter__())
        self.held.callback(lambda: self.loop.run(self.fleet.__aexit__(None, None, None)))

    def _note_restored(self, run: Run) -> None:
        if not self.around.guardian.pending:
            with contextlib.suppress(Error):
                run.save(restored=True)

    @contextlib.contextmanager
    def watch(self, recorder: Recorder) -> Iterator[None]:
        """Collect the metrics of a block's turns, and write them to the block's metrics part at the end."""
        from dbdyno import _core

        self.columns: dict[str, list[Any]] = {}
        recorder.own = {"turns": []}
        yield
        recorder.rows = len(self.columns["value"])
        _core.write_metrics(recorder.folder / "metrics", recorder.name, self.columns)

    def run(self, turns: Sequence[Turn], recorder: Recorder) -> None:
        """Run turns one after the other: switch the plan, wait for the beginning and the end of the turn, collect."""
        from dbdyno.cells.record import columns_of

        for turn in turns:
            name = self.cells.names[turn.arm]
            before, after, wrong = self.loop.run(self._turn(turn.arm, recorder))
            recorder.own["turns"].append({"arm": turn.arm, "wrong": wrong})
            recorder.marks += [f"{cell}: {why}" for cell, why in wrong.items()]
            for collection in (before, after):
                for key, values in columns_of(collection, recorder.planned.index, name).items():
                    self.columns.setdefault(key, []).extend(values)

    def restore(self) -> None:
        """Restore on every cell the IORM plan that was in effect before the run."""
        self.held.close()

    async def _turn(self, arm: int, recorder: Recorder) -> tuple[Collection, Collection, dict[str, str]]:
        """Run one turn of an arm.

        Returns:
            What was collected at the beginning and end of the turn, and the reason for each cell that does not count.
        """
        fleet = self.fleet
        self.stopping.check()
        await set_plans(fleet, self.arms[arm], self.ours)
        word = f"{self.cells.names[arm]}: "
        tick = lambda text: recorder.tick(word + text)  # noqa: E731
        switched = await collection_times(fleet)
        wrong = await self._fresh({n: at and at + 1 for n, at in switched.items()}, tick)
        before = await collect(fleet)
        begun = _collection_times(before)
        least = {name: at and at + self.cells.turn_ns - 10**9 for name, at in begun.items() if name not in wrong}
        wrong |= await self._fresh(least, tick)
        after = await collect(fleet)
        wrong |= _incomplete(before, after)
        if len(wrong) == len(self.hosts):
            first = next(iter(wrong.items()))
            raise CellsError(
                f"{first[1]}; no other cell could be measured either",
                where=first[0],
                next_step="check with `dbdyno cells watch` that the cells still report metrics",
            )
        return before, after, wrong

    async def _fresh(self, least: Mapping[str, int | None], tick: Any) -> dict[str, str]:
        """Wait until each cell has collected values at or after its time in `least`.

        Returns:
            For each cell that collected nothing new within the patience time, the reason why.
        """
        seen: dict[str, int | None] = {}
        moved = dict.fromkeys(least, time.monotonic())
        wait_s = _FIRST_WAIT_S
        while True:
            now = time.monotonic()
            for name, at in (await collection_times(self.fleet)).items():
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
        """Return True if a cell should no longer be waited for.

        A cell that was abandoned before and has collected nothing since is not waited for at all.
        """
        given_up = name in self.stale and self.stale[name] == seen.get(name)
        return given_up or idle_s > self.cells.patience_s

    def _not_refreshed(self, name: str, seen: Mapping[str, int | None]) -> str:
        words = f"not refreshed: no new collection for {self.cells.patience_s:g} s"
        if name not in self.stale:
            self.around.note(f"{name}: {words}; the other cells continue; the column of this cell does not count")
        self.stale[name] = seen.get(name)
        return words

    async def _pause(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.stopping.check()
            await asyncio.sleep(min(left, 0.1))
        self.stopping.check()


BENCH = CellsBench


def _collection_times(collection: Collection) -> dict[str, int | None]:
    """Return when each cell collected its values, or None if unknown."""
    return {
        column.host.name: next((r.at_ns for r in column.readings if r.name == COLLECTION_METRIC), None)
        for column in collection.columns
    }


def _incomplete(before: Collection, after: Collection) -> dict[str, str]:
    """Return, for each cell whose counters of a turn cannot be used, the reason."""
    wrong: dict[str, str] = {}
    for first, last in zip(before.columns, after.columns, strict=True):
        problem = first.problem or last.problem
        if problem:
            wrong[first.host.name] = problem
        elif first.started_ns != last.started_ns:
            wrong[first.host.name] = "its service was restarted during the turn"
    return wrong


def _targets(survey: Survey) -> JsonObject:
    """Return the cells as they were found, for the manifest."""
    return {
        host.name: {**survey.facts[host], "objective": own.objective, "plan": alter_command(own.directives)}
        for host, own in survey.found.items()
    }
