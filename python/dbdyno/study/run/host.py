"""Carries a plan out on this host: log writers on real files instead of sessions on an engine.

The blocks are those of a live run: the arms alternate in slices in randomised ABBA order, each with
its own log and files. The probe's rows become the block's parts; its record is written last.
"""

from __future__ import annotations

import contextlib
import secrets
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbdyno.errors import PlanError
from dbdyno.evidence.run import Block, Run, SliceRecord, new_run, this_process
from dbdyno.study.plan.host import HostPlan, description
from dbdyno.study.plan.schedule import PlannedBlock, Timing, blocks, timing
from dbdyno.study.run.progress import Silent
from dbdyno.study.run.stopping import Stopping, ending

if TYPE_CHECKING:
    from dbdyno.core_types import ProbeCost, ProbeReport
    from dbdyno.study.plan.plan import Plan
    from dbdyno.study.run.progress import Progress

COST_COMMITS = 5000
_REASON = "a log is always open: the arms differ by their files and rules only"


def start_on_host(plan: HostPlan, folder: Path, progress: Progress | None = None, *, seed: int | None = None) -> Run:
    """Runs a plan on this host into a new run folder below `folder`.

    Raises `PlanError` for values that make no sense, `TargetError` for a path that the probe will
    not write to, `Interrupted` after a signal; the probe's files are removed in every case.
    """
    from dbdyno import _core

    progress = progress or Silent()
    if seed is None:
        seed = secrets.randbits(31)
    number = secrets.randbits(63)
    probe = _core.Probe({"seed": seed, "arms": [a.spec() for a in plan.arms]}, number)
    common = plan.common()
    how = timing(plan.schedule, "slices" if len(plan.arms) > 1 else "turns")
    todo = blocks(common, how, seed)
    with Stopping() as stopping, contextlib.closing(probe):
        stopping.on_ask = probe.stop
        cost = probe.cost(COST_COMMITS)
        probe.open()
        stopping.check()
        run = new_run(folder, plan.title, _manifest(plan, common, how, todo, seed, cost))
        progress.note(f"seed {seed}; evidence in {run.path}")
        _carry_out(_Runner(plan, run, probe, stopping, progress), todo, how)
    return run


def refuse_resume(run: Run) -> None:
    """Raises `PlanError` for a run of a probe: its files are gone, and a new run costs little; and
    for one on storage cells, which are looked at and asked for first."""
    if "iorm" in run.manifest:
        raise PlanError(
            "is a run on storage cells; it goes on by the command line only",
            where=run.id,
            next_step=f"dbdyno run --resume {run.id}",
        )
    if "logs" in run.manifest:
        raise PlanError(
            "is a run of a probe, whose files are gone; it cannot go on",
            where=run.id,
            next_step="start it again; the whole blocks of this one stay readable",
        )


def _carry_out(runner: _Runner, todo: list[PlannedBlock], how: Timing) -> None:
    run, progress = runner.run, runner.progress
    lengths = [turn.length_ns or 0 for block in todo for turn in block.turns]
    progress.begin(run.id, len(todo), 0, sum(lengths) / 1e9)
    try:
        with ending(run):
            for block in todo:
                runner.stopping.check()
                runner.block(block)
    finally:
        progress.end()


class _Runner:
    """Runs blocks of log writers into a run folder."""

    def __init__(self, plan: HostPlan, run: Run, probe: Any, stopping: Stopping, progress: Progress) -> None:
        self.plan, self.run, self.probe = plan, run, probe
        self.stopping, self.progress = stopping, progress
        self.names = [arm.name for arm in plan.arms]

    def block(self, planned: PlannedBlock) -> None:
        """Runs a block; its record is written last."""
        from dbdyno.bench.canary import host_canaries

        name = f"b{planned.index:06d}"
        canaries = host_canaries(self.plan.arms[0].paths[0].parent)
        metrics = _Metrics(self.names, planned.index)
        metrics.read(self.probe)
        try:
            report = self._turns(planned)
        except BaseException:
            self.probe.abandon_block()
            raise
        rows = self.probe.end_block(self.run.path, name)
        metrics.read(self.probe)
        metrics.write(self.run.path, name)
        self.run.add_block(
            Block(
                index=planned.index,
                kind=planned.kind,
                started_ns=report.pop("started_ns"),
                ended_ns=report.pop("ended_ns"),
                rows=rows,
                slices=[SliceRecord(t.arm, t.slice, t.counts, False) for t in planned.turns],
                report=report,
                canaries=canaries,
            )
        )
        self.progress.block(planned.index, planned.kind, self._rates(report), [])

    def _turns(self, planned: PlannedBlock) -> dict[str, Any]:
        slices = [(t.arm, t.slice, t.length_ns, t.transactions) for t in planned.turns]
        answer: list[ProbeReport] = []
        failure: list[BaseException] = []

        def work() -> None:
            try:
                answer.append(self.probe.run(planned.index, slices))
            except BaseException as error:
                failure.append(error)

        thread = threading.Thread(target=work, name="probe", daemon=True)
        thread.start()
        arms = ", ".join(dict.fromkeys(self.names[t.arm] for t in planned.turns))
        while thread.is_alive():
            thread.join(0.2)
            self.progress.tick(planned.index, planned.kind, arms, self.probe.progress())
        if failure:
            raise failure[0]
        self.stopping.check()
        report = answer[0]
        return {**report, "wall_ns": report["ended_ns"] - report["started_ns"]}

    def _rates(self, report: dict[str, Any]) -> dict[str, float]:
        return {
            self.names[arm["arm"]]: arm["transactions"] * self.plan.arms[arm["arm"]].sessions * 1e9 / arm["busy_ns"]
            for arm in report["arms"]
            if arm["busy_ns"]
        }


class _Metrics:
    """The counters of the logs and of the machine at the borders of a block."""

    def __init__(self, arms: list[str], block: int) -> None:
        self.arms, self.block = arms, block
        self.rows: list[dict[str, Any]] = []

    def read(self, probe: Any) -> None:
        """Reads everything now."""
        from dbdyno.bench.metrics import host_counters

        at_ns = time.time_ns()
        for arm, rows in zip(self.arms, probe.counters(), strict=True):
            for object_type, thing, metric, unit, kind, value in rows:
                self.rows.append(
                    {
                        "arm": arm,
                        "source": "probe",
                        "object_type": object_type,
                        "object": thing,
                        "metric": metric,
                        "at_ns": at_ns,
                        "value": value,
                        "unit": unit,
                        "kind": kind,
                    }
                )
        keys = ("source", "object_type", "object", "metric", "at_ns", "value", "unit", "kind")
        for row in host_counters():
            self.rows.append({"arm": "", **{key: getattr(row, key) for key in keys}})

    def write(self, folder: Path, name: str) -> None:
        """Writes the part of this block."""
        from dbdyno import _core

        columns = {key: [row[key] for row in self.rows] for key in self.rows[0]}
        columns["block"] = [self.block] * len(self.rows)
        columns["value"] = [float(value) for value in columns["value"]]
        _core.write_metrics(folder / "metrics", name, columns)


def _manifest(
    plan: HostPlan,
    common: Plan,
    how: Timing,
    todo: list[PlannedBlock],
    seed: int,
    cost: list[ProbeCost],
) -> dict[str, Any]:
    from dbdyno.bench.host.probe import facts, same_device
    from dbdyno.study.run.execute import common_facts

    return {
        **common_facts(common, seed),
        "switch": how.switch,
        "switch_reason": _REASON if how.in_slices else "there is one arm",
        "slice_ns": how.slice_ns if how.in_slices else None,
        "turn_ns": how.turn_ns,
        "blocks_planned": sum(block.kind == "measure" for block in todo),
        "arms": [
            {
                "name": arm.name,
                "description": description(arm),
                "sessions": arm.sessions,
                "rate_per_s": arm.rate_per_s,
                "target": "host",
                "changes": {},
                "how": {},
                "was": {},
            }
            for arm in plan.arms
        ],
        "targets": {"host": facts(plan.arms)},
        "logs": [
            {**arm.spec(), "same_device": same_device(arm), "cost": own}
            for arm, own in zip(plan.arms, cost, strict=True)
        ],
        "plan": common.to_dict(),
        "process": this_process(),
    }
