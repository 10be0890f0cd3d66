"""From evidence to the analysis model: estimates, intervals, verdict, and the data of every figure.

The model is written as analysis.json; every renderer reads it and computes nothing. Its parts are declared in
`contract`, from which docs/reference/analysis.md is made.
"""

from __future__ import annotations

import contextlib
import importlib
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from dbdyno.base.errors import EvidenceError, StatsError
from dbdyno.evidence.files import write_json
from dbdyno.evidence.run import Run
from dbdyno.evidence.trust import refuse_foreign
from dbdyno.study.analysis.contract.declarations import SCHEMA
from dbdyno.study.analysis.contract.rows import Figures, JudgeRow, MetricRow, Model, RunRow, TestRow
from dbdyno.study.analysis.figure_data import pictures
from dbdyno.study.analysis.figure_data.over_time import over_time
from dbdyno.study.analysis.measured.evidence_kind import in_virtual_time, reads
from dbdyno.study.analysis.measured.facts import arm_of, is_open, run_facts
from dbdyno.study.analysis.measured.measures import Measures
from dbdyno.study.analysis.measured.sums import measures_of

if TYPE_CHECKING:
    from dbdyno.stats.comparison import BlockComparison
    from dbdyno.stats.decide import Verdict, WithheldVerdict
    from dbdyno.stats.metrics import Metric
    from dbdyno.study.analysis.checks.gates import GateInput
    from dbdyno.study.analysis.measured.failures import Failures

SOURCES = {
    "operations": "dbdyno.study.analysis.analyse",
    "cells": "dbdyno.study.analysis.cells.run",
    "flash": "dbdyno.study.analysis.probe.flash",
    "sums": "dbdyno.study.analysis.sums",
}
"""Module that reads each kind of evidence."""
ARMS_REPORTED = 3
"""Largest number of arms for which sentences report metrics other than the headline; else only the table does."""


def analyse(run: Run) -> Model:
    """Analyse the complete blocks of a run, and write analysis.json into its folder if possible.

    Raises:
        EvidenceError: Nothing can be analysed.
    """
    model = analysis_of(run)
    with contextlib.suppress(EvidenceError):  # a full disk, or somebody else's folder: the model can be computed again
        refuse_foreign(run.path)
        write_json(run.path / "analysis.json", model)
        brief = {key: model["verdict"][key] for key in ("decision", "headline")}
        if run.manifest.verdict != brief:
            run.save(verdict=brief)
    return model


def analysis_of(run: Run) -> Model:
    """Return the analysis of the complete blocks of a run; nothing is written.

    Raises:
        EvidenceError: Nothing can be analysed.
    """
    model, broken = importlib.import_module(SOURCES[reads(run).evidence]).model_of(run)
    model["warnings"] += [
        {"code": "torn part", "text": text, "next": "this block is left out; the other blocks count"}
        for text in dict.fromkeys(broken)
    ]
    found: Model = json_model(model)
    return found


def model_of(run: Run) -> tuple[Model, list[str]]:
    """Return the model of a run whose operations were timed, and the parts of evidence that could not be read."""
    from dbdyno.evidence.query import connect

    measures = measures_of(run)
    connection, broken = connect(run)
    with connection:
        return _model(run, measures, connection), [*measures.broken, *broken]


def _model(run: Run, measures: Measures, connection: Any) -> Model:
    from dbdyno.study.analysis.checks import gates
    from dbdyno.study.analysis.explanation import run as why
    from dbdyno.study.analysis.measured import failures as failed_calls
    from dbdyno.study.analysis.measured import operational, resources, volumes

    kind, judge = run.manifest.kind, run.manifest.plan["judge"]
    latencies = [arm.pooled_latencies() for arm in measures.arms]
    failures = failed_calls.failures_of_run(connection, measures)
    model = _measured_model(run, measures, latencies, connection, failures)
    if run.manifest.volumes:
        model["volumes"] = volumes.rows_of_run(connection, run, measures)
    failed_calls.add_expected(model, measures, failures)
    comparisons = {}
    if measures.compared_arms() and _is_compared(run):
        comparisons = {
            arm.label: compare_arm(measures, at, judge, model["run"]) for at, arm in measures.compared_arms()
        }
    found = gates.all_gates(_gate_input(run, measures, latencies, connection, failures.codes, model, comparisons))
    if kind == "tune":  # arms that leave early are judged only by the race
        found = [gate for gate in found if not gate.arm]
    without = gates.withheld_arms(found, measures, judge)
    if comparisons:
        judge_arms(model, measures, latencies, comparisons, headline_of(run), without)
    _of_its_kind(model, connection, measures, run)
    if run.manifest.study and kind in ("experiment", "sweep"):
        model["verdict"]["sentences"] += resources.sentences(model, measures)
    model["verdict"]["sentences"][:0] = gates.busy_processor_sentences(found)
    _of_its_bench(model, connection, measures, latencies, run, without)
    model["why"] = why.explain_run(connection, run, measures, model, without)
    gates.withhold_verdict(model, without)
    model["gates"], model["warnings"] = (
        gates.rows(found, judge),
        gates.condition_warnings(run, measures, in_virtual_time(run)),
    )
    model["warnings"] += volumes.warnings(model.get("volumes", []))
    model["warnings"] += operational.warnings(model["laws"])
    model["warnings"] += failed_calls.differing_failures(measures, failures, judge["threshold"])
    return model


def _measured_model(
    run: Run, measures: Measures, latencies: pictures.Latencies, connection: Any, failures: Failures
) -> Model:
    """Return the model with the measured values, before anything is judged."""
    from dbdyno.study.analysis.measured import operational, resources
    from dbdyno.study.analysis.method import engine, method

    return {
        "schema": SCHEMA,
        "kind": run.manifest.kind,
        "run": run_facts(run, measures.arms[0].blocks),
        "arms": [
            {**arm_of(run, measures, at, latencies[at]), "error_codes": codes}
            for at, codes in enumerate(failures.codes)
        ],
        "metrics": [],
        "classical": [],
        "statements": pictures.statements(connection, measures),
        "errors": failures.rows,
        "figures": _figures(run, measures, latencies, connection),
        "method": method(run),
        "engine": engine(run),
        "resources": resources.rows_of_run(connection, run, measures),
        "laws": [] if in_virtual_time(run) else operational.laws_of_run(connection, run, measures),
    }


def _of_its_bench(
    model: Model,
    connection: Any,
    measures: Measures,
    latencies: pictures.Latencies,
    run: Run,
    without: dict[str, WithheldVerdict],
) -> None:
    """Add the parts for which only some benches have evidence."""
    from dbdyno.study.analysis.measured import databases, devices, race, tail
    from dbdyno.study.analysis.questions import loading, order

    judge, parts = run.manifest.plan["judge"], reads(run).parts
    if judge.get("longest"):
        model["tails"] = tail.compare_tails(measures, latencies, judge["longest"], judge["level"])
    if "devices" in parts:
        model["devices"] = devices.rows_of_run(connection, measures)
    if "databases" in parts:
        model["databases"] = databases.rows_of_run(connection, measures, judge["level"])
    if "order" in parts:
        order.add(model, measures, run, without)
    if "loading" in parts:
        loading.add(model, measures, run)
    if "race" in parts:
        model["race"] = race.rows_of_run(connection, measures, judge["level"])


def _figures(run: Run, measures: Measures, latencies: pictures.Latencies, connection: Any) -> Figures:
    """Return the data of the figures that do not depend on the verdict."""
    virtual, level = in_virtual_time(run), run.manifest.plan["judge"]["level"]
    return {
        "distribution": pictures.distribution(latencies),
        "quantile_ratio": pictures.quantile_ratio(measures, latencies, level),
        "tail": pictures.tail(latencies),
        "blocks": [],
        "heatmap": [] if virtual else pictures.heatmap(connection, measures, run.manifest.resumed),
        "waits": pictures.waits(connection, measures),
        "over_time": [] if virtual else over_time(connection, run, measures),
        "curve": None,
    }


def _of_its_kind(model: Model, connection: Any, measures: Measures, run: Run) -> None:
    """Add the verdict and its supporting values for a run whose arms are not judged one by one.

    A run that has no verdict afterwards gets "unclear".
    """
    from dbdyno.study.analysis.probe import logs
    from dbdyno.study.analysis.questions import correlation, curve, sweep, tune

    kind = run.manifest.kind
    if kind == "aa":
        from dbdyno.study.analysis.questions.noise import noise_verdict

        model["verdict"] = noise_verdict(
            measures, run.manifest.plan["judge"], headline_of(run), in_virtual_time=in_virtual_time(run)
        )
    elif kind == "curve":
        curve.add(model, connection, measures)
    elif kind == "sweep":
        sweep.add(model, measures, run, headline_of(run))
    elif kind == "tune":
        tune.add(model, measures, run, headline_of(run))
    elif kind == "correlation":
        correlation.add(model, connection, measures, run)
    if "logs" in reads(run).parts:
        logs.add(model, connection, measures, run)
    if "verdict" not in model:
        model["verdict"] = {
            "decision": "unclear",
            "headline": "One arm was run; there is nothing to compare it with.",
            "sentences": [],
        }


def _is_compared(run: Run) -> bool:
    """Return True if every arm is compared with its base: never in a race; in a sweep only if it has named factors."""
    kind = run.manifest.kind
    return bool(run.manifest.plan.get("factors")) if kind == "sweep" else kind != "tune"


def _gate_input(
    run: Run,
    measures: Measures,
    latencies: pictures.Latencies,
    connection: Any,
    codes: list[dict[str, int]],
    model: Model,
    comparisons: dict[str, list[BlockComparison]],
) -> GateInput:
    """Return the input of the gates."""
    from dbdyno.study.analysis.checks.gates import GateInput

    headline = headline_of(run)
    usable = [c.blocks for own in comparisons.values() for c in own if c.metric == headline]
    return GateInput(
        run,
        measures,
        latencies,
        connection,
        codes,
        model["run"],
        verdict_rules(run),
        str(model["kind"]),
        min(usable, default=len(measures.arms[0].blocks)),
        in_virtual_time(run),
    )


def judge_arms(
    model: Model,
    measures: Measures,
    latencies: pictures.Latencies,
    comparisons: dict[str, list[BlockComparison]],
    headline: str,
    without: dict[str, WithheldVerdict],
) -> None:
    """Add metrics, verdict and tests of the compared arms to the model; `without` are the arms that get no verdict."""
    from dbdyno.stats.decide import decide

    bases = {arm.label: measures.arms[arm.base].label for arm in measures.arms}
    baseline = measures.arms[0].label
    verdict = decide(comparisons, baseline=baseline, headline=headline, bases=bases, withheld=without)
    model["metrics"] = _metric_rows(verdict, measures)
    model["verdict"] = {
        "decision": verdict.decision,
        "headline": verdict.headline,
        "sentences": _sentences(verdict),
    }
    model["classical"] = _classical(latencies, measures)
    shown = dict.fromkeys((headline, "p50", "p99"))
    model["figures"]["blocks"] = [f for name in shown for f in pictures.block_ratios(measures, name)]


def _sentences(verdict: Verdict) -> list[str]:
    """Return the sentences under the headline; if there are many arms, only one sentence per arm."""
    own = [arm.sentence for arm in verdict.arms]
    said = list(verdict.sentences) if len(own) <= ARMS_REPORTED else own
    return [sentence for sentence in said if sentence != verdict.headline]


def compare_arm(measures: Measures, arm: int, judge: JudgeRow, run: RunRow) -> list[BlockComparison]:
    """Compare an arm with its base on all metrics, except throughput in an open loop, where the rate is set."""
    from dbdyno.stats.blocks import compare_metric
    from dbdyno.stats.metrics import METRICS

    base, operation = measures.arms[arm].base, measures.arms[arm].operation
    comparisons = []
    for metric in METRICS:
        if metric.name == "throughput" and run["open_loop"]:
            continue
        values = measures.metric(metric.name)
        n = min(len(values[base]), len(values[arm]))
        comparisons.append(
            compare_metric(
                metric_with_operation(metric, operation),
                values[base][:n],
                values[arm][:n],
                level=judge["level"],
                threshold=judge["threshold"],
                randomised=run["randomised"],
            )
        )
    return comparisons


def metric_with_operation(metric: Metric, operation: str) -> Metric:
    """Return the metric with the operation in its label, unless the operation is a whole transaction."""
    if operation == "transaction":
        return metric
    return replace(metric, label=metric.label.replace("latency", f"{operation} time"))


def headline_of(run: Run) -> str:
    """Return the metric that decides the verdict: the plan's, else the default for an open or a closed loop."""
    from dbdyno.stats.metrics import default_headline

    chosen = run.manifest.plan["judge"]["headline"]
    return str(chosen or default_headline("open" if is_open(run) else "closed"))


def verdict_rules(run: Run) -> JudgeRow:
    """Return the rules by which a run's verdict is reached, with its headline metric filled in."""
    given: JudgeRow = run.manifest.plan["judge"]
    return {**given, "headline": headline_of(run)}


def _metric_rows(verdict: Verdict, measures: Measures) -> list[MetricRow]:
    return [
        metric_row(c, arm=number, base=measures.arms[number].base)
        for (number, _), arm in zip(measures.compared_arms(), verdict.arms, strict=True)
        for c in arm.comparisons
    ]


def metric_row(c: BlockComparison, *, arm: int, base: int) -> MetricRow:
    """Return a comparison of two arms as a row of `metrics` in the model."""
    from dbdyno.stats.blocks import row_of

    return {"arm": arm, "baseline": base, **row_of(c)}


def _classical(latencies: pictures.Latencies, measures: Measures) -> list[TestRow]:
    """Return Welch, Mann-Whitney and Kolmogorov-Smirnov tests over all operations, which do not affect the verdict."""
    from dbdyno.stats.classical import kolmogorov_smirnov, mann_whitney, welch

    rows: list[TestRow] = []
    for number, arm in measures.compared_arms():
        at = arm.base
        base, other = latencies[at], latencies[number]
        if min(base.size, other.size) < 2:
            continue
        for test in (welch, mann_whitney, kolmogorov_smirnov):
            try:
                found = test(base, other)
            except StatsError:  # neither arm varies at all, which is possible in virtual time
                continue
            rows.append(
                {
                    "arm": number,
                    "baseline": at,
                    "test": found.test,
                    "statistic": found.statistic,
                    "df": found.df,
                    "log10_p": found.log10_p,
                    "effect": found.effect,
                    "note": found.note,
                }
            )
    return rows


def json_model(model: Model) -> Model:
    """Return the model as JSON values."""
    return cast("Model", {key: json_value(value) for key, value in model.items()})


def json_value(value: Any) -> Any:
    """Return a value in JSON types: NaN and infinity become null, and numpy numbers become plain numbers."""
    if isinstance(value, dict):
        return {key: json_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(item) for item in value]
    if hasattr(value, "item") and not isinstance(value, str):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
