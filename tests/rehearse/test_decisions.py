"""Decisions on synthetic measurements: the result of the rule, and the blocks that count."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from dbdyno.rehearse.decision import decide, total
from dbdyno.rehearse.rehearsed_statement import RehearsedStatement
from dbdyno.rehearse.statement import Statement

THRESHOLD = 0.1


def measured(
    number: int, ratios: Sequence[float], *, first: int = 0, processes: Sequence[int] = ()
) -> RehearsedStatement:
    """Return a statement whose blocks took 1 ms on the old side, and 1 ms times these ratios on the new side."""
    item = RehearsedStatement(Statement(number, f"select {number}", calls=100, total_ns=100_000_000))
    item.old_ns = [1e6] * len(ratios)
    item.new_ns = [1e6 * ratio for ratio in ratios]
    item.first_blocks = first or None
    item.processes = list(processes) or [number * 1_000 + at for at in range(len(ratios))]
    return item


def test_a_statement_is_slower_only_if_its_interval_is_above_the_threshold_as_a_whole() -> None:
    # One-sided p is .04: the interval reaches below the threshold.
    logs = np.array([-1.0, -0.6, -0.2, 0.2, 0.6, 1.0])
    logs = logs / logs.std(ddof=1) * 0.05
    item = measured(1, list(np.exp(logs + math.log1p(THRESHOLD) + 2.2 * 0.05 / math.sqrt(6))))
    (found,) = decide([item], THRESHOLD)
    assert found.low < 1 + THRESHOLD
    assert found.word == "unclear"


@pytest.mark.parametrize("count", [1, 10, 100])
def test_whatever_is_slower_has_its_interval_above_the_threshold(count: int) -> None:
    rng = np.random.default_rng(7)
    items = [
        measured(at, list(np.exp(rng.normal(rng.uniform(0.05, 0.25), 0.05, int(rng.integers(3, 12))))))
        for at in range(1, count + 1)
    ]
    for one in decide(items, THRESHOLD):
        assert one.word != "slower" or one.low > 1 + THRESHOLD


def test_all_numbers_of_a_confirmed_statement_come_from_its_confirming_blocks() -> None:
    item = measured(1, [2.0] * 6 + [1.5] * 8, first=6)
    (found,) = decide([item], THRESHOLD)
    assert found.new_ns / found.old_ns == pytest.approx(found.ratio) == pytest.approx(1.5)
    assert found.added_ns == pytest.approx(100 * 0.5e6)
    whole = total([found])
    assert whole.ratio == pytest.approx(1.5)
    assert whole.low == whole.high == pytest.approx(1.5), "the first blocks are in no interval"


@pytest.mark.parametrize("blocks", [3, 6])
def test_the_interval_of_a_total_of_few_blocks_holds_95_percent(blocks: int) -> None:
    rng = np.random.default_rng(11)
    covered = 0
    for _ in range(400):
        decisions = decide([measured(1, list(rng.normal(1.0, 0.05, blocks)))], THRESHOLD)
        whole = total(decisions)
        covered += whole.low <= 1 <= whole.high
    assert covered / 400 > 0.92


def test_statements_that_share_processes_have_no_more_freedom_than_one_of_them() -> None:
    ratios = (1.0, 1.1, 1.2)
    apart = [measured(number, ratios) for number in range(1, 9)]
    shared = [measured(number, ratios, processes=(1, 2, 3)) for number in range(1, 9)]
    alone, wide = (total(decide(items, THRESHOLD)) for items in (apart[:1], shared))
    assert wide.high - wide.low == pytest.approx(alone.high - alone.low)
    assert (whole := total(decide(apart, THRESHOLD))).high - whole.low < (wide.high - wide.low) / 3
