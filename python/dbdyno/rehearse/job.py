"""A rehearsal from the load to the model of its page; all measurements are kept in a run folder."""

from __future__ import annotations

import contextlib
import functools
import random
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from dbdyno.base.errors import TargetError
from dbdyno.base.json_types import JsonObject
from dbdyno.bench.postgres.session import StopRequested
from dbdyno.evidence.files import write_json
from dbdyno.evidence.query import REHEARSAL
from dbdyno.evidence.run import Run, new_run
from dbdyno.rehearse import causes as found_causes
from dbdyno.rehearse.budget import Budget
from dbdyno.rehearse.catalog import Catalog, read_catalog
from dbdyno.rehearse.cause import NO_TIME, Cause, CauseContext
from dbdyno.rehearse.causes import read_plan, worst_trial
from dbdyno.rehearse.decision import Decision, decide, total
from dbdyno.rehearse.distance import subtract_distance, subtract_waits, waits_note
from dbdyno.rehearse.effects import OutsideEffects, may_change
from dbdyno.rehearse.evidence import write_evidence
from dbdyno.rehearse.measuring import Bench
from dbdyno.rehearse.model import PLANNED_MOST, model_of
from dbdyno.rehearse.names import search_path
from dbdyno.rehearse.outside_effects import read_outside_effects
from dbdyno.rehearse.plans import collect_plans, execute_plans, use_up_custom_plans
from dbdyno.rehearse.rehearsal import rehearse, unsuited_reason
from dbdyno.rehearse.rehearsed_statement import RehearsedStatement
from dbdyno.rehearse.replay.summary import outcome_of
from dbdyno.rehearse.replay.turns import open_player, replay_both
from dbdyno.rehearse.request import Request
from dbdyno.rehearse.setting_trials import OutOfTimeError, TrialTimes
from dbdyno.rehearse.shortage import shortage_of
from dbdyno.rehearse.side import ExecutionError, Side
from dbdyno.rehearse.statement import Load, Statement
from dbdyno.rehearse.verdict import judge, with_replay

_FIRST_CAUSE, _FIRST_CAUSE_S = 0.5, 20
"""Extra time for finding the first cause: as a share of the budget, and at least this many seconds."""
_SHORT_NS = 5_000_000
"""Time below which a trial of a setting executes each set of values three times [ns]."""
_PLANS_MOST = 60
"""Maximum number of statements whose plans are executed to find causes."""


def run_rehearsal(load: Load, old: Side, new: Side, request: Request, budget: Budget) -> tuple[Run, JsonObject]:
    """Rehearse a load and return the run with the model of its page.

    Raises:
        TargetError: A server closed the connection (the run has what was measured until then), a replay is not possible
            on it, or the new server has no tables.
        EvidenceError: The run cannot be written.
    """
    sides = old, new
    player = open_player(request.replay, sides, budget.show, budget.stop) if request.replay else None
    catalogs = read_catalog(old.server, old.settings), read_catalog(new.server, new.settings)
    _refuse_empty(new, catalogs)
    outside = read_outside_effects(old.server, new.server, allowed=request.allowed)
    load = replace(load, statements=[replace(one, left_out=unsuited_reason(one, outside)) for one in load.statements])
    apart = subtract_distance(old, new)
    subtract_waits(old, new)
    load = replace(load, notes=(*load.notes, *old.notes, *new.notes, *_unread(catalogs), *([apart] if apart else [])))
    run = new_run(
        request.out,
        request.title,
        {
            "kind": REHEARSAL,
            "title": request.title,
            "seed": request.seed,
            "targets": {side.name: side.server.facts() for side in (old, new)},
        },
    )
    dice = random.Random(request.seed)
    items = [RehearsedStatement(one, reason=one.left_out, undo=_may_change(one, outside)) for one in load.statements]
    causes: dict[int, Cause] = {}
    try:
        with contextlib.suppress(StopRequested):
            rehearse(items, Bench(old, new, budget, dice, request.threshold))
            causes = _explain_changes(decide(items, request.threshold), old, new, catalogs, budget)
    except BaseException:
        run.save(status="aborted")
        raise
    finally:
        write_evidence(run.path, items)
    decisions = decide(items, request.threshold)
    if count := sum(cause is NO_TIME for cause in causes.values()):
        note = f"There was no time to look for the cause of {count} slower statements: give more time (--for)."
        load = replace(load, notes=(*load.notes, note))
    if note := waits_note(old, new):
        load = replace(load, notes=(*load.notes, note))
    whole = total(decisions)
    name = _name(new, catalogs, request.change)
    verdict = judge(decisions, whole, causes, name, request.threshold, shortage_of(items, budget))
    outcome = outcome_of(replay_both(player, sides, dice), name) if player and not budget.stop() else None
    if outcome is not None:
        verdict = with_replay(verdict, outcome.sentences, is_worse=outcome.is_worse)
    status = "aborted" if budget.stop() else "complete"
    run.save(status=status, verdict={"word": verdict.word, "headline": verdict.headline, "decision": verdict.decision})
    model = model_of(
        run, load, decisions, whole, verdict, causes, catalogs, request, outcome.model if outcome else None
    )
    write_json(run.path / "analysis.json", model)
    return run, model


def _refuse_empty(new: Side, catalogs: tuple[Catalog, Catalog]) -> None:
    """Refuse a new side without tables: every statement would fail there.

    Raises:
        TargetError: Only the old side has tables.
    """
    old, found = catalogs
    if old.relations and not (found.relations or found.unread):
        raise TargetError(
            f"has no tables, but the old side has {len(old.relations)}",
            where=new.server.safe_dsn,
            next_step="copy the old database to it with `dbdyno move OLD NEW --database`, then rehearse",
        )


def _unread(catalogs: tuple[Catalog, Catalog]) -> Iterator[str]:
    for side, one in zip(("old", "new"), catalogs, strict=True):
        if one.unread:
            yield f"Could not be read on the {side} side, so that no cause is found there: {', '.join(one.unread)}."


def _may_change(statement: Statement, outside: OutsideEffects) -> bool:
    return any(may_change(one.text, outside.volatile) for one in statement.samples)


def _name(new: Side, catalogs: tuple[Catalog, Catalog], change: Sequence[str]) -> str:
    if change:
        return f"With {change[0]}, the load" if len(change) == 1 else f"With {len(change)} changes, the load"
    if catalogs[0].major != catalogs[1].major:
        return f"PostgreSQL {catalogs[1].major}"
    return "The new side"


def _explain_changes(
    decisions: list[Decision],
    old: Side,
    new: Side,
    catalogs: tuple[Catalog, Catalog],
    budget: Budget,
) -> dict[int, Cause]:
    """Execute changed statements to get their plans; return the cause for each worse statement, by its number.

    Slower statements come before faster ones, the heaviest first. For the first one, the time budget may be exceeded by
    half, or by 20 s if that is longer. For statements that are reached after the end of the time, the cause says that
    there was no time.
    """
    causes: dict[int, Cause] = {}
    order = sorted(decisions, key=lambda one: (one.word == "faster", -abs(one.added_ns)))
    more = max(_FIRST_CAUSE, _FIRST_CAUSE_S / budget.seconds)
    run = 0
    moved = [one for one in order if one.word in ("fails", "differs", "slower", "faster")]
    for at, one in enumerate(moved):
        if at < PLANNED_MOST and not budget.stop():
            collect_plans(one.item, old, new)
    for one in moved:
        number = one.item.statement.number
        is_over = functools.partial(budget.is_over, 1.0 + more if run == 0 else 1.0)
        if budget.stop():
            break
        if one.word in ("slower", "faster"):
            if is_over():
                causes |= {number: NO_TIME} if one.word == "slower" else {}
                continue
            if run < _PLANS_MOST:
                budget.show(f"plans of statement {number}")
                run += 1
                execute_plans(one.item, old, new)
        if (cause := _cause(one, new, catalogs, is_over)) is not None:
            causes[number] = cause
    return causes


def _cause(
    decision: Decision, new: Side, catalogs: tuple[Catalog, Catalog], is_over: Callable[[], bool]
) -> Cause | None:
    statement = decision.item.statement
    text = statement.text
    path = search_path(statement.settings, catalogs[0].settings.get("search_path", ""), statement.user)
    grounds = CauseContext(*catalogs, path=path)
    if (failed := decision.item.failing_trial) is not None:
        return found_causes.cause_of_failure(text, failed, grounds)
    if (differing := decision.item.differing_trial) is not None:
        return found_causes.cause_of_answer(text, differing, grounds)
    if decision.word != "slower":
        return None
    trial = decision.item.trials[worst_trial(decision.item)]
    plans = tuple(read_plan(plan) if plan else None for plan in trial.plans)
    grounds = replace(grounds, plans=(plans[0], plans[1]))
    return found_causes.cause_of_slowness(
        decision, grounds, functools.partial(_try_setting, decision.item, new, is_over)
    )


def _try_setting(
    item: RehearsedStatement, new: Side, is_over: Callable[[], bool], name: str, value: str, rounds: int
) -> TrialTimes | None:
    """Return the times on the new side without and with a changed setting [ns], or None if it cannot be set.

    Raises:
        OutOfTimeError: The time is over.
    """
    found: tuple[list[float], list[float]] = ([], [])
    ways: list[tuple[tuple[str, ...], list[float]]] = [((), found[0]), ((_set_local(name, value),), found[1])]
    for _ in range(rounds):
        for more, times in ways:
            if is_over():
                raise OutOfTimeError
            try:
                times.append(_mean_ns(item, new, more))
            except ExecutionError:
                return None
        ways.reverse()  # Neither way is always the second one.
    return found


def _mean_ns(item: RehearsedStatement, new: Side, settings: tuple[str, ...]) -> float:
    """Return the mean time on the new side over the sets of values [ns]; short ones are executed several times."""
    is_prepared = item.timed_sets[0].is_prepared
    if is_prepared:
        new.close()  # A generic plan that this session has would outlive the change of a setting.
    with new.transaction(item.statement, *settings):
        first_ns = new.execute(item.timed_sets[0])
        if is_prepared:
            use_up_custom_plans(item, new)
        repeats = 3 if first_ns < _SHORT_NS else 1
        return statistics.fmean(
            statistics.median(new.execute(parameters) for _ in range(repeats)) for parameters in item.timed_sets
        )


def _set_local(name: str, value: str) -> str:
    """Return the command that sets one of `TRIED_SETTINGS` to the old server's value."""
    quoted = value.replace("'", "''")
    return f"set local {name} = '{quoted}'"
