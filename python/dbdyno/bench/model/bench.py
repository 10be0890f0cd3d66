"""A model as a bench, in virtual time.

A block is one replication: every arm starts from the same state with the same random numbers, so arms are paired within
a block, and blocks are independent of each other. The order of blocks does not matter, so several run at once, and a
block's evidence is the same whenever it is run: the evidence of a run that is stopped and resumed equals, byte by byte,
that of an uninterrupted run.

Observations of a live engine (sampled waits, canaries, the cost of observation) have no meaning in virtual time and are
absent.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from dbdyno.base.errors import PlanError
from dbdyno.base.json_types import JsonObject
from dbdyno.base.signals import Interrupted
from dbdyno.bench.model.describe import describe_on_model
from dbdyno.bench.passive_bench import PassiveBench, arm_row
from dbdyno.bench.protocol import BenchContext, EvidenceReading, Facts, RunLayout, Traits
from dbdyno.hosts.model_blocks import ModelBlocks
from dbdyno.model.machine import Machine, machine_of, parse_machine
from dbdyno.study.plan.schedule import Timing, blocks
from dbdyno.study.plan.typed_workloads import refusal

if TYPE_CHECKING:
    from dbdyno._core import ModelRun
    from dbdyno.base.core_types import ModelArm, ModelSpec
    from dbdyno.bench.recorder import Recorder
    from dbdyno.hosts.workers import Workers
    from dbdyno.study.plan.plan import Plan
    from dbdyno.study.plan.schedule import Turn

_TIMING = Timing("model", 0, None, None, 0, in_order=True)


class ModelBench(PassiveBench):
    """Bench of a machine in virtual time, run by the core."""

    traits = Traits(parallel_blocks=True, spreads=True, no_errors="a model never returns an error")

    def __init__(self, plan: Plan, around: BenchContext) -> None:
        self.around = around
        schedule = replace(plan.schedule, warmup_blocks=0)
        self.plan = replace(plan, schedule=schedule, watch=replace(plan.watch, overhead_blocks=0))
        if around.cut is not None and around.target:
            raise PlanError(
                "can be resumed only with the machine it was started with",
                where=around.cut.id,
                next_step="leave --target out",
            )

    def refusal(self, plan: Plan) -> str | None:
        """Return None if the workload is a typed workload in a closed loop, otherwise the reason."""
        return refusal(plan)

    def prepare(self, seed: int | None = None) -> RunLayout:
        """Read the machine, let the core check everything, and prepare the run.

        Raises:
            PlanError: The plan cannot be run on a model.
            ModelError: The machine or an arm is invalid.
        """
        plan, cut = self.plan, self.around.cut
        if cut is not None:
            self.machine = parse_machine(plan.dsn or "", cut.manifest.machine["toml"])
        else:
            self.machine = machine_of(plan.dsn or "")
        if seed is None:
            seed = plan.schedule.seed if plan.schedule.seed is not None else secrets.randbits(31)
        self.core = self._on_workers(plan, seed) or core_run(plan, self.machine, seed)
        self.arms = ", ".join(arm.name for arm in plan.arms[:3]) + (" ..." if len(plan.arms) > 3 else "")
        order = blocks(plan, _TIMING, seed)
        return RunLayout(plan, seed, _TIMING, order, "in virtual time all arms begin in the same state")

    def _on_workers(self, plan: Plan, seed: int) -> ModelBlocks | None:
        """Return the source of blocks that are run on the user's workers, or None if there are no workers."""
        workers: Workers | None = self.around.ways.get("workers")
        if workers is None:
            return None
        core_run(plan, self.machine, seed)  # an error is found here, not on a worker
        whole = {block.index for block in self.around.cut.blocks()} if self.around.cut else set()
        missing = [index for index in range(plan.schedule.blocks) if index not in whole]
        return ModelBlocks(workers, model_spec(plan, self.machine, seed), missing)

    def describe(self) -> str:
        """Return the description of what a run would do."""
        return describe_on_model(self.plan, self.machine)

    def facts(self) -> Facts:
        """Return the machine, with every parameter and its source."""
        plan, machine = self.plan, self.machine
        names = list(dict.fromkeys(path for arm in plan.arms for path in arm.settings))
        return Facts(
            {machine.target: _facts(machine, names)},
            [_arm(plan, at, machine) for at in range(len(plan.arms))],
            EvidenceReading(virtual=True, parts=("devices", "databases", "race", "limits")),
            {"machine": {"target": machine.target, "title": machine.title, "toml": machine.toml}},
        )

    @contextlib.contextmanager
    def watch(self, recorder: Recorder) -> Iterator[None]:
        """Do nothing: nothing is observed, and the core writes a block's parts."""
        yield

    def run(self, turns: Sequence[Turn], recorder: Recorder) -> None:
        """Run all arms of a block; may be called from several threads.

        Raises:
            Interrupted: The run was stopped; no data of the block remains.
        """
        found = self.core.block(recorder.planned.index, recorder.folder)
        if found["stopped"]:
            raise Interrupted
        recorder.started_ns, recorder.ended_ns = found["started_ns"], found["ended_ns"]
        recorder.rows = found["rows"]
        recorder.reports.append({**found["report"]})
        recorder.own = {"hash": found["hash"], "invariants": found["invariants"]}

    def progress(self) -> tuple[str, int]:
        """Return the arms' names and the amount of work done, for all running blocks together."""
        return self.arms, self.core.progress()

    def stop(self) -> None:
        """Stop the running blocks."""
        if hasattr(self, "core"):
            self.core.stop()


BENCH = ModelBench


def check_on_model(plan: Plan, machine: Machine) -> None:
    """Check that the model can run the plan, without running it.

    Raises:
        PlanError: The model cannot run the plan.
        ModelError: The machine or an arm is invalid.
    """
    if refusal(plan):
        raise PlanError(
            "a modelled machine cannot run this workload",
            next_step="leave --target out, or choose a workload of the model",
        )
    core_run(plan, machine, 0)


def core_run(plan: Plan, machine: Machine, seed: int) -> ModelRun:
    """Return the core's run; everything is checked, nothing is run.

    Raises:
        ModelError: The machine or an arm is invalid.
    """
    from dbdyno import _core

    return _core.ModelRun(model_spec(plan, machine, seed))


def model_spec(plan: Plan, machine: Machine, seed: int) -> ModelSpec:
    """Return a plan and its machine in the form that the core accepts."""
    warmup = plan.schedule.warmup_transactions
    arms: list[ModelArm] = [
        {
            "name": arm.name,
            "settings": arm.settings,
            "sessions": plan.sessions_of(arm),
            "workload": {"kind": plan.workload.kind, **plan.parameters_of(arm)},
            "warmup_transactions": warmup if arm.warmup_transactions is None else arm.warmup_transactions,
        }
        for arm in plan.arms
    ]
    return {
        "machine": machine.toml,
        "seed": seed,
        "transactions": plan.schedule.transactions,
        "warmup_transactions": plan.schedule.warmup_transactions,
        "arms": arms,
    }


def _arm(plan: Plan, at: int, machine: Machine) -> dict[str, object]:
    arm = plan.arms[at]
    how = dict.fromkeys(arm.settings, "machine")
    return arm_row(plan, arm, target=machine.target, how=how, was=machine.values(list(arm.settings)))


def _facts(machine: Machine, asked: list[str]) -> JsonObject:
    """Return a summary of the machine, and every parameter with its source; those named in `asked` come first."""
    paths = {machine.path(name) for name in asked}
    rows = sorted(machine.parameters, key=lambda row: str(row["path"]) not in paths)
    return {
        "target": machine.target,
        "machine": machine.title,
        **{row["name"]: f"beside it, {row['text']}" for row in machine.databases},
        **{part["name"]: part["text"] for part in machine.parts},
        "settings": [
            {
                "name": row["path"],
                "value": f"{row['value']} {row['unit']}".strip(),
                "source": row["source"],
            }
            for row in rows
            if row["value"] is not None
        ],
    }
