"""Why, in the model of a run: each compared arm against its base, of a single arm where its time goes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dbdyno.evidence.run import Run
from dbdyno.study.analysis.measures import ArmMeasures, Measures
from dbdyno.study.analysis.why.counted import Counted, counted
from dbdyno.study.analysis.why.explain import explain
from dbdyno.study.analysis.why.parts import side_of

ARMS_TOLD = 4
"""With more compared arms than this the largest difference alone is explained."""
KINDS = ("experiment", "aa", "sweep")


def of_run(connection: Any, run: Run, measures: Measures, metrics: list[dict[str, Any]], without: Any) -> list[Any]:
    """`why` of a run; empty for kinds whose arms are not compared one by one."""
    kind, level = run.manifest["kind"], run.manifest["plan"]["judge"]["level"]
    if kind not in KINDS:
        return []
    alone = len(measures.arms) == 1 or kind == "aa"
    if alone:
        return [explain(None, side_of(connection, measures.arms[0]), level=level, arm=0).as_dict()]
    found = []
    for at in _told(measures, metrics):
        arm = measures.arms[at]
        base = measures.arms[arm.base]
        counts = counted(connection, base, alone=False), counted(connection, arm, alone=False)
        held = without.get(arm.label)
        one = explain(
            side_of(connection, base),
            side_of(connection, arm),
            level=level,
            arm=at,
            counts=counts,
            withheld=f"there is no verdict: {held.reason}" if held else "",
        )
        found.append(one.as_dict())
    return found


def _told(measures: Measures, metrics: list[dict[str, Any]]) -> list[int]:
    """The compared arms; of many the one whose mean differs most."""
    compared = [at for at, _ in measures.compared()]
    if len(compared) <= ARMS_TOLD:
        return compared
    means = {row["arm"]: row["ratio"] or 1.0 for row in metrics if row["metric"] == "mean"}
    return [max(compared, key=lambda at: max(means.get(at, 1.0), 1 / means.get(at, 1.0)))]


def of_pair(
    connections: tuple[Any, Any], arms: list[ArmMeasures], *, single: Sequence[bool], without: Any, level: float
) -> list[Any]:
    """The base arms of two runs against each other; `single`: whether each run has no other arm."""
    base, other = (side_of(own, arm, name=arm.label) for own, arm in zip(connections, arms, strict=True))
    counts: list[Counted | None] = [
        counted(own, arm, alone=lonely) for own, arm, lonely in zip(connections, arms, single, strict=True)
    ]
    held = without.get(arms[1].label)
    one = explain(
        base,
        other,
        level=level,
        arm=1,
        counts=(counts[0], counts[1]),
        paired=False,
        withheld=f"there is no verdict: {held.reason}" if held else "",
    )
    return [one.as_dict()]
