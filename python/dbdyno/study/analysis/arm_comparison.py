"""Comparison of two runs of one study, arm by arm: for example a real engine on modelled devices and the model.

Each arm is compared with the base of its own run; the ratios of the two runs are then shown side by side. Arms are
matched by their position in the plan, because a model and an engine name the same device differently.
"""

from __future__ import annotations

from dbdyno.evidence.run import Run
from dbdyno.study.analysis.analyse import compare_arm
from dbdyno.study.analysis.contract.parts import ArmPairRow, ArmSide
from dbdyno.study.analysis.contract.rows import JudgeRow, RunRow, VerdictRow
from dbdyno.study.analysis.measured.facts import run_facts
from dbdyno.study.analysis.measured.measures import Measures

METRIC = "mean"
COMMITS = "commit-loop"


def shared_operation(first: Run, second: Run, operations: tuple[str, str]) -> str | None:
    """Return the kind of call that both runs time (commits if both run a loop of commits), or None."""
    if operations[0] == operations[1]:
        return operations[0]
    return (
        "commit"
        if all((run.manifest.plan.get("workload") or {}).get("kind") == COMMITS for run in (first, second))
        else None
    )


def rows_of(runs: tuple[Run, Run], both: tuple[Measures, Measures], judge: JudgeRow) -> list[ArmPairRow]:
    """Return a row per arm of two runs of the same study with equally many arms; empty for other pairs."""
    studies = [one.manifest.study if one.manifest.has("study") else None for one in runs]
    bases = [[arm.base for arm in measures.arms] for measures in both]
    if studies[0] is None or studies[0] != studies[1] or bases[0] != bases[1] or len(bases[0]) < 2:
        return []
    facts = [run_facts(run, measures.arms[0].blocks) for run, measures in zip(runs, both, strict=True)]
    sides = [
        [_side(measures, at, judge, run) for measures, run in zip(both, facts, strict=True)]
        for at in range(len(bases[0]))
    ]
    return [{"sides": own} for own in sides]


def verdict_of(rows: list[ArmPairRow], names: tuple[str, str]) -> VerdictRow:
    """Return the verdict on an engine and a model: the number of arms that differ in the same direction in both runs.

    Their times are not compared, because the model's devices and processors are not those of the machine.
    """
    compared = [row["sides"] for row in rows if all("base" in side for side in row["sides"])]
    alike = sum(_direction(one) == _direction(two) for one, two in compared)
    arms = "arm" if len(compared) == 1 else "arms"
    return {
        "decision": "measured",
        "headline": f"{names[0]} and {names[1]} agree on {alike} of {len(compared)} {arms} (faster than the base, "
        "slower, or no difference).",
        "sentences": [
            f"{sides[0]['arm']} against {sides[0]['base']}: "
            + "; ".join(f"{name} {_in_words(side)}" for name, side in zip(names, sides, strict=True))
            for sides in compared
        ],
    }


def _direction(side: ArmSide) -> int:
    """Return 1 if the interval of the ratio is above 1, -1 if below, 0 if it contains 1."""
    ratio = side["ratio"] or 1.0
    low, high = side.get("low", ratio), side.get("high", ratio)
    return (low > 1) - (high < 1)


def _in_words(side: ArmSide) -> str:
    word = {1: "slower", -1: "faster", 0: "no difference"}[_direction(side)]
    return f"{word} ({side['ratio']:.3g} times the {METRIC})"


def _side(measures: Measures, at: int, judge: JudgeRow, run: RunRow) -> ArmSide:
    import numpy as np

    arm = measures.arms[at]
    side: ArmSide = {"arm": arm.name, "mean_ns": float(np.nanmean(arm.values[METRIC])), "ratio": None}
    if arm.base != at:
        found = next(one for one in compare_arm(measures, at, judge, run) if one.metric == METRIC)
        side |= {"base": measures.arms[arm.base].name, "ratio": found.ratio, "low": found.low, "high": found.high}
    return side
