"""Storage cells as a bench: their IORM plan is switched, their counters are read.

    prepare           every cell's plan and facts; nothing is changed
    manifest <- undo  the plans found, on disk: what `dbdyno cells restore` reads
    guardian <- undo  the same, before the first change
    per turn          ALTER IORMPLAN; wait until every cell has collected after it: begin;
                      wait until every cell has collected again, `turn_ns` later by its own
                      clock: end
    put_back          the plans found are put back and read

A cell that collects nothing anew within the patience is told of and waited for no longer: its
column of the block does not count. A cell that cannot be switched ends the run, since its arms
would be mixed.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from dbdyno.base.errors import CellsError, Error, PlanError
from dbdyno.bench.cells.plan import WORKLOAD, CellsPlan
from dbdyno.bench.cells.restore import refuse_cut, undo_of, way_of
from dbdyno.bench.cells.survey import MARK, describe, refuse_held, survey, times
from dbdyno.bench.passive_bench import QuietBench, arm_row
from dbdyno.bench.protocol import Circumstances, Facts, Reads, Ready, Traits
from dbdyno.bench.undo import to_wire
from dbdyno.cells.collect import collect
from dbdyno.cells.collection import Collection
from dbdyno.cells.hosts import hosts_of
from dbdyno.cells.iorm_plan import alter
from dbdyno.cells.iorm_switch import SETTLE_S, plan_undo, put
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
"""Between two looks at the cells: begun anew for each wait, so that it is overshot by a third."""
_REASON = "ALTER IORMPLAN is in effect at once, and cells collect once a minute"


class CellsBench(QuietBench):
    """The cells of one run. `ways`: "reach" makes the access, "user" is who logs in."""

    traits = Traits(
        asks=True,
        interrupted="the plans of the cells are as they were",
        no_errors="the load of cells is their databases' own",
    )

    def __init__(self, plan: Plan, around: Circumstances) -> None:
        super().__init__(plan, around)
        self.stopping, self.cells = around.stopping, CellsPlan.of(plan)
        self.loop = asyncio.Runner()
        self.held = contextlib.ExitStack()
        self.held.callback(self.loop.close)
        self.stale: dict[str, int | None] = {}
        if around.cut is not None and around.target is not None:
            raise PlanError("goes on with its own cells; leave --target out", where=around.cut.id)

    def can(self, plan: Plan) -> str | None:
        """Whether it is a switch of flash logs."""
        return None if plan.workload.kind == WORKLOAD else "it runs a load, and that of cells is their databases' own"

    def prepare(self, seed: int | None = None) -> Ready:
        """Looks at every cell. Raises `CellsError` for one that cannot be switched or put back, or that another run
        works on."""
        cut, user = self.around.cut, self.around.ways.get("user")
        self.access = self.around.ways["reach"]()
        if cut is None:
            hosts = hosts_of([self.cells.hosts], user=user)
        else:
            undo = undo_of(cut)
            self.access = way_of(cut, undo, self.access)
            hosts = list(undo.reached(self.access, user).directives_before)
        self.found = survey(self.cells, hosts, self.access)
        refuse_cut(self.around.folder, self.found.found)
        refuse_held(self.cells, self.found)
        if cut is not None:
            self._as_before(cut)
        self._lay_out()
        seed = secrets.randbits(31) if seed is None else seed
        how = Timing("plan", 0, self.cells.turn_ns, None, 0)
        return Ready(self.plan, seed, how, blocks(self.plan, how, seed), _REASON)

    def _as_before(self, run: Run) -> None:
        was = run.manifest.targets
        for name, facts in _targets(self.found).items():
            if facts != was.get(name):
                differs = [key for key in facts if facts[key] != was.get(name, {}).get(key)]
                raise PlanError(
                    f"is not as it was found when the run began: {', '.join(differs)}",
                    where=name,
                    next_step="blocks before and after would not be alike: start a new run",
                )

    def _lay_out(self) -> None:
        """What each cell's plan is in each arm, and the way back."""
        self.arms = self.found.arms(self.cells)
        self.hosts = list(self.found.found)
        ours = {host: tuple(arm[host] for arm in self.arms) for host in self.hosts}
        self.undo = plan_undo(self.found.found, ours, self.access)
        self.ours = {host: (self.found.found[host].directives, *ours[host]) for host in self.hosts}

    def describe(self) -> str:
        """What a run would do."""
        return describe(self.cells, self.found)

    def facts(self) -> Facts:
        """The cells as they were found, and what puts them back."""
        plan = self.cells
        arms = [
            arm_row(
                self.plan,
                arm,
                sessions=None,
                changes={host.name: alter(directives) for host, directives in own.items()},
                was={host.name: alter(p.directives) for host, p in self.found.found.items()},
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
        return Facts(_targets(self.found), arms, Reads("cells"), {"iorm": iorm, "restored": False})

    def begin(self, run: Run, resumed: int) -> None:
        """Notes what is found and registers the way back, before the first plan is changed."""
        if resumed:
            run.save(restored=False, iorm={**run.manifest.iorm, "undo": to_wire(self.undo)})
        self.held.callback(self._note_restored, run)
        self.held.enter_context(self.around.guardian.undo(self.undo))
        self.held.callback(
            self.around.note, f"putting the plans of the cells back, and looking again after {SETTLE_S:g} s"
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
        """What the turns of a block collect becomes its part of metrics."""
        from dbdyno import _core

        self.columns: dict[str, list[Any]] = {}
        recorder.own = {"turns": []}
        yield
        recorder.rows = len(self.columns["value"])
        _core.write_metrics(recorder.folder / "metrics", recorder.name, self.columns)

    def run(self, turns: Sequence[Turn], recorder: Recorder) -> None:
        """One turn after the other: switched, begun, ended."""
        from dbdyno.cells.record import columns_of

        for turn in turns:
            name = self.cells.names[turn.arm]
            before, after, wrong = self.loop.run(self._turn(turn.arm, recorder))
            recorder.own["turns"].append({"arm": turn.arm, "wrong": wrong})
            recorder.marks += [f"{cell}: {why}" for cell, why in wrong.items()]
            for collection in (before, after):
                for key, values in columns_of(collection, recorder.planned.index, name).items():
                    self.columns.setdefault(key, []).extend(values)

    def put_back(self) -> None:
        """The plans found, on every cell."""
        self.held.close()

    async def _turn(self, arm: int, recorder: Recorder) -> tuple[Collection, Collection, dict[str, str]]:
        """One turn of an arm: what was collected at its begin and at its end, and which cells do
        not count with the reason."""
        fleet = self.fleet
        self.stopping.check()
        await put(fleet, self.arms[arm], self.ours)
        word = f"{self.cells.names[arm]}: "
        tick = lambda text: recorder.tick(word + text)  # noqa: E731
        switched = await times(fleet)
        wrong = await self._fresh({n: at and at + 1 for n, at in switched.items()}, tick)
        before = await collect(fleet)
        begun = _collected(before)
        least = {name: at and at + self.cells.turn_ns - 10**9 for name, at in begun.items() if name not in wrong}
        wrong |= await self._fresh(least, tick)
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

    async def _fresh(self, least: Mapping[str, int | None], tick: Any) -> dict[str, str]:
        """Waits until every cell has collected at its time in `least` or later; those that gave
        nothing new for the whole patience, with the reason."""
        seen: dict[str, int | None] = {}
        moved = dict.fromkeys(least, time.monotonic())
        wait_s = _FIRST_WAIT_S
        while True:
            now = time.monotonic()
            for name, at in (await times(self.fleet)).items():
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
        return given_up or idle_s > self.cells.patience_s

    def _not_refreshed(self, name: str, seen: Mapping[str, int | None]) -> str:
        words = f"not refreshed, nothing collected anew for {self.cells.patience_s:g} s"
        if name not in self.stale:
            self.around.note(f"{name}: {words}; the others go on, its column does not count")
        self.stale[name] = seen.get(name)
        return words

    async def _pause(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.stopping.check()
            await asyncio.sleep(min(left, 0.1))
        self.stopping.check()


BENCH = CellsBench


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
