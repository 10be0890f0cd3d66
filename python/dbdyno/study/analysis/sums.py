"""Analysis of runs of which only sums are known: of a single run, or of two runs compared.

Every interval that the other program reported is a block. Results that require single operations (distribution, tail,
classical tests, stalls) are left out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dbdyno.base.errors import StatsError
from dbdyno.evidence.run import Run
from dbdyno.study.analysis.analyse import compare_arm, headline_of, judge_arms, verdict_rules
from dbdyno.study.analysis.contract.declarations import SCHEMA
from dbdyno.study.analysis.contract.rows import ArmRow, Model, RunRow
from dbdyno.study.analysis.measured.facts import run_facts
from dbdyno.study.analysis.measured.measures import QUANTILES, ArmMeasures, Measures
from dbdyno.study.analysis.measured.sums import measure_sums

if TYPE_CHECKING:
    from dbdyno.stats.gates import Gate

METHOD = (
    "The numbers are sums that another program wrote; the operations in an interval are not known, so there are no "
    "distribution, no tail and no tests over single operations.",
    "The unit of inference is the block, here an interval of that program, or a whole run of it. Intervals of one run "
    "depend on each other: with ten blocks or more, the number of blocks is corrected for it.",
)


def model_of(run: Run) -> tuple[Model, list[str]]:
    """Return the model of one run, and the parts of evidence that could not be read."""
    measures = measure_sums(run)
    model = _measured_model(run, measures, [run])
    if measures.compared_arms():
        _judge(model, run, measures)
    else:
        model["verdict"] = {
            "decision": "unclear",
            "headline": "One arm was imported; there is nothing to compare it with.",
            "sentences": [],
        }
    return model, measures.broken


def pair_model(runs: tuple[Run, Run], measures: Measures, facts: RunRow, descriptions: Sequence[str]) -> Model:
    """Return the model of the base arms of two runs, at least one of which has only sums.

    Args:
        runs: Both runs.
        measures: The base arms of both runs, as two arms.
        facts: What the page says about both runs together: id, title and so on.
        descriptions: A description of each arm.
    """
    model = _measured_model(runs[0], measures, runs)
    model["run"] = {**model["run"], **facts}
    for arm, words in zip(model["arms"], descriptions, strict=True):
        arm["description"] = words
    _judge(model, runs[0], measures)
    return model


def _measured_model(run: Run, measures: Measures, runs: Sequence[Run]) -> Model:
    from dbdyno.study.analysis.method import engine

    return {
        "schema": SCHEMA,
        "kind": "experiment",
        "run": run_facts(run, measures.arms[0].blocks),
        "arms": [_arm(runs[min(at, len(runs) - 1)], at, arm) for at, arm in enumerate(measures.arms)],
        "metrics": [],
        "classical": [],
        "statements": [],
        "errors": [],
        "gates": [],
        "warnings": [],
        "figures": {"blocks": []},
        "method": {"sentences": list(METHOD), "overhead": None},
        "engine": engine(run),
    }


def _arm(run: Run, at: int, arm: ArmMeasures) -> ArmRow:
    """Return an arm as a row of the model: counts are added up, times are means over the blocks."""
    about, values = run.manifest.arms[arm.number], arm.values
    return {
        "index": at,
        "name": arm.label,
        "description": about["description"],
        "changes": about["changes"],
        "sessions": arm.sessions,
        "rate_per_s": about["rate_per_s"],
        "baseline": at == 0,
        "error_codes": {},
        "ops": arm.total("transactions"),
        "errors": arm.total("failed"),
        "retries": 0,
        "skipped": 0,
        "throughput_per_s": _typical(values["throughput"]),
        "mean_ns": _typical(values["mean"]),
        "sd_ns": None,
        "quantiles_ns": {name: _typical(values[name]) for name in QUANTILES},
        "max_ns": None,
    }


def _typical(values: Any) -> float | None:
    """Return the geometric mean over the blocks that have a value; None if no block has a value."""
    found = [math.log(value) for value in values if value > 0 and math.isfinite(value)]
    return math.exp(math.fsum(found) / len(found)) if found else None


def _judge(model: Model, run: Run, measures: Measures) -> None:
    """Add the gates and the verdict to the model."""
    import numpy as np

    from dbdyno.study.analysis.checks import gates

    judge, headline = verdict_rules(run), _shared_headline(run, measures)
    model["run"]["randomised"] = False
    comparisons = {
        arm.label: [c for c in compare_arm(measures, at, judge, model["run"]) if c.blocks]
        for at, arm in measures.compared_arms()
    }
    usable = min(c.blocks for own in comparisons.values() for c in own if c.metric == headline)
    found = _gates(measures, usable, judge["level"])
    without = gates.withheld_arms(found, measures, judge)
    nothing = [np.zeros(0, np.uint64) for _ in measures.arms]
    judge_arms(model, measures, nothing, comparisons, headline, without)
    gates.withhold_verdict(model, without)
    model["gates"] = gates.rows(found, judge)


def _shared_headline(run: Run, measures: Measures) -> str:
    """Return the metric of the verdict; if an arm does not have it, the first metric that all arms have.

    Raises:
        StatsError: The arms have no metric in common.
    """
    import numpy as np

    for name in (headline_of(run), "throughput", "mean", *QUANTILES):
        if all(np.isfinite(arm.values[name]).any() for arm in measures.arms):
            return name
    raise StatsError(
        "the two runs have no metric in common",
        next_step="list the metrics of each run with `dbdyno sql 'select distinct metric from metrics' --run RUN`",
    )


def _gates(measures: Measures, usable: int, level: float) -> list[Gate]:
    from dbdyno.stats import gates
    from dbdyno.stats.gates_losses import ERRORS, Losses, few_losses

    found = [gates.enough_blocks(usable, level)]
    if not found[0].ok:
        found[0] = replace(found[0], next="import more files, or more intervals, of each side")
    for arm in measures.arms:
        failed, good = arm.total("failed"), arm.total("transactions")
        found.append(few_losses(Losses(arm.label, failed, failed + good), ERRORS))
    return found
