"""Plans, trials of settings and time for them, on sides that answer from a table."""

from __future__ import annotations

import contextlib
import math
import random
import statistics
from collections.abc import Callable, Iterator
from typing import cast

import pytest

from dbdyno.rehearse import job
from dbdyno.rehearse.answer import Answer
from dbdyno.rehearse.budget import Budget
from dbdyno.rehearse.catalog import Catalog
from dbdyno.rehearse.cause import NO_TIME, Cause
from dbdyno.rehearse.decision import Decision
from dbdyno.rehearse.measuring import Bench, confirm
from dbdyno.rehearse.plans import execute_plans
from dbdyno.rehearse.rehearsed_statement import RehearsedStatement, Trial
from dbdyno.rehearse.setting_trials import TRIED_SETTINGS
from dbdyno.rehearse.side import ExecutionError, Side, explain_command
from dbdyno.rehearse.statement import Parameters, Statement


class Told:
    """A side with a given plan, whose execution times `time_ns` computes from the transaction's settings."""

    def __init__(self, name: str, plan: str = "", time_ns: Callable[[tuple[str, ...]], int] = lambda _: 1) -> None:
        self.name, self.plan, self.time_ns = name, plan, time_ns
        self.more: tuple[str, ...] = ()
        self.executions = 0

    @contextlib.contextmanager
    def transaction(self, statement: Statement, *more: str) -> Iterator[None]:
        self.more = more
        yield

    def execute(self, parameters: Parameters, *, undo: bool = True) -> int:
        self.executions += 1
        return self.time_ns(self.more)

    def explain(self, parameters: Parameters, *, run: bool = False) -> str:
        if not self.plan:
            raise ExecutionError("42601", 'unrecognized EXPLAIN option "wal"')
        return self.plan if run else "[1]" if self.name == "old" else "[2]"

    def close(self) -> None: ...


def sides(old: Told, new: Told) -> tuple[Side, Side]:
    return cast(Side, old), cast(Side, new)


def statement(number: int = 1) -> RehearsedStatement:
    item = RehearsedStatement(Statement(number, f"select {number}", calls=1, total_ns=1))
    item.trials = [Trial(Parameters(f"select {number}"), Answer(), Answer(), "", ("[1]", "[2]"))]
    return item


@pytest.mark.parametrize(("version", "lacking"), [(110_000, {"settings", "wal"}), (120_000, {"wal"}), (180_000, set())])
def test_explain_has_the_options_of_the_version(version: int, lacking: set[str]) -> None:
    words = set(explain_command(version, run=True).removeprefix("explain (").removesuffix(")").split(", "))
    assert {"settings", "wal"} - words == lacking
    assert {"analyze", "buffers", "verbose"} <= words
    assert "analyze" not in explain_command(version, run=False)


def test_a_side_that_refuses_explain_does_not_take_the_other_sides_plan_away() -> None:
    item = statement()
    execute_plans(item, *sides(Told("old"), Told("new", "[3]")))
    assert item.trials[0].plans == ("[1]", "[3]")


def noisy(dice: random.Random, faster_with: str = "", by: float = 1.0) -> Callable[[tuple[str, ...]], int]:
    """Return a function of times of about 2 ms that vary by 20 %, smaller by a factor with one setting."""

    def time_ns(more: tuple[str, ...]) -> int:
        factor = by if faster_with and any(faster_with in one for one in more) else 1.0
        return round(2e6 * factor * math.exp(dice.gauss(0, 0.2)))

    return time_ns


def slower(item: RehearsedStatement, old_ns: float = 1.7e6, new_ns: float = 2e6) -> Decision:
    return Decision(item, "slower", new_ns / old_ns, 1.1, 1.3, old_ns, new_ns, new_ns - old_ns)


NAMES = TRIED_SETTINGS[:20]
OLD = Catalog(150000, settings=dict.fromkeys(NAMES, "1"))
NEW = Catalog(150000, settings=dict.fromkeys(NAMES, "2"))


def cause_with(new: Told, is_over: Callable[[], bool] = lambda: False) -> Cause | None:
    return job._cause(slower(statement()), cast(Side, new), (OLD, NEW), is_over)


def test_no_setting_of_many_is_the_cause_by_chance() -> None:
    found = [cause_with(Told("new", time_ns=noisy(random.Random(seed)))) for seed in range(40)]
    assert sum(one is not None for one in found) <= 2, "of 40 statements, each with 20 settings tried"


def test_the_setting_that_takes_the_difference_back_is_the_cause() -> None:
    for seed in range(10):
        cause = cause_with(Told("new", time_ns=noisy(random.Random(seed), "set local jit =", 0.5)))
        assert cause is not None and cause.sentence == "jit is 2 and was 1"


def test_a_trial_alternates_the_changed_setting_with_the_unchanged_one() -> None:
    drift = iter(range(10**6))
    new = Told("new", time_ns=lambda more: 1_000_000 + 20_000 * next(drift))
    tried = job._try_setting(statement(), cast(Side, new), lambda: False, "jit", "off", 6)
    assert tried is not None
    unchanged, changed = map(statistics.fmean, tried)
    assert changed / unchanged == pytest.approx(1, abs=0.02), "what drifts meanwhile is no effect of the setting"


def test_trials_end_with_the_time_and_say_so() -> None:
    new = Told("new")
    cause = cause_with(new, is_over=lambda: new.executions > 30)
    assert cause == NO_TIME
    assert new.executions < 60, "not all of 20 settings"


def test_causes_end_with_the_time_the_heaviest_statement_first(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("dbdyno.rehearse.budget.time.monotonic", lambda: now[0])
    budget = Budget(100, begun=0.0)

    def time_ns(more: tuple[str, ...]) -> int:
        now[0] += 1.0
        return 2_000_000

    now[0] = 99.0
    decisions = [slower(statement(number), 1e6, 2e6 * number) for number in (1, 2, 3)]
    new = Told("new", "[3]", time_ns)
    found = job._explain_changes(decisions, *sides(Told("old", "[1]"), new), (OLD, NEW), budget)
    assert found == {1: NO_TIME, 2: NO_TIME, 3: NO_TIME}
    assert [one.item.trials[0].plans for one in decisions] == [("[1]", "[2]"), ("[1]", "[2]"), ("[1]", "[3]")]
    assert now[0] < 160


def test_confirming_blocks_end_with_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now, ran = [0.0], []
    monkeypatch.setattr("dbdyno.rehearse.budget.time.monotonic", lambda: now[0])

    def run_block(item: RehearsedStatement, *_: object, **__: object) -> None:
        now[0] += 1.0
        ran.append(item.statement.number)

    monkeypatch.setattr("dbdyno.rehearse.measuring.run_block", run_block)
    items = [statement(number) for number in range(1, 61)]
    old, new = sides(Told("old"), Told("new"))
    confirm(items, Bench(old, new, Budget(100, begun=0.0), random.Random(1), 0.1), 0.85)
    assert len(ran) <= 102, "not 60 statements of 8 blocks each"
