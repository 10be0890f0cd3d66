"""Rehearsal of a load on two servers: answers first, then times in alternating blocks while the budget lasts.

Every statement is executed on both sides with the same values, in transactions that are rolled back. Answers and plans
are taken once per set of values. Then blocks follow: in each block both sides execute all sets of values in random
order, several times if they are short. Time goes to what weighs most and is least certain. Statements that look slower
are measured once more in fresh blocks, and only these decide: a first look at hundreds of statements always finds some
that were slower by chance.
"""

from __future__ import annotations

import contextlib
import math
import random
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from dbdyno.rehearse.answer import Answer, Difference, difference
from dbdyno.rehearse.effects import first_word, reason_left_out
from dbdyno.rehearse.order import ordered_by, undetermined
from dbdyno.rehearse.side import FailedError, Side
from dbdyno.rehearse.statement import Parameters, Statement

LEAST_BLOCKS, FIRST_BLOCKS = 3, 6
"""Number of blocks that a statement needs to be judged, and that each gets while there is time."""
CONFIRMING, CONFIRMING_MOST = 8, 40
"""Least and largest number of fresh blocks for a statement that looks slower; more than the least if there is time."""
INNER_NS = 2_000_000
"""Time that a set of values takes at least in a block, by repetition, unless there is too little time for it [ns]."""
INNER_MOST = 40
_ANSWERS_SHARE, _CONFIRM_SHARE = 0.45, 0.3
_BLOCK_SHARE, _FIRST_SHARE = 0.02, 0.3
"""Shares of the time: the most for one block, and for the first blocks of all statements together."""
_TIMED_OUT = "57014"


@dataclass(frozen=True, slots=True)
class Trial:
    """One set of values on both sides.

    Attributes:
        parameters: The values.
        old: Answer of the old side.
        new: Answer of the new side.
        difference: In what they differ.
        plans: Plans of both sides as JSON; empty if unknown.
        elapsed_ns: Time of the first executions, both sides together [ns].
    """

    parameters: Parameters
    old: Answer
    new: Answer
    difference: Difference
    plans: tuple[str, str] = ("", "")
    elapsed_ns: int = 0


@dataclass
class Rehearsed:
    """A statement with everything that was measured.

    Attributes:
        statement: The statement.
        trials: One per set of values.
        undetermined: Why its answer may differ by right; empty if it may not.
        old_ns: Time of an execution on the old side by block [ns].
        new_ns: The same on the new side.
        first_blocks: Number of blocks before the confirming ones.
        reason: Why it could not be judged; empty if it could.
        inner: How often a block executes each set of values.
        sets_most: Largest number of sets that are timed, so that a block of a slow statement does not take all time.
        inner_ns: Time that a set of values takes at least in a block, by repetition [ns].
    """

    statement: Statement
    trials: list[Trial] = field(default_factory=list)
    undetermined: str = ""
    old_ns: list[float] = field(default_factory=list)
    new_ns: list[float] = field(default_factory=list)
    first_blocks: int = 0
    reason: str = ""
    inner: list[int] = field(default_factory=list)
    sets_most: int = 1_000
    inner_ns: float = INNER_NS

    @property
    def timed(self) -> list[Parameters]:
        """Return the sets of values that succeeded on both sides and are timed: at most `sets_most`, spread evenly."""
        good = [one.parameters for one in self.trials if not one.old.sqlstate and not one.new.sqlstate]
        count = min(len(good), self.sets_most)
        return [good[(2 * at + 1) * len(good) // (2 * count)] for at in range(count)]

    @property
    def fails(self) -> Trial | None:
        """Return the first set of values that fails on the new side only."""
        return next((one for one in self.trials if one.new.sqlstate and not one.old.sqlstate), None)

    @property
    def differs(self) -> Trial | None:
        """Return the first set of values with another answer on the new side."""
        return next((one for one in self.trials if one.difference not in ("", "error")), None)


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


def rehearse(items: Sequence[Rehearsed], old: Side, new: Side, budget: Budget, dice: random.Random) -> None:
    """Execute statements on both sides; what is measured is in the items, also if it ends early.

    Raises:
        TargetError: A server broke off.
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
    _measure(ready, old, new, budget, dice)
    for item in ready:
        item.first_blocks = len(item.old_ns)
        if item.first_blocks < LEAST_BLOCKS:
            item.reason = item.reason or "there was no time for enough blocks"


def confirm(items: Iterable[Rehearsed], old: Side, new: Side, budget: Budget, dice: random.Random) -> None:
    """Measure statements that look slower in fresh blocks, so that these alone decide."""
    chosen = [item for item in items if not item.reason]
    for number in range(CONFIRMING_MOST):
        for at, item in enumerate(chosen, 1):
            if budget.stop() or (number >= CONFIRMING and budget.is_over()):
                return
            budget.show(f"confirming {at} of {len(chosen)}, block {number + 1}")
            _block(item, old, new, dice)


def unsuited(statement: Statement, volatile: Sequence[str]) -> str:
    """Return why a statement is not rehearsed; empty if it is."""
    if statement.left_out:
        return statement.left_out
    if not statement.samples:
        return "none of its executions was captured with all values"
    return reason_left_out(statement.samples[0].text, volatile) or _several(statement)


def _several(statement: Statement) -> str:
    text = statement.samples[0].text.rstrip().rstrip(";")
    if statement.samples[0].is_simple and ";" in text and ";" in statement.text.rstrip().rstrip(";"):
        return "several statements in one message"
    return ""


def _take_answers(item: Rehearsed, old: Side, new: Side) -> None:
    statement = item.statement
    item.undetermined = statement.uncompared or undetermined(statement.text)
    for parameters in statement.samples:
        try:
            with old.transaction(statement), new.transaction(statement):
                begun = time.perf_counter_ns()
                was = old.answer(parameters)
                found = new.answer(parameters)
                elapsed = time.perf_counter_ns() - begun
                if not item.undetermined and difference(was, found) and not was.sqlstate:
                    again = old.answer(parameters)
                    if difference(was, again):
                        item.undetermined = "the old server itself answers differently the second time"
                plans = (_plan(old, parameters, statement), _plan(new, parameters, statement))
        except FailedError as error:
            item.reason = f"a setting of its session is not accepted: {error}"
            return
        item.trials.append(Trial(parameters, was, found, _differs(item, was, found), plans, elapsed))
        if _TIMED_OUT in (was.sqlstate, found.sqlstate):
            break
    if all(one.old.sqlstate for one in item.trials):
        item.reason = f"it fails on the old server, too: {item.trials[0].old.message}"


def _differs(item: Rehearsed, was: Answer, found: Answer) -> Difference:
    if item.undetermined and not (was.sqlstate or found.sqlstate):
        return ""
    return difference(was, found, ordered_by(item.statement.text, was.columns))


def _plan(side: Side, parameters: Parameters, statement: Statement) -> str:
    with contextlib.suppress(FailedError):
        return side.explain(parameters)
    return ""


def _measure(items: list[Rehearsed], old: Side, new: Side, budget: Budget, dice: random.Random) -> None:
    """Give each statement its first blocks, then time to what weighs most and is least certain."""
    block_ns = 1e9 * budget.seconds * min(_BLOCK_SHARE, _FIRST_SHARE / ((FIRST_BLOCKS + 1) * max(len(items), 1)))
    for item in items:
        mean_ns = sum(one.elapsed_ns for one in item.trials) / len(item.trials)
        item.sets_most = max(1, int(block_ns / max(mean_ns, 1)))
        item.inner_ns = min(INNER_NS, block_ns / 2 / len(item.timed))
    share = 1.0 - _CONFIRM_SHARE * (1.0 - _ANSWERS_SHARE)
    for number in range(FIRST_BLOCKS + 1):
        dice.shuffle(items)
        for at, item in enumerate(items, 1):
            if budget.is_over(share):
                return
            budget.show(f"block {number} of {FIRST_BLOCKS}, statement {at} of {len(items)}")
            _block(item, old, new, dice, keep=number > 0)
    while not budget.is_over(share) and items:
        item = max(items, key=_uncertainty)
        if _uncertainty(item) <= 0:
            return
        budget.show(f"block {len(item.old_ns) + 1} of statement {item.statement.number}")
        _block(item, old, new, dice)


def _uncertainty(item: Rehearsed) -> float:
    """Return the standard error of what a statement adds to the total [ns]; 0 after many blocks."""
    count = len(item.old_ns)
    if count >= 200 or count < 2:
        return 0.0
    apart = [b - a for a, b in zip(item.old_ns, item.new_ns, strict=True)]
    return item.statement.calls * statistics.stdev(apart) / math.sqrt(count)


def _block(item: Rehearsed, old: Side, new: Side, dice: random.Random, *, keep: bool = True) -> None:
    """Execute all sets of values on both sides; the first time of each tells how often a block repeats it."""
    statement, timed = item.statement, item.timed
    first = not item.inner
    spent = {old.name: 0.0, new.name: 0.0}
    writes = first_word(statement.text) != "select"
    # Where a server process runs, beside its client or on another processor, stays so for its life and costs a short
    # statement more than the threshold. With new processes it is a matter of chance in each block.
    places = [old, new]
    dice.shuffle(places)
    try:
        for side in places:
            side.close()
            with side.transaction(statement):
                for parameters in timed:
                    side.execute(parameters)
        with old.transaction(statement), new.transaction(statement):
            for place, parameters in enumerate(timed):
                sides = [old, new]
                dice.shuffle(sides)
                found: dict[str, list[int]] = {old.name: [], new.name: []}
                for _ in range(1 if first else item.inner[place]):
                    for side in sides:
                        found[side.name].append(side.execute(parameters, undo=writes))
                if first:
                    least = min(*found[old.name], *found[new.name])
                    item.inner.append(max(1, min(INNER_MOST, round(item.inner_ns / max(least, 1)))))
                for name, times in found.items():
                    spent[name] += statistics.median(times)
    except FailedError as error:
        item.reason = f"it failed while it was timed: {error}"
        return
    if keep and timed:
        item.old_ns.append(spent[old.name] / len(timed))
        item.new_ns.append(spent[new.name] / len(timed))
