"""Rehearsal of a load on two servers: first answers, then times in alternating blocks within the budget.

Every statement is executed on both sides with the same values, in transactions that are rolled back. Answers are
collected once per set of values. Then blocks follow: in each block both sides execute all sets of values alternately,
several times if they are short. Time goes to what weighs most and is least certain. Statements that look slower are
measured once more in fresh blocks, and only these decide: a first look at hundreds of statements always finds some that
were slower by chance.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

from dbdyno.rehearse.answer import Answer, Difference, difference
from dbdyno.rehearse.decision import decide, looks_slower, prior_of
from dbdyno.rehearse.effects import OutsideEffects, has_several, reason_left_out
from dbdyno.rehearse.measuring import Bench, confirm, measure
from dbdyno.rehearse.order import determined_parts, undetermined_reason
from dbdyno.rehearse.rehearsed_statement import (
    FAILS_ON_OLD,
    LEAST_BLOCKS,
    NO_TIME_FOR_ANSWERS,
    NO_TIME_FOR_BLOCKS,
    RehearsedStatement,
    Trial,
)
from dbdyno.rehearse.side import ExecutionError, Side
from dbdyno.rehearse.statement import Parameters, Statement

_ANSWERS_SHARE, _MEASURED_SHARE, _CONFIRMED_SHARE, _LAST_SHARE = 0.45, 0.65, 0.8, 0.95
"""Shares of the time budget at which answers, first measurements, additional confirming blocks, and all blocks end.
The rest is for causes, and for the minimum number of confirming blocks if there are many."""
_TIMED_OUT = "57014"
_FAILS_ON_OLD_ALONE = "it fails on the old server, but not on the new one"


def rehearse(items: Sequence[RehearsedStatement], bench: Bench) -> None:
    """Execute the statements on both sides; measurements are stored in the items even if the rehearsal ends early.

    Raises:
        TargetError: A server closed the connection.
        StopRequested: The user asked to stop while a statement was executed.
    """
    budget = bench.budget
    todo = [item for item in items if not item.reason]
    with budget.phase("answers"):
        for at, item in enumerate(todo, 1):
            if budget.is_over(_ANSWERS_SHARE):
                item.reason = NO_TIME_FOR_ANSWERS
                continue
            budget.show(f"answers {at} of {len(todo)}")
            _take_answers(item, bench.old, bench.new)
    ready = [item for item in todo if not item.reason and item.timed_sets]
    with budget.phase("blocks"):
        measure(ready, bench, _MEASURED_SHARE)
        _confirm(ready, bench, _CONFIRMED_SHARE)
        if not any(one.word == "slower" for one in decide(items, bench.threshold)):
            # Nothing needs a cause, so that there is time for what is unclear.
            measure(ready, bench, _CONFIRMED_SHARE)
            _confirm(ready, bench, _LAST_SHARE)
    for item in ready:
        if len(item.old_ns) < LEAST_BLOCKS:
            item.reason = item.reason or NO_TIME_FOR_BLOCKS


def _confirm(items: Sequence[RehearsedStatement], bench: Bench, share: float) -> None:
    prior = prior_of(items)
    chosen = (item for item in items if item.first_blocks is None and looks_slower(item, bench.threshold, prior))
    confirm(chosen, bench, share)


def unsuited_reason(statement: Statement, outside: OutsideEffects) -> str:
    """Return why a statement cannot be rehearsed; empty if it can."""
    if statement.left_out:
        return statement.left_out
    if not statement.samples:
        return "no execution of it was captured with all its values"
    return reason_left_out(statement.samples[0].text, outside) or _several_note(statement)


def _several_note(statement: Statement) -> str:
    if any(one.is_simple and has_several(one.text) for one in statement.samples):
        return "several statements in one message"
    return ""


def _take_answers(item: RehearsedStatement, old: Side, new: Side) -> None:
    """Execute each set of values once on both sides, and store the answers and how they differ."""
    try:
        with old.transaction(item.statement), new.transaction(item.statement):
            for parameters in item.statement.samples:
                trial = _collect_answers(item, old, new, parameters)
                item.trials.append(trial)
                if _TIMED_OUT in (trial.old.sqlstate, trial.new.sqlstate):
                    break
            item.undo = item.undo or old.has_written() or new.has_written()
    except ExecutionError as error:
        item.reason = f"a setting of its session is not accepted: {error}"
        return
    if all(one.old.sqlstate for one in item.trials):
        is_both = all(one.new.sqlstate for one in item.trials)
        item.reason = f"{FAILS_ON_OLD if is_both else _FAILS_ON_OLD_ALONE}: {item.trials[0].old.message}"


def _collect_answers(item: RehearsedStatement, old: Side, new: Side, parameters: Parameters) -> Trial:
    begun = time.perf_counter_ns()
    was = old.answer(parameters)
    found = new.answer(parameters)
    elapsed = time.perf_counter_ns() - begun
    if not item.undetermined and _differs(item, was, found) not in ("", "error"):
        uncompared = item.statement.uncompared or undetermined_reason(item.statement.text)
        item.undetermined = uncompared or _changing_server(item, parameters, ((old, was), (new, found)))
    return Trial(parameters, was, found, _differs(item, was, found), elapsed_ns=elapsed)


def _changing_server(item: RehearsedStatement, parameters: Parameters, answers: Iterable[tuple[Side, Answer]]) -> str:
    """Execute a statement again, and return which server gave another answer this time; empty if none did."""
    for side, first in answers:
        if _differs(item, first, side.answer(parameters)):
            return f"the {side.name} server itself answers differently the second time"
    return ""


def _differs(item: RehearsedStatement, before: Answer, answer: Answer) -> Difference:
    if item.undetermined and not (before.sqlstate or answer.sqlstate):
        return ""
    return difference(before, answer, determined_parts(item.statement.text, before.columns))
