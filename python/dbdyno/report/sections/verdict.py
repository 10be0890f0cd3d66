"""The answer first: the decision as a word, the headline, and how much evidence there is."""

from __future__ import annotations

from dbdyno.pages import format as fmt
from dbdyno.pages import reading
from dbdyno.pages.reading import Analysis
from dbdyno.report.sections import base

_KINDS = {
    "experiment": "Experiment",
    "aa": "One arm against itself",
    "curve": "Curve",
    "sweep": "Sweep",
    "correlation": "Correlation",
    "probe": "Probe",
    "traces": "Comparison of traces",
}


def view(analysis: Analysis) -> base.View:
    """Always there: also of an empty run the page says that nothing can be told."""
    run = reading.dig(analysis, "run") or {}
    return {
        "kind": _KINDS[analysis["kind"]],
        "started": fmt.moment(run.get("started_at")) if run.get("started_at") else "",
        "title": fmt.line(run.get("title") or "Untitled run"),
        "question": fmt.line(run.get("question") or ""),
        "decision": base.decision(reading.dig(analysis, "verdict", "decision")),
        "headline": fmt.line(reading.dig(analysis, "verdict", "headline") or ""),
        "sentences": reading.strings(analysis, "verdict", "sentences"),
        "chips": _chips(analysis),
        "alerts": _alerts(analysis),
    }


def _chips(analysis: Analysis) -> list[str]:
    run = reading.dig(analysis, "run") or {}
    whole, planned = fmt.number(run.get("blocks_whole")), fmt.number(run.get("blocks_planned"))
    ops = [fmt.number(arm.get("ops")) for arm in reading.entries(analysis, "arms")]
    chips = []
    if run.get("status") not in (None, "complete"):
        chips.append(fmt.line(run["status"], 20))
    if whole is not None:
        of = f" of {fmt.count(planned)}" if planned is not None and planned != whole else ""
        chips.append(f"{fmt.count(whole)}{of} {'block' if whole == 1 and not of else 'blocks'}")
    if any(ops):
        chips.append(f"{fmt.count(sum(op or 0 for op in ops))} operations")
    if fmt.number(run.get("duration_s")) is not None:
        chips.append(fmt.span(run["duration_s"]))
    if run.get("seed") is not None:
        chips.append(f"seed {fmt.line(run['seed'], 24)}")
    return chips


def _alerts(analysis: Analysis) -> list[str]:
    """How many gates failed and warnings there are, so that nobody misses them below."""
    failed = sum(gate.get("ok") is False for gate in reading.entries(analysis, "gates"))
    warnings = len(reading.entries(analysis, "warnings"))
    alerts = []
    if failed:
        alerts.append(f"{failed} {'gate' if failed == 1 else 'gates'} failed")
    if warnings:
        alerts.append(f"{warnings} {'warning' if warnings == 1 else 'warnings'}")
    return alerts


SECTION = base.Section("verdict", "Verdict", view)
