"""`--quick` keeps its promise of half a minute for every built-in study, as far as the plan shows."""

from __future__ import annotations

import pytest

from dbdyno.study.library import STUDIES
from dbdyno.study.plan.study import QUICK_NS, QUICK_TURN_NS


@pytest.mark.parametrize("name", list(STUDIES))
def test_the_turns_of_a_quick_run_fit_into_the_time_that_is_promised(name: str):
    plan = STUDIES[name].plan({}, quick=True)
    turn_ns = plan.schedule.turn_ns
    if turn_ns is None or plan.schedule.turn_transactions is not None:
        return  # counted in transactions, or as short as the bench makes them
    turns = (plan.schedule.blocks + plan.schedule.warmup_blocks) * len(plan.arms) + plan.watch.overhead_blocks
    assert turns * turn_ns <= QUICK_NS or turn_ns == QUICK_TURN_NS
