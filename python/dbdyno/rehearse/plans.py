"""Plans of changed statements: planned for all sets of values, executed for the set whose plans differ."""

from __future__ import annotations

import contextlib
from dataclasses import replace

from dbdyno.rehearse.causes import worst_trial
from dbdyno.rehearse.generic_plans import plan_choice
from dbdyno.rehearse.rehearsed_statement import CUSTOM_PLANS, RehearsedStatement
from dbdyno.rehearse.side import ExecutionError, Side
from dbdyno.rehearse.statement import Parameters


def collect_plans(item: RehearsedStatement, old: Side, new: Side) -> None:
    """Get the plans for all sets of values from both sides; a plan stays empty if the server refuses the statement."""
    found: tuple[dict[int, str], dict[int, str]] = ({}, {})
    for side, plans in zip((old, new), found, strict=True):
        with contextlib.suppress(ExecutionError), side.transaction(item.statement):
            for at, trial in enumerate(item.trials):
                with contextlib.suppress(ExecutionError):
                    plans[at] = side.explain(trial.parameters)
    item.trials = [
        replace(trial, plans=(found[0].get(at, ""), found[1].get(at, ""))) for at, trial in enumerate(item.trials)
    ]


def execute_plans(item: RehearsedStatement, old: Side, new: Side) -> None:
    """Replace the plans of the statement's worst trial by executed ones; if a side refuses, keep its plan."""
    at = worst_trial(item)
    trial = item.trials[at]
    executed: dict[int, str] = {}
    for place, side in enumerate((old, new)):
        with contextlib.suppress(ExecutionError), side.transaction(item.statement):
            executed[place] = _executed_plan(item, side, trial.parameters)
    plans = [executed.get(place, plan) for place, plan in enumerate(trial.plans)]
    if trial.parameters.is_prepared and len(executed) == 2:
        custom = [tuple(one.plans[side] for one in item.trials) for side in (0, 1)]
        item.choices = (plan_choice(plans[0], custom[0]), plan_choice(plans[1], custom[1]))
    item.trials[at] = replace(trial, plans=(plans[0], plans[1]))


def _executed_plan(item: RehearsedStatement, side: Side, parameters: Parameters) -> str:
    """Return the executed plan as JSON; for a prepared statement, the plan after its first executions."""
    if not parameters.is_prepared:
        return side.explain(parameters, run=True)
    use_up_custom_plans(item, side)
    return side.explain_prepared(parameters, run=True)


def use_up_custom_plans(item: RehearsedStatement, side: Side) -> None:
    """Execute a prepared statement until the server may choose a generic plan."""
    for at in range(CUSTOM_PLANS):
        side.execute(item.timed_sets[at % len(item.timed_sets)])
