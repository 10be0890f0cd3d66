"""Plans, trials of settings and time for them, on sides that answer from a table."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import cast

import pytest

from dbdyno.rehearse import job
from dbdyno.rehearse.answer import Answer
from dbdyno.rehearse.rehearsed import Rehearsed, Trial
from dbdyno.rehearse.side import FailedError, Side, explain_command
from dbdyno.rehearse.statement import Parameters, Statement


class Told:
    """A side whose executions take what `time_ns` says of the settings of the transaction, and whose plan is told."""

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

    def explain(self, parameters: Parameters, *, run: bool) -> str:
        if not self.plan:
            raise FailedError("42601", 'unrecognized EXPLAIN option "wal"')
        return self.plan

    def close(self) -> None: ...


def sides(old: Told, new: Told) -> tuple[Side, Side]:
    return cast(Side, old), cast(Side, new)


def statement(number: int = 1) -> Rehearsed:
    item = Rehearsed(Statement(number, f"select {number}", calls=1, total_ns=1))
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
    job._execute_plans(item, *sides(Told("old"), Told("new", "[3]")))
    assert item.trials[0].plans == ("[1]", "[3]")
