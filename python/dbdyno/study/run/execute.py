"""Carries a plan out from the first connection to the last, or resumes a run cut short."""

from __future__ import annotations

import contextlib
import platform
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbdyno.errors import PlanError
from dbdyno.evidence.run import Run, new_run, this_process
from dbdyno.evidence.seal import is_own
from dbdyno.evidence.trust import refuse_foreign
from dbdyno.study.plan.plan import EMBEDDED, Arm, Plan, plan_from_dict
from dbdyno.study.run.host import refuse_resume
from dbdyno.study.run.objects import workload_objects
from dbdyno.study.run.prepare import Prepared, open_targets, prepare
from dbdyno.study.run.progress import Silent
from dbdyno.study.run.server_settings import (
    claim_servers,
    refuse_left_settings,
    refuse_other_befores,
    server_errors,
    settled,
)
from dbdyno.study.run.stopping import Stopping, ending

if TYPE_CHECKING:
    from dbdyno.bench.guardian import Guardian
    from dbdyno.bench.postgres.server import Postgres
    from dbdyno.core_types import LoadSpec
    from dbdyno.study.plan.schedule import Timing
    from dbdyno.study.run.progress import Progress

ASKED_FIRST = (
    "shared_buffers",
    "wal_buffers",
    "work_mem",
    "synchronous_commit",
    "fsync",
    "wal_sync_method",
    "full_page_writes",
    "wal_compression",
    "wal_writer_delay",
    "wal_writer_flush_after",
    "max_wal_size",
    "checkpoint_timeout",
    "autovacuum",
    "jit",
    "effective_cache_size",
    "random_page_cost",
    "max_parallel_workers_per_gather",
    "track_io_timing",
)


def same_twice(plan: Plan) -> Plan:
    """The plan's base arm against itself: what `--aa` runs."""
    base = plan.arms[0]
    twin = replace(base, name=f"{base.name} again"[:60])
    return replace(plan, kind="aa", title=f"A/A {plan.title}", arms=[base, twin])


def start(plan: Plan, folder: Path, progress: Progress | None = None, *, seed: int | None = None) -> Run:
    """Runs a plan into a new run folder below `folder`; returns the run, ready to be analysed.

    Raises `Interrupted` after a signal, with everything put back and the run marked aborted.
    """
    progress = progress or Silent()
    if plan.on_model:
        from dbdyno.study.run.model import start_on_model

        return start_on_model(plan, folder, progress, seed=seed)
    with contextlib.ExitStack() as stack:
        stopping, guardian, ready = _opened(stack, plan, seed, folder)
        run = new_run(folder, plan.title, _manifest(ready))
        progress.note(f"seed {ready.seed}; evidence in {run.path}")
        for note in ready.notes:
            progress.note(note)
        _carry_out(run, ready, guardian, stopping, progress, _spec(ready, 0))
    return run


def resume(run: Run, progress: Progress | None = None, *, target: str | None = None, agreed: bool = False) -> Run:
    """Runs what an aborted run has not yet run, after warming up again. Raises `PlanError` where the plan is not known
    to be this user's own and nobody `agreed` to it; `orders` says what to show."""
    progress = progress or Silent()
    refuse_ended(run)
    refuse_resume(run)
    plan = plan_from_dict(run.manifest["plan"])
    if run.manifest["plan"].get("secrets_left_out"):
        raise PlanError(
            "cannot go on: its SQL held secrets, and those were not kept",
            where=run.id,
            next_step="run the plan anew from its file",
        )
    if plan.on_model:
        from dbdyno.study.run.model import resume_on_model

        if target:
            raise PlanError("goes on with its own machine; leave --target out", where=run.id)
        return resume_on_model(run, progress)
    if not agreed and not is_own(run.manifest):
        raise PlanError(
            "comes from elsewhere or was changed: its plan was not agreed to",
            where=run.id,
            next_step="read its manifest.json; `dbdyno run --resume` shows what it would do and asks",
        )
    plan = replace(plan, dsn=target) if target else _with_own_secrets(plan)
    with contextlib.ExitStack() as stack:
        stopping, guardian, ready = _opened(stack, plan, int(run.manifest["seed"]), run.path.parent)
        refuse_other_befores(run, ready)
        if ready.timing.switch != run.manifest["switch"]:
            raise PlanError("the engine would switch arms in another way than before", where=run.id)
        ready = ready.retimed(_kept(ready.timing, run))
        run.drop_leftovers()
        times = [*run.manifest.get("resumed", []), len(run.blocks())]
        run.save(status="running", process=this_process(), resumed=times)
        _carry_out(run, ready, guardian, stopping, progress, _spec(ready, len(times)))
    return run


def orders(run: Run, target: str | None = None) -> list[str]:
    """What going on with a run would do that its folder says: the servers it connects to, what it sends and sets there.
    Empty where this user made the run with this plan, and on a model."""
    plan = plan_from_dict(run.manifest["plan"])
    if plan.on_model or is_own(run.manifest):
        return []
    servers = {arm.dsn or target or plan.dsn or EMBEDDED[0] for arm in plan.arms}
    work = plan.workload
    sent = [*work.setup, *(script.text for script in work.scripts), *work.teardown]
    lines = [f"connects to {server}" for server in sorted(servers)]
    lines += [f"sets {name} = {value} when it starts the server" for name, value in plan.embedded_settings.items()]
    for arm in plan.arms:
        lines += [f"sets {name} = {value} ({arm.name})" for name, value in arm.settings.items()]
        sent += [*arm.before_sql, *(script.text for script in arm.scripts or []), *arm.after_sql]
    return lines + [f"sends {text}" for text in sent]


def _kept(how: Timing, run: Run) -> Timing:
    """The lengths that a run's slices or turns had grown to, so that all its blocks are alike."""
    grown = {key: run.manifest[key] for key in ("slice_ns", "turn_ns") if run.manifest.get(key)}
    return replace(how, **grown)


def refuse_ended(run: Run) -> None:
    """Raises `PlanError` for a run that is not cut: whole, or still at work; `EvidenceError` for somebody else's."""
    refuse_foreign(run.path)
    if run.status == "complete":
        raise PlanError("is complete; there is nothing to resume", where=run.id)
    if run.status == "running":
        raise PlanError("is still running", where=run.id, next_step="wait for it, or stop it")


def _opened(
    stack: contextlib.ExitStack, plan: Plan, seed: int | None, folder: Path
) -> tuple[Stopping, Guardian, Prepared]:
    """Everything a run needs. What altered settings were is read under the lock of their server."""
    from dbdyno.bench.guardian import Guardian

    stack.enter_context(server_errors())
    stopping = stack.enter_context(Stopping())
    guardian = stack.enter_context(Guardian())
    targets = stack.enter_context(open_targets(plan, guardian))
    ready = prepare(plan, targets, seed)
    if claim_servers(ready, guardian):
        ready = prepare(plan, targets, ready.seed)
    refuse_left_settings(ready, folder)
    stopping.check()
    return stopping, guardian, ready


def _carry_out(
    run: Run,
    ready: Prepared,
    guardian: Guardian,
    stopping: Stopping,
    progress: Progress,
    spec: LoadSpec,
) -> None:
    from dbdyno.study.run.observer import Observer
    from dbdyno.study.run.runner import Runner

    whole = {block.index for block in run.blocks()}
    todo = [b for b in ready.blocks if b.index not in whole or (whole and b.kind == "warmup")]
    with ending(run), server_errors(), settled(run, ready, guardian), _objects(ready, guardian, stopping):
        observer = Observer(ready, stopping.is_asked)
        runner = Runner(ready, run, guardian, stopping, progress, observer, spec)
        progress.begin(
            run.id,
            len(ready.blocks),
            len(ready.blocks) - len(todo),
            ready.seconds() * len(todo) / len(ready.blocks),
        )
        try:
            runner.go([block.index for block in todo])
        finally:
            progress.end()


@contextlib.contextmanager
def _objects(ready: Prepared, guardian: Guardian, stopping: Stopping) -> Iterator[None]:
    targets: dict[str, Postgres] = {arm.target.safe_dsn: arm.target for arm in ready.arms}
    with contextlib.ExitStack() as stack:
        for target in targets.values():
            stack.enter_context(workload_objects(ready.plan.workload, target, guardian, stopping))
        yield


def _spec(ready: Prepared, resumed: int) -> LoadSpec:
    """The load's specification; a resumed run draws other random numbers than before."""
    return replace(ready, seed=ready.seed + 1_000_003 * resumed).load_spec()


def _manifest(ready: Prepared) -> dict[str, Any]:
    plan, how = ready.plan, ready.timing
    targets = {arm.target.safe_dsn: arm.target for arm in ready.arms}
    return {
        **common_facts(plan, ready.seed),
        "switch": how.switch,
        "switch_reason": ready.reason,
        "notes": list(ready.notes),
        "slice_ns": how.slice_ns if how.in_slices else None,
        "turn_ns": how.turn_ns,
        "blocks_planned": sum(block.kind == "measure" for block in ready.blocks),
        "arms": [_arm(ready, number) for number in range(len(ready.arms))],
        "targets": {name: _facts(target) for name, target in targets.items()},
        "plan": plan.to_dict(),
    }


def common_facts(plan: Plan, seed: int) -> dict[str, Any]:
    """What every manifest begins with, on whatever target."""
    return {
        "tool_version": tool_version(),
        "python": platform.python_version(),
        "title": plan.title,
        "question": plan.question,
        "kind": plan.kind,
        "study": plan.study,
        "seed": seed,
    }


def _facts(target: Postgres) -> dict[str, Any]:
    """The target's facts; among the settings also those that a reader asks for first."""
    facts = target.facts()
    known = {setting["name"] for setting in facts["settings"]}
    with contextlib.closing(target.connect()) as conn:
        rows = conn.execute(
            "select name, current_setting(name), source from pg_settings where name = any(%s)",
            [[name for name in ASKED_FIRST if name not in known]],
        ).fetchall()
    facts["settings"] += [{"name": n, "value": v, "source": source} for n, v, source in rows]
    return facts


def _arm(ready: Prepared, number: int) -> dict[str, Any]:
    own = ready.arms[number]
    return {
        "name": own.arm.name,
        "description": own.arm.description,
        "sessions": ready.plan.sessions_of(own.arm),
        "rate_per_s": ready.plan.rate_of(own.arm),
        "protocol": own.protocol,
        "target": own.target.safe_dsn,
        "changes": {change.name: change.value for change in own.changes},
        "how": {change.name: change.how for change in own.changes},
        "was": {change.name: change.before for change in own.changes},
        "against": own.arm.against,
    }


def _with_own_secrets(plan: Plan) -> Plan:
    """A plan from a manifest: passwords were not kept, so libpq's own sources must give them."""

    def bare(dsn: str | None) -> str | None:
        return None if dsn is None else dsn.replace(":***@", "@").replace("password=***", "")

    arms: list[Arm] = [replace(arm, dsn=bare(arm.dsn)) for arm in plan.arms]
    return replace(plan, dsn=bare(plan.dsn), arms=arms)


def tool_version() -> str:
    """This dbdyno's version."""
    from importlib.metadata import version

    return version("dbdyno")
