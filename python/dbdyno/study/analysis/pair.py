"""Comparison of two runs: the base arm of each, as two arms of one page.

The runs may have had different targets, for example a live engine and a model. The page warns accordingly: two live
runs were not interleaved, and the time of a model is not that of a machine.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dbdyno.base.errors import EvidenceError
from dbdyno.bench.engine.volumes import DEVICE
from dbdyno.evidence.run import Run
from dbdyno.study.analysis import arm_comparison
from dbdyno.study.analysis.analyse import compare_arm, json_model, judge_arms, verdict_rules
from dbdyno.study.analysis.contract.declarations import SCHEMA
from dbdyno.study.analysis.contract.rows import Caution, Model, RunRow
from dbdyno.study.analysis.figure_data import pictures
from dbdyno.study.analysis.measured.evidence_kind import in_virtual_time, reads
from dbdyno.study.analysis.measured.facts import IMPORTED, arm_of, is_open, run_facts
from dbdyno.study.analysis.measured.measures import ArmMeasures, Measures, operation_of
from dbdyno.study.analysis.measured.sums import SUMS, SumMeasures, measures_of
from dbdyno.study.analysis.sums import pair_model

if TYPE_CHECKING:
    from dbdyno.stats.gates import Gate

WITHHELD = ("no verdict", "failed")
CUT_OFF = "cut off"
"""Code of a gate that examines both live runs together."""


def analyse_pair(first: Run, second: Run) -> Model:
    """Return the model of the base arms of two runs compared with each other; nothing is written to either run.

    Two runs of a study whose answer is a curve give both curves, each with a separate fit.

    Raises:
        EvidenceError: The runs cannot be compared.
    """
    from dbdyno.study.analysis.method import engine, method

    _comparable(first, second)
    runs = (first, second)
    operation = _operation(first, second)
    one, two = measures_of(first, operation), measures_of(second, operation)
    arms = [_rename_arm(found.arms[0], run, runs) for found, run in zip((one, two), runs, strict=True)]
    if any(reads(run).evidence == SUMS for run in runs):
        return _of_sums(runs, arms)
    measures = Measures(arms, [*one.broken, *two.broken])
    latencies = [arm.pooled_latencies() for arm in arms]
    judge = first.manifest.plan["judge"]
    model: Model = {
        "schema": SCHEMA,
        "kind": "experiment",
        "run": {
            **run_facts(first, measures.arms[0].blocks),
            **_pair_row(runs),
        },
        "arms": [
            {
                **arm_of(run, Measures([arm], []), 0, values),
                "index": at,
                "name": arm.label,
                "description": _target(run),
                "baseline": at == 0,
            }
            for at, (run, arm, values) in enumerate(zip(runs, arms, latencies, strict=True))
        ],
        "statements": [],
        "figures": {
            "distribution": pictures.distribution(latencies),
            "quantile_ratio": pictures.quantile_ratio(measures, latencies, judge["level"]),
            "tail": pictures.tail(latencies),
            "heatmap": [],
            "waits": [],
            "curve": None,
        },
        "gates": [],
        "method": method(first),
        "engine": engine(first),
        "warnings": _warnings(runs),
    }
    if rows := arm_comparison.rows_of(runs, (one, two), verdict_rules(first)):
        model["beside"] = rows
    _judge(model, runs, measures, latencies)
    if rows and len({in_virtual_time(run) for run in runs}) > 1 and model["verdict"]["decision"] not in WITHHELD:
        model["verdict"] = arm_comparison.verdict_of(rows, (_target_name(runs[0]), _target_name(runs[1])))
    if all(run.manifest.kind == "curve" for run in runs):
        _curves(model, runs, arms)
    return json_model(model)


def _pair_row(runs: tuple[Run, Run]) -> RunRow:
    """Return the head of the page of two runs: their ids and titles combined."""
    titles = [str(run.manifest.title) for run in runs]
    return {
        "randomised": False,
        "id": f"{runs[0].id} and {runs[1].id}",
        "title": " against ".join(titles) if titles[0] != titles[1] else f"{titles[0]}: two runs",
    }


def _of_sums(runs: tuple[Run, Run], arms: list[ArmMeasures]) -> Model:
    """Return the model of two runs of which at least one has only sums; blocks are paired in order."""
    blocks = min(len(arm.blocks) for arm in arms)
    cut = [
        replace(arm, blocks=arm.blocks[:blocks], values={name: own[:blocks] for name, own in arm.values.items()})
        for arm in arms
    ]
    model = pair_model(runs, SumMeasures(cut, []), _pair_row(runs), [_target(run) for run in runs])
    model["warnings"] += _warnings(runs)
    return json_model(model)


def _judge(model: Model, runs: tuple[Run, Run], measures: Measures, latencies: pictures.Latencies) -> None:
    """Add the gates between the runs and within each, and the resulting verdict."""
    from dbdyno.evidence.query import connect
    from dbdyno.study.analysis.checks import gates
    from dbdyno.study.analysis.measured import failures as failed_calls

    judge = verdict_rules(runs[0])
    other = measures.arms[1]
    ones = [Measures([replace(arm, base=0)], []) for arm in measures.arms]
    comparisons = {other.label: compare_arm(measures, 1, judge, model["run"])}
    usable = next(c.blocks for c in comparisons[other.label] if c.metric == judge["headline"])
    virtual = any(map(in_virtual_time, runs))
    found: list[Gate] = []
    failures: list[failed_calls.Failures] = []
    for run, own, values in zip(runs, ones, latencies, strict=True):
        connection, _ = connect(run)
        with connection:
            failures.append(failed_calls.failures_of_run(connection, own))
            facts = run_facts(run, own.arms[0].blocks)
            alone = gates.GateInput(
                run,
                own,
                [values],
                connection,
                failures[-1].codes,
                facts,
                judge,
                "experiment",
                usable,
                in_virtual_time(run),
            )
            found += [
                _of_run(gate, own.arms[0].label)
                for gate in gates.gates_of_run(alone)
                if virtual or gate.code != CUT_OFF
            ]
    codes = [failure.codes[0] for failure in failures]
    both = gates.GateInput(
        runs[0],
        measures,
        latencies,
        None,
        codes,
        model["run"],
        judge,
        "experiment",
        usable,
        virtual,
    )
    found = [*gates.gates_between_arms(both), *found]
    without = gates.withheld_arms(found, measures, judge)
    judge_arms(model, measures, latencies, comparisons, judge["headline"], without)
    gates.withhold_verdict(model, without)
    model["errors"] = [{**row, "arm": at} for at, failure in enumerate(failures) for row in failure.rows]
    for arm, own_codes in zip(model["arms"], codes, strict=True):
        arm["error_codes"] = own_codes
    model["gates"] = gates.rows(found, judge)
    model["why"] = _explain(runs, measures, without, judge["level"])


def _of_run(gate: Gate, label: str) -> Gate:
    """Return a gate of one of the two runs, with its run named."""
    return gate if gate.arm or label in gate.text else replace(gate, text=f"{label}: {gate.text}", arm=label)


def _explain(runs: tuple[Run, Run], measures: Measures, without: Any, level: float) -> list[Any]:
    """Explain the difference from the evidence of both runs."""
    from dbdyno.evidence.query import connect
    from dbdyno.study.analysis.explanation.run import explain_pair

    (first, _), (second, _) = (connect(run) for run in runs)
    with first, second:
        return explain_pair((first, second), runs, measures.arms, without=without, level=level)


def _comparable(first: Run, second: Run) -> None:
    for run in (first, second):
        if reads(run).evidence not in ("operations", SUMS):
            raise EvidenceError(
                "has no arm whose operations' times can be compared: it is a run on storage cells or a flash probe",
                where=run.id,
                next_step="show each run by itself with `dbdyno compare RUN`",
            )
    if is_open(first) != is_open(second):
        raise EvidenceError(
            "one run is an open loop, the other a closed one; they cannot be compared",
            next_step="choose two runs of the same kind of loop",
        )


def _operation(first: Run, second: Run) -> str:
    """Return the kind of call that is compared.

    Raises:
        EvidenceError: The runs time different kinds of calls.
    """
    kinds = (operation_of(first), operation_of(second))
    found = arm_comparison.shared_operation(first, second, kinds)
    if found is None:
        raise EvidenceError(
            f"one run compares the times of a {kinds[0]}, the other of a {kinds[1]}",
            next_step="set `operation` to the same value in both plans, under [verdict]",
        )
    return found


def _curves(model: Model, runs: tuple[Run, Run], arms: list[ArmMeasures]) -> None:
    from dbdyno.evidence.query import connect
    from dbdyno.study.analysis.questions import curve

    found = []
    for run, arm in zip(runs, arms, strict=True):
        connection, _ = connect(run)
        with connection:
            found.append((arm.label, curve.points(connection, arm)))
    model["kind"] = "curve"
    curve.add_curves(model, found)


def _rename_arm(arm: ArmMeasures, run: Run, runs: tuple[Run, Run]) -> ArmMeasures:
    """Return an arm named by its target if the targets differ, else by its own name, with the end of the run's id."""
    targets = [_target(own) for own in runs]
    name = _target(run) if targets[0] != targets[1] else arm.name
    mark = run.id if run.manifest.switch == IMPORTED else run.id[-4:]  # an import is named by its user
    return replace(arm, base=0, label=f"{name} ({mark})")


def _target(run: Run) -> str:
    """Return where the base arm of the run ran: its target, and the modelled devices below it."""
    below = None if in_virtual_time(run) else (run.manifest.arms[0].get("changes") or {}).get(DEVICE)
    return _target_name(run) + (f", {below}" if below else "")


def _target_name(run: Run) -> str:
    """Return where the run ran, in a word or two."""
    if in_virtual_time(run):
        return str(run.manifest.arms[0]["target"])
    facts: dict[str, object] = next(iter(run.manifest.targets.values()), {})
    said = str(facts.get("version", ""))
    version = re.search(r"\d+(\.\d+)*", said)
    engine = said.split(maxsplit=1)[0] if version else "PostgreSQL"
    return f"{engine} {version[0]}" if version else engine


def _warnings(runs: tuple[Run, Run]) -> list[Caution]:
    if runs[0].path.samefile(runs[1].path):
        return [
            {
                "code": "same run",
                "text": "Both sides are the same run: its first arm is compared with itself.",
                "next": "name two runs (`dbdyno runs` lists them); `dbdyno report` compares the arms of one",
            }
        ]
    modelled = [in_virtual_time(run) for run in runs]
    if all(modelled):
        return []
    if any(modelled):
        return [
            {
                "code": "model and engine",
                "text": "One run used virtual time on modelled devices, the other a real engine: "
                "compare shapes and ratios, not microseconds.",
                "next": "fit the model's devices to the engine's disk: dbdyno model calibrate RUN",
            }
        ]
    return [
        {
            "code": "not interleaved",
            "text": "The two runs were made one after the other: drift between them counts as a difference.",
            "next": "put both variants into one plan as arms",
        }
    ]
