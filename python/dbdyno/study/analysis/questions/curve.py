"""Analysis of a study whose answer is a curve: commit time over redo size, one curve per arm with a separate fit."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from dbdyno.base.errors import StatsError
from dbdyno.base.json_types import JsonObject
from dbdyno.study.analysis.contract.rows import Model, VerdictRow
from dbdyno.study.analysis.measured.measures import ArmMeasures, Measures

if TYPE_CHECKING:
    from dbdyno.stats.curve import CurveFit

Columns = JsonObject
POINTS_SHOWN = 2000
NEAR = 0.25
_UNITS = {"B": 1, "kB": 1024, "MB": 2**20, "GB": 2**30}


def add(model: Model, connection: Any, measures: Measures) -> None:
    """Fit a curve to the commits of each arm, and add the curves and the resulting verdict to the model."""
    add_curves(model, [(arm.label, points(connection, arm)) for arm in measures.arms])


def points(connection: Any, arm: ArmMeasures) -> Columns:
    """Return, for each commit of an arm, its redo size, its time, the redo not yet flushed, and its block."""
    blocks = [block.index for block in arm.blocks]
    columns: Columns = connection.execute(
        "select redo_bytes, elapsed_ns, unflushed_bytes, block from calls where kind = 'commit'"
        " and (error is null or coalesce(expected, list_contains($3::varchar[], error))) and redo_bytes is not null"
        " and block in (select unnest($1::int[])) and arm = $2 order by started_ns",
        [blocks, arm.name, list(arm.expected)],
    ).fetchnumpy()
    return columns


def add_curves(model: Model, found: list[tuple[str, Columns]]) -> None:
    """Add one curve per entry to the model, in the order of its arms, each with a separate fit."""
    several = len(found) > 1
    curves, verdicts = [], []
    for at, (label, columns) in enumerate(found):
        curve, verdict = _fit(columns, model if not at else {"engine": {"settings": []}})
        if curve is not None:
            curves.append({"arm": at, **curve})
        if several:
            verdict["headline"] = f"{label}: {verdict['headline']}"
        verdicts.append(verdict)
    if curves:
        model["figures"]["curve"] = {"x_label": "redo bytes since the last commit", "curves": curves}
    rank = ["found", "not found", "unclear"]
    first = min(verdicts, key=lambda verdict: rank.index(verdict["decision"]))
    rest = [v for v in verdicts if v is not first]
    others = [text for v in rest for text in (v["headline"], *v["sentences"])]
    model["verdict"] = {**first, "sentences": [*first["sentences"], *others]}


def _fit(columns: Columns, model: Model) -> tuple[dict[str, object] | None, VerdictRow]:
    """Return one arm's curve for the figure (None if no curve can be fitted), and the verdict on it."""
    from dbdyno.stats.curve import fit_curve

    redo, elapsed = columns["redo_bytes"], columns["elapsed_ns"]
    try:
        fit = fit_curve(redo, elapsed, columns["block"])
    except StatsError as error:
        return None, {
            "decision": "unclear",
            "headline": f"No curve: {error.message}.",
            "sentences": [error.next_step] if error.next_step else [],
        }
    return _figure(fit, redo, elapsed), {
        "decision": "found" if fit.found else "not found",
        "headline": fit.sentence,
        "sentences": [*_reasons(fit), *_left_to_wait_for(columns), *_wal_buffers(model, fit)],
    }


def _figure(fit: CurveFit, redo: Any, elapsed: Any) -> dict[str, object]:
    step = -(-len(redo) // POINTS_SHOWN) or 1
    return {
        "bins": [
            {"redo_bytes": b.redo_bytes, "median_ns": b.median_ns, "low_ns": b.low_ns, "high_ns": b.high_ns, "n": b.n}
            for b in fit.bins
        ],
        "points": {"redo_bytes": redo[::step].tolist(), "elapsed_ns": elapsed[::step].tolist()},
        "fit": {"redo_bytes": list(fit.fit_redo_bytes), "elapsed_ns": list(fit.fit_elapsed_ns)},
        "models": [
            {"name": m.name, "parameters": m.parameters, "bic": m.bic, "cv_error": m.cv_error, "chosen": m.chosen}
            for m in fit.models
        ],
        "period_bytes": fit.period_bytes,
        "found": fit.found,
        "sentence": fit.sentence,
    }


def _reasons(fit: CurveFit) -> list[str]:
    if fit.found or not fit.reasons:
        return []
    return [f"Evidence against a sawtooth: {'; '.join(fit.reasons)}."]


def _left_to_wait_for(columns: Columns) -> list[str]:
    """Return a sentence on how much redo was still to be flushed when the commit began; empty if unknown."""
    import numpy as np

    if np.any(np.ma.getmaskarray(columns["unflushed_bytes"])):
        return []
    redo, unflushed = columns["redo_bytes"], columns["unflushed_bytes"]
    large = redo >= np.quantile(redo, 0.5)
    share = float(np.median(unflushed[large] / np.maximum(redo[large], 1)))
    if share > 0.9:
        return [
            "Nearly all of a transaction's redo was still to be flushed when its commit began "
            f"({share:.0%} at the median): the log writer had written almost nothing before."
        ]
    return [
        f"At the median {share:.0%} of a large transaction's redo was still to be flushed when "
        "its commit began: the log writer had already written the rest."
    ]


def _wal_buffers(model: Model, fit: CurveFit) -> list[str]:
    """Return a sentence if a bend is near the size of the log buffer."""
    settings = {s["name"]: s["value"] for s in model["engine"]["settings"]}
    text = str(settings.get("wal_buffers", ""))
    match = re.fullmatch(r"(\d+)\s*(B|kB|MB|GB)", text)
    chosen = next((m.name for m in fit.models if m.chosen), "")
    if match is None or chosen not in ("broken line", "rise to a plateau"):
        return []
    size = int(match[1]) * _UNITS[match[2]]
    bend = _bend(fit)
    if abs(bend - size) > NEAR * size:
        return []
    return [
        f"The bend is near wal_buffers = {text}: beyond it a session must write log pages "
        "itself while it inserts, so less is left for the commit to write."
    ]


def _bend(fit: CurveFit) -> float:
    """Return the redo size at which the fitted line bends: where its slope changes most [bytes]."""
    import numpy as np

    x, y = np.asarray(fit.fit_redo_bytes), np.asarray(fit.fit_elapsed_ns)
    return float(x[int(np.argmax(np.abs(np.diff(y, 2)))) + 1])
