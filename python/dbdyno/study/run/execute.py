"""Execution of a plan on its bench, from the first check to the final restore, and resumption of runs."""

from __future__ import annotations

import contextlib
import platform
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbdyno.base import escaping
from dbdyno.base.errors import Error, EvidenceError, PlanError
from dbdyno.base.json_types import JsonObject
from dbdyno.base.signals import Interrupted, StopSignals
from dbdyno.base.version import VERSION
from dbdyno.bench.clients.process import ClientLostError
from dbdyno.bench.engine.volumes import check_volumes
from dbdyno.bench.kinds import kind_named, kind_of, target_usages
from dbdyno.bench.protocol import BenchContext
from dbdyno.evidence.run import Run, new_run, this_process
from dbdyno.evidence.seal import is_own_plan
from dbdyno.evidence.trust import refuse_foreign
from dbdyno.study.plan.hosts import host_side_effects
from dbdyno.study.plan.plan import Plan, plan_from_dict
from dbdyno.study.plan.targets import STARTABLE_ENGINES
from dbdyno.study.run.progress import SilentProgress
from dbdyno.study.run.runner import BLOCK_TRIES, Runner

if TYPE_CHECKING:
    from dbdyno.bench.protocol import Bench, RunLayout
    from dbdyno.study.run.progress import Progress

Agree = Callable[[str], bool]
"""Function that shows a page of what would be done to other systems, and asks the user to agree."""


RACE_NOT_RESUMED = "a stopped race cannot continue: which arms are still in depends on all earlier blocks"


def aa_plan(plan: Plan) -> Plan:
    """Return a plan that compares the base arm with itself, for `--aa`."""
    base = plan.arms[0]
    twin = replace(base, name=f"{base.name} again"[:60])
    return replace(plan, kind="aa", title=f"A/A {plan.title}", arms=[base, twin])


def start(
    plan: Plan,
    folder: Path,
    progress: Progress | None = None,
    *,
    seed: int | None = None,
    ways: Mapping[str, Any] | None = None,
    agree: Agree | None = None,
    runner: Callable[..., Runner] = Runner,
) -> Run:
    """Run a plan in a new run folder below `folder`, and return the run, ready to be analysed.

    If a client of a sweep fails or hangs repeatedly, the study starts again without that client; the evidence recorded
    until then is kept.

    Args:
        plan: The plan.
        folder: Folder of runs.
        progress: Receiver of the progress; None to show nothing.
        seed: Seed of the random order; None for a new one.
        ways: Options for reaching the bench.
        agree: Function that asks the user to agree.
        runner: Class that runs the blocks.

    Raises:
        Interrupted: A signal arrived; everything is restored and the run is marked as aborted.
    """
    progress = progress or SilentProgress()
    while True:
        try:
            return _start(plan, folder, progress, seed, ways, agree, runner)
        except ClientLostError as lost:
            rest = without_client(plan, lost)
            if rest is None:
                raise
            progress.note(f"{lost.message}; the study starts again without it")
            plan, agree = rest, None


def _start(
    plan: Plan,
    folder: Path,
    progress: Progress,
    seed: int | None,
    ways: Mapping[str, Any] | None,
    agree: Agree | None,
    runner: Callable[..., Runner],
) -> Run:
    with contextlib.ExitStack() as stack:
        around = stack.enter_context(workers_on_plan_hosts(plan, _circumstances(stack, folder, progress, ways)))
        bench = stack.enter_context(hold_bench(open_bench(plan, around)))
        around.stopping.on_ask = bench.stop
        ready = bench.prepare(seed)
        _ask(bench, agree, around.stopping)
        around.stopping.check()
        run = new_run(folder, plan.title, manifest(bench, ready))
        progress.note(f"seed {ready.seed}; evidence in {run.path}")
        for note in ready.notes:
            progress.note(note)
        _carry_out(run, bench, ready, around.stopping, progress, runner)
    return run


def without_client(plan: Plan, error: ClientLostError) -> Plan | None:
    """Return a sweep without the arms of the lost client; None if nothing is left to compare."""
    if plan.kind != "sweep" or error.arm is None:
        return None
    client = plan.arms[error.arm].client
    left = [arm for arm in plan.arms if arm.client != client]
    gone = {arm.name for arm in plan.arms if arm.client == client}
    if len(left) < 2 or plan.arms[0].name in gone or any(arm.against in gone for arm in left):
        return None
    told = f" Left out, since it was lost in {BLOCK_TRIES} tries: {escaping.escape_line(error.message, 200)}."
    return replace(plan, arms=left, question=plan.question + told)


def resume(
    run: Run,
    progress: Progress | None = None,
    *,
    target: str | None = None,
    ways: Mapping[str, Any] | None = None,
    agree: Agree | None = None,
    agreed: bool = False,
) -> Run:
    """Run the missing blocks of an aborted run, after another warm-up if its bench requires it.

    Args:
        run: The aborted run.
        progress: Receiver of the progress; None to show nothing.
        target: Target to use instead of the run's own.
        ways: Options for reaching the bench.
        agree: Function that asks the user to agree.
        agreed: True if the user has agreed to the plan, after seeing what `side_effects` returns.

    Raises:
        PlanError: The plan may be from somebody else and the user has not agreed to it, or the run cannot be resumed.
    """
    progress = progress or SilentProgress()
    plan = plan_to_resume(run)
    if not agreed and side_effects(run, target):
        raise PlanError(
            "was made elsewhere or changed, and its plan was not confirmed",
            where=run.id,
            next_step="read its manifest.json, then run `dbdyno run --resume`, which shows what it would do and "
            "asks first",
        )
    with contextlib.ExitStack() as stack:
        around = replace(_circumstances(stack, run.path.parent, progress, ways), cut=run, target=target)
        around = stack.enter_context(workers_on_plan_hosts(plan, around))
        bench = stack.enter_context(hold_bench(open_bench(plan, around)))
        around.stopping.on_ask = bench.stop
        ready = bench.prepare(int(run.manifest.seed))
        _ask(bench, agree, around.stopping)
        around.stopping.check()
        run.drop_leftovers()
        times = [*run.manifest.resumed, len(run.blocks())]
        run.save(status="running", process=this_process(), resumed=times)
        _carry_out(run, bench, ready, around.stopping, progress)
    return run


def plan_to_resume(run: Run) -> Plan:
    """Return the plan of an interrupted run.

    Raises:
        PlanError: The run cannot be resumed.
        EvidenceError: The run was made on another bench than its plan names, or belongs to somebody else.
    """
    refuse_ended(run)
    if not run.manifest.has("plan"):
        raise PlanError(
            f"is a run of {run.manifest.kind} without a plan; it cannot be resumed",
            where=run.id,
            next_step="start a new run; the complete blocks of this one stay readable",
        )
    plan, kind = plan_from_dict(run.manifest.plan), kind_named(run.manifest.bench)
    if kind_of(plan.dsn) is not kind:
        raise EvidenceError(
            f"was made on {kind.word}, but its plan names {kind_of(plan.dsn).word}",
            where=run.id,
            next_step="start a new run",
        )
    if reason := RACE_NOT_RESUMED if plan.kind == "tune" else kind.load_bench().traits.refuses_resume:
        raise PlanError(
            reason,
            where=run.id,
            next_step="start a new run; the complete blocks of this one stay readable",
        )
    if run.manifest.plan.get("secrets_left_out"):
        raise PlanError(
            "cannot be resumed: its SQL contained secrets, which were not kept",
            where=run.id,
            next_step="run the plan again from its file",
        )
    return plan


def side_effects(run: Run, target: str | None = None) -> list[str]:
    """Return sentences on what resuming a run would do, as its folder says, so that the user can agree.

    The result is empty if this user made the run with this plan.
    """
    if is_own_plan(run.manifest.plan, run.manifest.seal):
        return []
    plan = plan_from_dict(run.manifest.plan)
    return kind_of(plan.dsn).load_bench().side_effects(plan, target) + host_side_effects(plan)


def refuse_ended(run: Run) -> None:
    """Raise an error for a run that is complete or still running.

    Raises:
        PlanError: The run is complete or running.
        EvidenceError: The run belongs to somebody else.
    """
    refuse_foreign(run.path)
    if run.status == "complete":
        raise PlanError(
            "is complete, so there is nothing to resume",
            where=run.id,
            next_step="see its result with `dbdyno report`, or start a new run",
        )
    if run.status == "running":
        raise PlanError("is still running", where=run.id, next_step="wait until the run has ended, or stop it")


def open_bench(plan: Plan, around: BenchContext) -> Bench:
    """Return the bench that a plan names.

    Raises:
        PlanError: The bench cannot run the plan.
    """
    kind = kind_of(plan.dsn)
    if around.ways.get("workers") is not None:
        refuse_single_host_bench(plan)
    bench = kind.load_bench()(plan, around)
    reason = bench.refusal(plan)
    if reason is None and not bench.traits.lines and any(map(plan.network_of, plan.arms)):
        reason = "it gives a network, but it has no sessions that could use one"
    if reason is None and any(map(plan.device_of, plan.arms)):
        reason = _without_devices(plan, bench)
    if reason is None and plan.workload.replay and not bench.traits.replays:
        reason = "its workload is a captured run of PostgreSQL"
    if reason is None and bench.traits.no_errors and plan.workload.expects_errors():
        reason = f"it has expected_errors, and {bench.traits.no_errors}"
    if reason:
        raise PlanError(
            f"{kind.word} cannot run this plan: {reason}",
            where=plan.study or plan.title,
            next_step=f"name another target: --target {', --target '.join(target_usages(kind))}",
        )
    return bench


def refuse_single_host_bench(plan: Plan) -> None:
    """Raise `PlanError` if the bench of a plan cannot be spread over many hosts."""
    kind = kind_of(plan.dsn)
    if not kind.load_bench().traits.spreads:
        raise PlanError(
            f"{kind.word} cannot be spread over many hosts",
            where=plan.study or plan.title,
            next_step="leave --scheduler, --hosts and the plan's hosts out",
        )


@contextlib.contextmanager
def workers_on_plan_hosts(plan: Plan, around: BenchContext) -> Iterator[BenchContext]:
    """Yield the bench context; its workers are on the plan's hosts unless the context already has workers.

    Raises:
        PlanError: The bench cannot be spread over hosts.
        TargetError: A host cannot be reached.
    """
    if not plan.hosts or around.ways.get("workers") is not None:
        yield around
        return
    from dbdyno.cells.hosts import hosts_of
    from dbdyno.hosts.workers import open_workers

    refuse_single_host_bench(plan)
    before, around.stopping.on_ask = around.stopping.on_ask, _interrupt
    with contextlib.ExitStack() as stack:
        try:
            workers = stack.enter_context(open_workers(hosts=hosts_of(plan.hosts)))
        finally:
            around.stopping.on_ask = before
        yield replace(around, ways={**around.ways, "workers": workers})


def _without_devices(plan: Plan, bench: Bench) -> str | None:
    """Return why the servers of a plan cannot be on modelled devices, or None if they can."""
    others = [arm.dsn or plan.dsn for arm in plan.arms if plan.device_of(arm) and arm.server is None]
    if not bench.traits.devices or any(dsn not in (None, *STARTABLE_ENGINES) for dsn in others):
        return "it names a device, but only servers that dbdyno starts can use one"
    for arm in plan.arms:
        check_volumes(plan.device_of(arm))
    return None


@contextlib.contextmanager
def hold_bench(bench: Bench) -> Iterator[Bench]:
    """Yield a bench, and restore it at the end, also after an error."""
    try:
        yield bench
    finally:
        bench.restore()


@contextlib.contextmanager
def record_ending(run: Run) -> Iterator[None]:
    """Record in the run how its blocks ended: complete, or aborted with the reason."""
    try:
        yield
    except (Interrupted, KeyboardInterrupt, Error) as error:
        word = error.message if isinstance(error, Error) else "interrupted"
        with contextlib.suppress(Error):
            run.save(status="aborted", ended=word)
        raise
    run.save(status="complete", ended="all blocks run")


def manifest(bench: Bench, ready: RunLayout) -> JsonObject:
    """Return the initial manifest of a run on any bench."""
    plan, how, facts = ready.plan, ready.timing, bench.facts()
    return {
        "tool_version": tool_version(),
        "python": platform.python_version(),
        "title": plan.title,
        "question": plan.question,
        "kind": plan.kind,
        "study": plan.study,
        "seed": ready.seed,
        "bench": kind_of(plan.dsn).name,
        "reads": facts.reads.to_json(),
        "switch": how.switch,
        "switch_reason": ready.reason,
        "notes": list(ready.notes),
        "slice_ns": how.slice_ns if how.in_slices else None,
        "turn_ns": how.turn_ns,
        "blocks_planned": sum(block.kind == "measure" for block in ready.blocks),
        "arms": facts.arms,
        "targets": facts.targets,
        **facts.own,
        "plan": plan.to_dict(),
    }


def tool_version() -> str:
    """Return the version of this dbdyno."""
    return VERSION


def _circumstances(
    stack: contextlib.ExitStack, folder: Path, progress: Progress, ways: Mapping[str, Any] | None
) -> BenchContext:
    from dbdyno.bench.guardian import Guardian

    stopping = stack.enter_context(StopSignals())
    guardian = stack.enter_context(Guardian())
    return BenchContext(stopping, guardian, folder, progress.note, ways or {})


def _ask(bench: Bench, agree: Agree | None, stopping: StopSignals) -> None:
    """Ask the user to agree if the bench changes systems outside dbdyno; a signal cancels the question at once.

    Raises:
        Declined: The user does not agree.
    """
    if not bench.traits.asks or agree is None:
        return
    before, stopping.on_ask = stopping.on_ask, _interrupt
    try:
        if not agree(bench.describe()):
            raise Declined
    finally:
        stopping.on_ask = before


def _interrupt() -> None:
    raise KeyboardInterrupt


class Declined(Exception):  # noqa: N818
    """The user did not agree to what would be done; nothing was done."""


def _carry_out(
    run: Run,
    bench: Bench,
    ready: RunLayout,
    stopping: StopSignals,
    progress: Progress,
    runner: Callable[..., Runner] = Runner,
) -> None:
    """Run the missing blocks; everything is restored before the run is marked as complete."""
    whole = {block.index for block in run.blocks()}
    again = whole and bench.traits.warms_up_again
    todo = [block for block in ready.blocks if block.index not in whole or (again and block.kind == "warmup")]
    predictable = bench.traits.predictable and ready.timing.turn_ns is not None  # else the turns have no fixed length
    seconds = ready.seconds() * len(todo) / len(ready.blocks) or None if predictable else None
    progress.begin(run.id, len(ready.blocks), len(ready.blocks) - len(todo), seconds)
    try:
        with record_ending(run), hold_bench(bench):
            bench.begin(run, len(run.manifest.resumed))
            runner(bench, ready, run, stopping, progress).run_blocks(todo)
    finally:
        progress.end()
