"""From evidence to the analysis model: estimates, intervals, verdict, and the data of every figure.

The model is written as analysis.json; every renderer reads it and computes nothing. Its parts are
described in docs/analysis.md.
"""

from __future__ import annotations

import contextlib
import math
from datetime import datetime
from typing import TYPE_CHECKING, Any

from dbdyno.errors import EvidenceError
from dbdyno.evidence.files import write_json
from dbdyno.evidence.run import Run
from dbdyno.study import pictures
from dbdyno.study.measures import QUANTILES, ArmMeasures, Measures, measure

if TYPE_CHECKING:
    from dbdyno.stats.blocks import BlockComparison
    from dbdyno.stats.decide import Verdict

SCHEMA = 1


def analyse(run: Run) -> dict[str, Any]:
    """Analyses the whole blocks of a run and writes analysis.json into its folder where it can.

    Raises `EvidenceError` when nothing can be analysed.
    """
    from dbdyno.evidence.query import connect

    measures = measure(run)
    connection, broken = connect(run)
    with connection:
        model = _model(run, measures, connection)
    model["warnings"] += [
        {"code": "torn part", "text": text, "next": "it is left out; the other blocks count"}
        for text in dict.fromkeys([*measures.broken, *broken])
    ]
    model = cleaned(model)
    with contextlib.suppress(
        EvidenceError
    ):  # a full or read-only disk: the model can be made again
        write_json(run.path / "analysis.json", model)
        brief = {key: model["verdict"][key] for key in ("decision", "headline")}
        if run.manifest.get("verdict") != brief:
            run.save(verdict=brief)
    return model


def _model(run: Run, measures: Measures, connection: Any) -> dict[str, Any]:
    from dbdyno.study import correlation, curve, gates, logs
    from dbdyno.study.method import engine, method

    kind = run.manifest["kind"]
    judge = run.manifest["plan"]["judge"]
    latencies = [arm.pooled() for arm in measures.arms]
    model: dict[str, Any] = {
        "schema": SCHEMA,
        "kind": kind,
        "run": run_facts(run, measures),
        "arms": [_arm(run, measures, at, latencies[at]) for at in range(len(measures.arms))],
        "metrics": [],
        "classical": [],
        "statements": pictures.statements(connection, measures),
        "figures": {
            "distribution": pictures.distribution(latencies),
            "quantile_ratio": pictures.quantile_ratio(measures, latencies, judge["level"]),
            "tail": pictures.tail(latencies),
            "blocks": [],
            "heatmap": pictures.heatmap(connection, measures),
            "waits": pictures.waits(connection, measures),
            "curve": None,
        },
        "method": method(run),
        "engine": engine(run),
    }
    if len(measures.arms) > 1:
        judged(model, measures, latencies, judge, headline_of(run))
    if kind == "aa":
        from dbdyno.study.noise import noise_verdict

        model["verdict"] = noise_verdict(measures, judge, headline_of(run))
    elif kind == "curve":
        curve.add(model, connection, measures)
    elif kind == "correlation":
        correlation.add(model, connection, measures, run)
    if "logs" in run.manifest:
        logs.add(model, connection, measures, run)
    if "verdict" not in model:
        model["verdict"] = {
            "decision": "unclear",
            "headline": "One arm was run; there is nothing to compare it with.",
            "sentences": [],
        }
    model["gates"], model["warnings"] = gates.examine(run, measures, model, latencies)
    return model


def judged(
    model: dict[str, Any],
    measures: Measures,
    latencies: pictures.Latencies,
    judge: dict[str, Any],
    headline: str,
) -> None:
    """Compares every arm with the base and puts metrics, verdict and tests into the model."""
    from dbdyno.stats.decide import decide

    comparisons = {
        arm.label: compare_arm(measures, at, judge, model["run"])
        for at, arm in enumerate(measures.arms)
        if at
    }
    verdict = decide(comparisons, baseline=measures.arms[0].label, headline=headline)
    model["metrics"] = _metric_rows(verdict)
    model["verdict"] = {
        "decision": verdict.decision,
        "headline": verdict.headline,
        "sentences": [s for s in verdict.sentences if s != verdict.headline],
    }
    model["classical"] = _classical(latencies)
    shown = dict.fromkeys((headline, "p50", "p99"))
    model["figures"]["blocks"] = [f for name in shown for f in pictures.by_block(measures, name)]


def compare_arm(
    measures: Measures, arm: int, judge: dict[str, Any], run: dict[str, Any]
) -> list[BlockComparison]:
    """All metrics of an arm against the base. In an open loop the rate is given, not measured."""
    from dbdyno.stats.blocks import compare_metric
    from dbdyno.stats.metrics import METRICS

    comparisons = []
    for metric in METRICS:
        if metric.name == "throughput" and run["open_loop"]:
            continue
        values = measures.metric(metric.name)
        n = min(len(values[0]), len(values[arm]))
        comparisons.append(
            compare_metric(
                metric,
                values[0][:n],
                values[arm][:n],
                level=judge["level"],
                threshold=judge["threshold"],
                randomised=run["randomised"],
            )
        )
    return comparisons


def headline_of(run: Run) -> str:
    """The metric of the verdict: the plan's, else the loop's default."""
    from dbdyno.stats.metrics import default_headline

    chosen = run.manifest["plan"]["judge"]["headline"]
    return str(chosen or default_headline("open" if is_open(run) else "closed"))


def is_open(run: Run) -> bool:
    """Whether all arms ran in an open loop."""
    return all(arm["rate_per_s"] for arm in run.manifest["arms"])


def run_facts(run: Run, measures: Measures) -> dict[str, Any]:
    """The run in the model."""
    manifest, blocks = run.manifest, measures.arms[0].blocks
    switch = manifest["switch"]
    slices = manifest.get("slice_ns")
    order = "randomised ABBA" if switch == "slices" else "random, mirrored from block to block"
    return {
        "id": run.id,
        "title": manifest["title"],
        "question": manifest["question"],
        "status": run.status,
        "started_at": manifest["started_at"],
        "duration_s": (blocks[-1].ended_ns - _started_ns(manifest)) / 1e9,
        "tool_version": manifest["tool_version"],
        "seed": manifest["seed"],
        "blocks_planned": manifest["blocks_planned"],
        "blocks_whole": len(blocks),
        "warmup_blocks": sum(block.kind == "warmup" for block in run.blocks()),
        "switch": switch,
        "slice_ms": slices / 1e6 if slices else None,
        "order": order,
        "randomised": True,
        "open_loop": is_open(run),
        "threshold": manifest["plan"]["judge"]["threshold"],
        "plan_toml": manifest["plan"]["toml"],
    }


def _started_ns(manifest: dict[str, Any]) -> float:
    return datetime.fromisoformat(manifest["started_at"]).timestamp() * 1e9


def _arm(run: Run, measures: Measures, at: int, latencies: Any) -> dict[str, Any]:
    about = run.manifest["arms"][at]
    return {
        "index": at,
        "name": about["name"],
        "description": about["description"],
        "changes": about["changes"],
        "sessions": about["sessions"],
        "rate_per_s": about["rate_per_s"],
        "baseline": at == 0,
        **arm_numbers(measures.arms[at], at, latencies),
    }


def arm_numbers(arm: ArmMeasures, at: int, latencies: Any) -> dict[str, Any]:
    """Counts and latencies of an arm over all its blocks."""
    import numpy as np

    reports = [own for block in arm.blocks for own in block.report["arms"] if own["arm"] == at]
    values = arm.values
    n = latencies.size
    between = np.nansum(values["count"] * (values["mean"] - _mean(values)) ** 2)
    spread = (np.nansum(values["m2"]) + between) / max(n - 1, 1)
    return {
        "ops": int(n),
        "errors": int(np.nansum(values["failed"])),
        "retries": sum(own["retries"] for own in reports),
        "skipped": int(np.nansum(values["skipped"])),
        "throughput_per_s": float(np.nanmean(values["throughput"])) if n else None,
        "mean_ns": _mean(values) if n else None,
        "sd_ns": math.sqrt(spread) if n > 1 else None,
        "quantiles_ns": {
            name: float(np.quantile(latencies, q)) if n else None for name, q in QUANTILES.items()
        },
        "max_ns": int(latencies[-1]) if n else None,
    }


def _mean(values: dict[str, Any]) -> float:
    """Mean over all operations, from the blocks' means."""
    import numpy as np

    weights = np.where(np.isfinite(values["mean"]), values["count"], 0.0)
    total = float(np.nansum(weights))
    return float(np.nansum(weights * np.nan_to_num(values["mean"]))) / total if total else math.nan


def _metric_rows(verdict: Verdict) -> list[dict[str, Any]]:
    rows = []
    for number, arm in enumerate(verdict.arms, 1):
        for c in arm.comparisons:
            rows.append({
                "arm": number, "baseline": 0, "metric": c.metric, "label": c.label,
                "unit": c.unit, "higher_is_better": c.higher_is_better,
                "base_value": c.base_value, "value": c.value, "ratio": c.ratio,
                "low": c.low, "high": c.high, "boot_low": c.boot_low, "boot_high": c.boot_high,
                "level": c.level, "p": c.p, "q": c.q, "blocks": c.blocks,
                "decision": c.decision, "words": c.words,
                "smallest_visible": c.smallest_visible, "blocks_needed": c.blocks_needed,
            })  # fmt: skip
    return rows


def _classical(latencies: pictures.Latencies) -> list[dict[str, Any]]:
    """Welch, Mann-Whitney, Kolmogorov-Smirnov over all operations: shown, never deciding."""
    from dbdyno.stats.classical import kolmogorov_smirnov, mann_whitney, welch

    rows = []
    for number in range(1, len(latencies)):
        base, other = latencies[0], latencies[number]
        if min(base.size, other.size) < 2:
            continue
        for test in (welch, mann_whitney, kolmogorov_smirnov):
            found = test(base, other)
            rows.append({
                "arm": number, "baseline": 0, "test": found.test, "statistic": found.statistic,
                "df": found.df, "log10_p": found.log10_p, "effect": found.effect,
                "note": found.note,
            })  # fmt: skip
    return rows


def analyse_pair(first: Run, second: Run) -> dict[str, Any]:
    """The base arms of two runs against each other; not written to either run."""
    one, two = measure(first), measure(second)
    if is_open(first) != is_open(second):
        raise EvidenceError("one run is an open loop, the other a closed one; they do not compare")
    arms = [_renamed(one.arms[0], first), _renamed(two.arms[0], second)]
    measures = Measures(arms, [*one.broken, *two.broken])
    latencies = [arm.pooled() for arm in arms]
    judge = first.manifest["plan"]["judge"]
    from dbdyno.study.method import engine, method

    model: dict[str, Any] = {
        "schema": SCHEMA,
        "kind": "experiment",
        "run": {**run_facts(first, measures), "randomised": False,
                "id": f"{first.id} and {second.id}",
                "title": f"{first.manifest['title']} against {second.manifest['title']}"},
        "arms": [
            {**_arm(run, Measures([arm], []), 0, values), "index": at, "name": arm.label,
             "baseline": at == 0}
            for at, (run, arm, values) in enumerate(
                zip((first, second), arms, latencies, strict=True))
        ],
        "statements": [],
        "figures": {
            "distribution": pictures.distribution(latencies),
            "quantile_ratio": pictures.quantile_ratio(measures, latencies, judge["level"]),
            "tail": pictures.tail(latencies), "heatmap": [], "waits": [], "curve": None,
        },
        "gates": [],
        "method": method(first),
        "engine": engine(first),
        "warnings": [{
            "code": "not interleaved",
            "text": "The two runs were made one after the other: what drifted between them counts "
                    "as difference.",
            "next": "put both variants as arms into one plan",
        }],
    }  # fmt: skip
    judged(model, measures, latencies, judge, headline_of(first))
    return cleaned(model)


def _renamed(arm: ArmMeasures, run: Run) -> ArmMeasures:
    from dataclasses import replace

    return replace(arm, label=f"{arm.name} ({run.id[-4:]})")


def cleaned(model: dict[str, Any]) -> dict[str, Any]:
    """The model as JSON values."""
    return {key: clean(value) for key, value in model.items()}


def clean(value: Any) -> Any:
    """JSON values: NaN and infinity become null, numpy's numbers plain ones."""
    if isinstance(value, dict):
        return {key: clean(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [clean(item) for item in value]
    if hasattr(value, "item") and not isinstance(value, str):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
