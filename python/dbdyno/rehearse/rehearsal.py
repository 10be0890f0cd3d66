"""Rehearsal of a load on two servers: answers first, then times in alternating blocks while the budget lasts.

Every statement is executed on both sides with the same values, in transactions that are rolled back. Answers and plans
are taken once per set of values. Then blocks follow: in each block both sides execute all sets of values in random
order, several times if they are short. Time goes to what weighs most and is least certain. Statements that look slower
are measured once more in fresh blocks, and only these decide: a first look at hundreds of statements always finds some
that were slower by chance.
"""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from dbdyno.rehearse.allocation import Allocation
from dbdyno.rehearse.answer import Answer, Difference, difference
from dbdyno.rehearse.blocks import is_quick, new_processes, run_block
from dbdyno.rehearse.effects import Outside, has_several, reason_left_out
from dbdyno.rehearse.order import determined, undetermined
from dbdyno.rehearse.rehearsed import FAILS_ON_OLD, INNER_NS, LEAST_BLOCKS, Rehearsed, Trial
from dbdyno.rehearse.side import FailedError, Side
from dbdyno.rehearse.statement import Parameters, Statement

FIRST_BLOCKS = 6
"""Number of blocks that each statement gets while there is time."""
CONFIRMING, CONFIRMING_MOST = 8, 40
"""Least and largest number of fresh blocks for a statement that looks slower; more than the least if there is time."""
_ANSWERS_SHARE, _MEASURED_SHARE, _CONFIRMED_SHARE = 0.45, 0.7, 0.85
"""Shares of the time after which answers, first looks and confirming blocks beyond the least number end; the rest of it
is for causes, and for the least number of confirming blocks where there are many."""
_BEGIN_S, _SINGLE_SHARE, _SHARING = 0.02, 0.5, 12
"""Time that new processes of both sides cost [s], the share of the time up to which each block has its own, and the
number of statements that share them otherwise."""
_BLOCK_SHARE, _FIRST_SHARE = 0.02, 0.3
"""Shares of the time: the most for one block, and for the first blocks of all statements together."""
_TIMED_OUT = "57014"
_FAILS_ON_OLD_ALONE = "it fails on the old server, and not on the new one"


@dataclass
class Budget:
    """Time of a rehearsal, and its progress.

    Attributes:
        seconds: Length of the rehearsal [s].
        show: Called with a line on the progress.
        stop: Returns True if the user asked to stop.
    """

    seconds: float
    show: Callable[[str], None] = lambda _: None
    stop: Callable[[], bool] = lambda: False
    begun: float = field(default_factory=time.monotonic)

    def start(self) -> None:
        """Begin to count."""
        self.begun = time.monotonic()

    def is_over(self, share: float = 1.0) -> bool:
        """Return True if this share of the time has passed, or the user asked to stop."""
        return self.stop() or time.monotonic() - self.begun > self.seconds * share


def rehearse(
    items: Sequence[Rehearsed], old: Side, new: Side, budget: Budget, dice: random.Random, threshold: float
) -> None:
    """Execute statements on both sides; what is measured is in the items, also if it ends early.

    `threshold` is the share by which a statement must be slower to count.

    Raises:
        TargetError: A server closed the connection.
        StopAsked: The user asked to stop while a statement was executed.
    """
    todo = [item for item in items if not item.reason]
    for at, item in enumerate(todo, 1):
        if budget.is_over(_ANSWERS_SHARE):
            item.reason = "there was no time for it"
            continue
        budget.show(f"answers {at} of {len(todo)}")
        _take_answers(item, old, new)
    ready = [item for item in todo if not item.reason and item.timed]
    _measure(ready, old, new, budget, dice, threshold)
    for item in ready:
        item.first_blocks = len(item.old_ns)
        if item.first_blocks < LEAST_BLOCKS:
            item.reason = item.reason or "there was no time for enough blocks"


def confirm(items: Iterable[Rehearsed], old: Side, new: Side, budget: Budget, dice: random.Random) -> None:
    """Measure statements that look slower in fresh blocks, so that these alone decide; the heaviest first."""
    chosen = sorted((item for item in items if not item.reason), key=lambda item: -item.statement.total_ns)
    for number in range(CONFIRMING_MOST):
        for at, item in enumerate(chosen, 1):
            if budget.is_over(_CONFIRMED_SHARE if number >= CONFIRMING else 1.0):
                return
            budget.show(f"confirming {at} of {len(chosen)}, block {number + 1}")
            run_block(item, old, new, dice, new_processes(old, new), is_first=True)


def unsuited(statement: Statement, outside: Outside) -> str:
    """Return why a statement is not rehearsed; empty if it is."""
    if statement.left_out:
        return statement.left_out
    if not statement.samples:
        return "none of its executions was captured with all values"
    return reason_left_out(statement.samples[0].text, outside) or _several(statement)


def _several(statement: Statement) -> str:
    if any(one.is_simple and has_several(one.text) for one in statement.samples):
        return "several statements in one message"
    return ""


def _take_answers(item: Rehearsed, old: Side, new: Side) -> None:
    statement = item.statement
    uncompared = statement.uncompared or undetermined(statement.text)
    for parameters in statement.samples:
        try:
            with old.transaction(statement), new.transaction(statement):
                begun = time.perf_counter_ns()
                was = old.answer(parameters)
                found = new.answer(parameters)
                elapsed = time.perf_counter_ns() - begun
                if not item.undetermined and _differs(item, was, found) not in ("", "error"):
                    item.undetermined = uncompared or _changing(item, parameters, ((old, was), (new, found)))
                plans = (_plan(old, parameters, statement), _plan(new, parameters, statement))
        except FailedError as error:
            item.reason = f"a setting of its session is not accepted: {error}"
            return
        item.trials.append(Trial(parameters, was, found, _differs(item, was, found), plans, elapsed))
        if _TIMED_OUT in (was.sqlstate, found.sqlstate):
            break
    if all(one.old.sqlstate for one in item.trials):
        is_both = all(one.new.sqlstate for one in item.trials)
        item.reason = f"{FAILS_ON_OLD if is_both else _FAILS_ON_OLD_ALONE}: {item.trials[0].old.message}"


def _changing(item: Rehearsed, parameters: Parameters, answers: Iterable[tuple[Side, Answer]]) -> str:
    """Return which server answers differently the second time; empty if none does."""
    for side, first in answers:
        if _differs(item, first, side.answer(parameters)):
            return f"the {side.name} server itself answers differently the second time"
    return ""


def _differs(item: Rehearsed, was: Answer, found: Answer) -> Difference:
    if item.undetermined and not (was.sqlstate or found.sqlstate):
        return ""
    return difference(was, found, determined(item.statement.text, was.columns))


def _plan(side: Side, parameters: Parameters, statement: Statement) -> str:
    with contextlib.suppress(FailedError):
        return side.explain(parameters)
    return ""


def _measure(
    items: list[Rehearsed], old: Side, new: Side, budget: Budget, dice: random.Random, threshold: float
) -> None:
    """Give each statement its first blocks, then time to what weighs most and to what is nearly certain."""
    block_ns = 1e9 * budget.seconds * min(_BLOCK_SHARE, _FIRST_SHARE / ((FIRST_BLOCKS + 1) * max(len(items), 1)))
    for item in items:
        mean_ns = sum(one.elapsed_ns for one in item.trials) / len(item.trials)
        item.sets_most = max(1, int(block_ns / max(mean_ns, 1)))
        item.inner_ns = min(INNER_NS, block_ns / 2 / len(item.timed))
    share = _MEASURED_SHARE
    sharing = _sharing(len(items), block_ns, budget)
    for number in range(FIRST_BLOCKS + 1):
        dice.shuffle(items)
        processes = 0
        # Block 0 warms up and finds how often a block repeats each set of values: slow statements are not repeated.
        chosen = items if number else [item for item in items if is_quick(item)]
        for at, item in enumerate(chosen):
            if budget.is_over(share):
                return
            budget.show(f"block {number} of {FIRST_BLOCKS}, statement {at + 1} of {len(chosen)}")
            if is_first := at % sharing == 0:
                processes = new_processes(old, new)
            run_block(item, old, new, dice, processes, is_first=is_first, keep=number > 0)
    _make_certain(items, old, new, budget, dice, Allocation(items, threshold), share, sharing)


def _make_certain(
    items: list[Rehearsed],
    old: Side,
    new: Side,
    budget: Budget,
    dice: random.Random,
    allocation: Allocation,
    share: float,
    sharing: int,
) -> None:
    """Spend the time that is left on the total, and on statements that are nearly certain, in turn."""
    is_for_total = True
    while not budget.is_over(share) and items:
        heaviest = allocation.heaviest() if is_for_total else None
        chosen = [heaviest] if heaviest is not None else allocation.nearest(sharing)
        if not chosen:
            heaviest = allocation.heaviest()
            if heaviest is None:
                return
            chosen = [heaviest]
        is_for_total = not is_for_total
        processes = new_processes(old, new)
        for at, item in enumerate(chosen):
            budget.show(f"block {len(item.old_ns) + 1} of statement {item.statement.number}")
            run_block(item, old, new, dice, processes, is_first=at == 0)


def _sharing(count: int, block_ns: float, budget: Budget) -> int:
    """Return the number of statements whose blocks share a pair of server processes; 1 if there is time for that."""
    whole_s = count * (FIRST_BLOCKS + 1) * (block_ns / 1e9 + _BEGIN_S)
    return 1 if whole_s < _SINGLE_SHARE * budget.seconds else _SHARING
