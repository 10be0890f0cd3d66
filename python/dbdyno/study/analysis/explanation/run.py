"""The part `why` of a run's model.

It explains why each compared arm differs from its base. If the plan has factors, it explains only the difference
between the two arms of the headline. For a single arm, it explains what the time is spent on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from dbdyno.evidence.run import Block, Run
from dbdyno.study.analysis.contract.rows import Model
from dbdyno.study.analysis.explanation.explain import explain
from dbdyno.study.analysis.explanation.pair import Station
from dbdyno.study.analysis.explanation.parts import Side, side_of
from dbdyno.study.analysis.explanation.server_counters import ArmCounters, counters_of
from dbdyno.study.analysis.measured.measures import ArmMeasures, Measures

ARMS_REPORTED = 4
"""Largest number of compared arms that are all explained; above it, only the largest difference is explained."""
CORES = "cpu"
KINDS = ("experiment", "aa", "sweep")
PROCESSES = ("flow", "load")
"""Workloads of long-lived processes that time themselves; no server sessions are sampled during them."""
TURNS = (
    "Work was not counted: if arms alternate in slices, this server's counters cover all arms together."
    ' Set switch = "turns" under [schedule] to count the work of each arm.'
)
LATE = (
    "Work was not counted: this server's sessions publish their counters only once a second."
    ' Set turn = "3s" under [schedule] to count most of it.'
)
"""Next steps (`TURNS`, `LATE`) if CPU is named as a cause and it is unknown whether the work was the same."""

UNSAMPLED = "a run was imported from another program, whose files contain no waits"
"""Reason why no cause is named in an imported run."""


def explain_run(connection: Any, run: Run, measures: Measures, model: Model, without: Any) -> list[Any]:
    """Return `why` of a run; empty for kinds of run whose arms are not compared one by one."""
    kind, level = run.manifest.kind, run.manifest.plan["judge"]["level"]
    if kind not in KINDS:
        return []
    alone = len(measures.arms) == 1 or kind == "aa"
    if alone:
        side = _side(connection, measures.arms[0], run)
        return [explain(None, side, level=level, arm=0, withheld=_unsampled_reason(run)).as_dict()]
    found = []
    warmup = _warmup(run)
    for at, base_at in _explained_arms(measures, model):
        arm, base = measures.arms[at], measures.arms[base_at]
        counts = [counters_of(connection, one, alone=False, warmup=warmup) for one in (base, arm)]
        held = without.get(arm.label)
        one = explain(
            _side(connection, base, run),
            _side(connection, arm, run),
            level=level,
            arm=at,
            counts=(counts[0], counts[1]),
            stations=(_stations(model, base), _stations(model, arm)),
            withheld=f"there is no verdict: {held.reason}" if held else _unsampled_reason(run),
        )
        if any(cause.code == "cpu" for cause in one.causes):
            one = replace(one, notes=(*one.notes, *_missing_counters(run, counts)))
        if arm.sessions > base.sessions and (one.amount or 0.0) > 0:
            one = replace(one, notes=(_at_once(base, arm), *one.notes))
        found.append(one.as_dict())
    return found


def _unsampled_reason(*runs: Run) -> str:
    """Return why the waits of imported runs are unknown; empty if no run was imported."""
    return UNSAMPLED if any(run.manifest.switch == "imported" for run in runs) else ""


def _warmup(run: Run) -> list[Block]:
    return [block for block in run.blocks() if block.kind == "warmup"]


def _at_once(base: ArmMeasures, arm: ArmMeasures) -> str:
    """Return a sentence on arms with more sessions: total throughput rises, but each transaction takes longer."""
    return (
        f"{arm.sessions} sessions work at once instead of {base.sessions}. The throughput is not "
        f"{arm.sessions / base.sessions:.3g} times as large, because each transaction takes longer."
    )


def _missing_counters(run: Run, counts: Sequence[ArmCounters | None]) -> Iterator[str]:
    """Yield advice on how to count the work, if counters were read too late or belong to all arms together."""
    if not run.manifest.plan["watch"].get("counters") or _programs(run):
        return
    if run.manifest.switch == "slices" and not any(counts):
        yield TURNS
    if any(one is not None and one.is_late for one in counts):
        yield LATE


def _programs(run: Run) -> bool:
    work = run.manifest.plan["workload"]
    return work.get("command") is not None or work.get("kind") in PROCESSES


def _side(connection: Any, arm: ArmMeasures, run: Run, name: str = "") -> Side:
    return side_of(connection, arm, hertz(run), name=name, programs=_programs(run))


def _stations(model: Model, arm: ArmMeasures) -> dict[str, Station]:
    """Return the stations of a model in an arm: requests per transaction, and the time of a request."""
    count = arm.total("transactions")
    return {
        row["station"]: Station(row["completions"] / count, row["sojourn_ns"])
        for row in model.get("devices") or []
        if row["arm"] == arm.number and count and row["sojourn_ns"] and row["station"] != CORES
    }


def hertz(run: Run) -> float:
    """Return how often sessions were sampled per second."""
    return float(run.manifest.plan["watch"].get("activity_hz") or 0.0)


def _explained_arms(measures: Measures, model: Model) -> list[tuple[int, int]]:
    """Return the arms that are explained, each with the arm with which it is compared.

    If the plan has factors, these are the two arms of the headline. If there are many arms, only the arm whose mean
    differs most is returned.
    """
    if answer := (model.get("factors") or {}).get("answer"):
        return [(answer["arm"], answer["base"])]
    compared = [(at, arm.base) for at, arm in measures.compared_arms()]
    if len(compared) <= ARMS_REPORTED:
        return compared
    means = {row["arm"]: row["ratio"] or 1.0 for row in model["metrics"] if row["metric"] == "mean"}
    return [max(compared, key=lambda pair: max(means.get(pair[0], 1.0), 1 / means.get(pair[0], 1.0)))]


def explain_pair(
    connections: tuple[Any, Any], runs: tuple[Run, Run], arms: list[ArmMeasures], *, without: Any, level: float
) -> list[Any]:
    """Explain the difference between the base arms of two runs."""
    both = list(zip(connections, arms, runs, strict=True))
    base, other = (_side(own, arm, run, name=arm.label) for own, arm, run in both)
    counts: list[ArmCounters | None] = [
        counters_of(own, arm, alone=len(run.manifest.arms) == 1, warmup=_warmup(run)) for own, arm, run in both
    ]
    held = without.get(arms[1].label)
    one = explain(
        base,
        other,
        level=level,
        arm=1,
        counts=(counts[0], counts[1]),
        paired=False,
        withheld=f"there is no verdict: {held.reason}" if held else _unsampled_reason(*runs),
    )
    return [one.as_dict()]
