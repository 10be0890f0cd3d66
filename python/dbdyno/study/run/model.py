"""Carries a plan out on a model, in virtual time, or goes on with a run cut short.

A block is one replication: every arm runs from the same beginning with the same random numbers, so
arms are paired within a block, and blocks are independent of each other. Blocks run on several
threads at once; their order does not matter, and a block's evidence is the same whenever it is run.
So a run that is stopped and resumed is, to the byte, the run that was not stopped.

What watches a live engine (sampled waits, canaries, the cost of watching) has no meaning in virtual
time and is absent.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbdyno.errors import Error, PlanError
from dbdyno.evidence.run import Block, Run, SliceRecord, new_run, this_process
from dbdyno.model.machine import Machine, machine_of, parsed
from dbdyno.study.plan.plan import Plan, plan_from_dict
from dbdyno.study.plan.typed import refusal
from dbdyno.study.run.stopping import Interrupted, Stopping

if TYPE_CHECKING:
    from dbdyno.core_types import ModelArm, ModelBlock, ModelSpec
    from dbdyno.study.run.progress import Progress

THREADS_MOST = 8
TICK_S = 0.2


def start_on_model(plan: Plan, folder: Path, progress: Progress, *, seed: int | None) -> Run:
    """Runs a plan on its model into a new run folder; see `dbdyno.study.run.execute.start`."""
    machine = machine_of(checked(plan).dsn or "")
    if seed is None:
        seed = plan.schedule.seed if plan.schedule.seed is not None else secrets.randbits(31)
    core = _core_run(plan, machine, seed)
    with Stopping() as stopping:
        run = new_run(folder, plan.title, _manifest(plan, machine, seed))
        progress.note(f"seed {seed}; evidence in {run.path}")
        _carry_out(run, core, plan, stopping, progress)
    return run


def resume_on_model(run: Run, progress: Progress) -> Run:
    """Runs the blocks that an aborted run has not; the machine is the one in its manifest."""
    plan = plan_from_dict(run.manifest["plan"])
    machine = parsed(plan.dsn or "", run.manifest["machine"]["toml"])
    core = _core_run(plan, machine, int(run.manifest["seed"]))
    with Stopping() as stopping:
        run.drop_leftovers()
        times = [*run.manifest.get("resumed", []), len(run.blocks())]
        run.save(status="running", process=this_process(), resumed=times)
        _carry_out(run, core, plan, stopping, progress)
    return run


def check_on_model(plan: Plan, machine: Machine) -> None:
    """Refuses what the model cannot run, without running it; raises `PlanError`, `ModelError`."""
    _core_run(checked(plan), machine, 0)


def checked(plan: Plan) -> Plan:
    """The plan, if a model can run it; raises `PlanError` with the reason."""
    if reason := refusal(plan):
        raise PlanError(
            f"a model cannot run this: {reason}",
            where=plan.study or plan.title,
            next_step="run it on an engine: leave --target out, or name a PostgreSQL",
        )
    return plan


def spec(plan: Plan, machine: Machine, seed: int) -> ModelSpec:
    """The specification that the core runs."""
    arms: list[ModelArm] = [
        {
            "name": arm.name,
            "settings": arm.settings,
            "sessions": plan.sessions_of(arm),
            "workload": {"kind": plan.workload.kind, **plan.parameters_of(arm)},
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


def _core_run(plan: Plan, machine: Machine, seed: int) -> Any:
    """The core's run: everything is checked, nothing is run. Raises `ModelError`."""
    from dbdyno import _core

    return _core.ModelRun(spec(plan, machine, seed))


def _carry_out(run: Run, core: Any, plan: Plan, stopping: Stopping, progress: Progress) -> None:
    whole = {block.index for block in run.blocks()}
    todo = [at for at in range(plan.schedule.blocks) if at not in whole]
    stopping.on_ask = core.stop
    began = time.monotonic()
    progress.begin(run.id, plan.schedule.blocks, len(whole), None)
    try:
        _blocks(run, core, plan, todo, stopping, progress)
    except (Interrupted, KeyboardInterrupt, Error) as error:
        word = error.message if isinstance(error, Error) else "interrupted"
        with contextlib.suppress(Error):
            run.save(status="aborted", ended=word, wall_s=_wall_s(run, began))
        raise
    finally:
        progress.end()
    run.save(status="complete", ended="all blocks run", wall_s=_wall_s(run, began))


def _wall_s(run: Run, began: float) -> float:
    """Seconds that the run has taken, over all its pieces."""
    return float(run.manifest.get("wall_s", 0.0)) + time.monotonic() - began


def _blocks(run: Run, core: Any, plan: Plan, todo: list[int], stopping: Stopping, progress: Progress) -> None:
    threads = min(THREADS_MOST, len(os.sched_getaffinity(0)), max(len(todo), 1))
    queue = iter(todo)
    arms = ", ".join(arm.name for arm in plan.arms[:3]) + (" ..." if len(plan.arms) > 3 else "")
    with ThreadPoolExecutor(threads, "model") as pool:
        flying: dict[Future[ModelBlock], int] = {}
        try:
            while not stopping.asked:
                for index in _next(queue, threads - len(flying)):
                    flying[pool.submit(core.block, index, run.path)] = index
                if not flying:
                    break
                done, _ = wait(flying, TICK_S, FIRST_COMPLETED)
                for future in done:
                    _keep(run, plan, flying.pop(future), future.result(), progress)
                progress.tick(len(todo), "measure", arms, core.progress())
        finally:
            core.stop()
            for future, index in flying.items():  # those that ended before they heard of it
                with contextlib.suppress(Error):
                    _keep(run, plan, index, future.result(), progress)
    stopping.check()


def _next(queue: Any, most: int) -> list[int]:
    return [index for _, index in zip(range(most), queue, strict=False)]


def _keep(run: Run, plan: Plan, index: int, found: ModelBlock, progress: Progress) -> None:
    """Makes a block whole: its parts are written, now its record. A stopped one left nothing."""
    if found.get("stopped"):
        return
    report = found["report"]
    block = Block(
        index=index,
        kind="measure",
        started_ns=found["started_ns"],
        ended_ns=found["ended_ns"],
        rows=found["rows"],
        slices=[SliceRecord(at, at) for at in range(len(plan.arms))],
        report={**report, "hash": found["hash"], "invariants": found["invariants"]},
    )
    run.add_block(block)
    rates = {}
    for own in report["arms"]:
        arm = plan.arms[own["arm"]]
        if own["busy_ns"]:
            done = own["transactions"] - own["errors"]
            rates[arm.name] = done * plan.sessions_of(arm) * 1e9 / own["busy_ns"]
    progress.block(index, "measure", rates if len(rates) <= 4 else {}, [])


def _manifest(plan: Plan, machine: Machine, seed: int) -> dict[str, Any]:
    from dbdyno.study.run.execute import common_facts

    plan = replace(plan, schedule=replace(plan.schedule, warmup_blocks=0))
    names = list(dict.fromkeys(path for arm in plan.arms for path in arm.settings))
    return {
        **common_facts(plan, seed),
        "switch": "model",
        "switch_reason": "in virtual time all arms begin alike",
        "slice_ns": None,
        "turn_ns": None,
        "blocks_planned": plan.schedule.blocks,
        "arms": [_arm(plan, at, machine) for at in range(len(plan.arms))],
        "targets": {machine.target: _facts(machine, names)},
        "machine": {"target": machine.target, "title": machine.title, "toml": machine.toml},
        "plan": plan.to_dict(),
    }


def _arm(plan: Plan, at: int, machine: Machine) -> dict[str, Any]:
    arm = plan.arms[at]
    return {
        "name": arm.name,
        "description": arm.description,
        "sessions": plan.sessions_of(arm),
        "rate_per_s": None,
        "target": machine.target,
        "changes": {**arm.settings, **{k: str(v) for k, v in arm.parameters.items()}},
        "how": dict.fromkeys(arm.settings, "machine"),
        "was": machine.values(list(arm.settings)),
        "against": arm.against,
    }


def _facts(machine: Machine, asked: list[str]) -> dict[str, Any]:
    """The machine in short, and every parameter with its source."""
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
