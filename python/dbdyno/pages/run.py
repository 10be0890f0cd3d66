"""Builder of the page about a run, or about two sets of traces: the answer first, then the evidence for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dbdyno.page import Figure, Finding, Head, Page, Section, Tone
from dbdyno.pages import (
    common,
    explanation,
    reading,
    run_about,
    run_factors,
    run_metrics,
    run_modelled,
    run_order,
    run_rows,
    run_traces,
)
from dbdyno.pages import format as fmt
from dbdyno.pages.reading import Analysis

_KINDS = {
    "experiment": "Experiment",
    "aa": "One arm against itself",
    "curve": "Curve",
    "sweep": "Sweep",
    "tune": "Race",
    "correlation": "Correlation",
    "probe": "Probe",
    "traces": "Comparison of traces",
}
_FIGURES = (
    "distribution",
    "quantile_ratio",
    "tail",
    "blocks",
    "heatmap",
    "waits",
    "over_time",
    "curve",
    "sweep",
    "correlation",
    "contributions",
)
_STATES: dict[Any, tuple[str, Tone]] = {True: ("holds", "good"), False: ("fails", "bad"), None: ("not known", "doubt")}
_EFFECTS = {"withholds": "withholds the verdict", "provisional": "makes the verdict provisional"}


def page(model: Analysis) -> Page:
    """Return the page about a run; for an empty run it says that there is no result."""
    names = reading.arm_names(model)
    places, baseline = list(names), reading.baseline(model)
    run = reading.dig(model, "run") or {}
    known = [(name, run.get(key)) for name, key in (("run", "id"), ("dbdyno", "tool_version"))]
    foot = " · ".join(f"{name} {fmt.line(value)}" for name, value in known if value is not None)
    return Page(
        _head(model, run),
        tuple(_sections(model)),
        series=tuple(names.values()),
        baseline=places.index(baseline) if baseline in places else None,
        data=lambda: common.flat_table(run_rows.rows(model)),
        foot=(foot,) if foot else (),
    )


def _sections(model: Analysis) -> Iterator[Section]:
    if model["kind"] != "traces":  # a comparison of traces names every cause in its verdict
        yield from explanation.sections(model)
    yield from run_traces.answer(model)
    yield from run_order.sections(model)
    yield from run_about.arms(model)
    yield from run_modelled.compare_arms(model)
    yield from run_about.errors(model)
    yield from run_modelled.logs(model)
    yield from run_factors.sections(model)
    yield from run_factors.race(model)
    yield from _pictures(model)
    yield from run_about.correlation(model)
    yield from run_metrics.sections(model)
    yield from _terminal_sections(model)
    yield from run_modelled.sections(model)
    yield from run_traces.compared_sections(model)
    yield from run_about.classical(model)
    yield from run_about.statements(model)
    yield gates(model)
    yield from run_about.method(model)
    yield from run_about.engine(model)
    yield from run_about.run(model)


def _head(model: Analysis, run: Mapping[str, Any]) -> Head:
    """Return the head: the decision in a word, the headline, and the amount of evidence."""
    return common.decision_head(
        model,
        _KINDS[model["kind"]],
        fmt.line(run.get("title") or "Untitled run"),
        fmt.moment(run.get("started_at")) if run.get("started_at") else "",
        question=fmt.line(run.get("question") or ""),
        chips=tuple(_chips(model, run)),
        alerts=tuple((words, "gates") for words in _alerts(model)),
    )


def _chips(model: Analysis, run: Mapping[str, Any]) -> Iterator[str]:
    whole, planned = fmt.number(run.get("blocks_whole")), fmt.number(run.get("blocks_planned"))
    ops = [fmt.number(arm.get("ops")) for arm in reading.entries(model, "arms")]
    if run.get("status") not in (None, "complete"):
        yield fmt.line(run["status"], 20)
    if whole is not None:
        of = f" of {fmt.count(planned)}" if planned is not None and planned != whole else ""
        yield f"{fmt.count(whole)}{of} {'block' if whole == 1 and not of else 'blocks'}"
    if any(ops):
        yield f"{fmt.count(sum(op or 0 for op in ops))} operations"
    if fmt.number(run.get("duration_s")) is not None:
        yield fmt.span(run["duration_s"])
    if run.get("seed") is not None:
        yield f"seed {fmt.line(run['seed'], 24)}"


def _alerts(model: Analysis) -> Iterator[str]:
    """Yield the numbers of failed gates and of warnings, so that they are seen at the top."""
    failed = sum(gate.get("ok") is False for gate in reading.entries(model, "gates"))
    if failed:
        yield f"{common.with_noun(failed, 'gate')} failed"
    if reading.entries(model, "warnings"):
        yield common.with_noun(len(reading.entries(model, "warnings")), "warning")


def gates(model: Analysis) -> Section:
    """Return the gates, failed ones first with their effect on the verdict, and the warnings."""
    given = reading.entries(model, "gates")
    made = tuple(_gate(gate) for state in (False, None, True) for gate in given if _state(gate) is state)
    warnings = tuple(common.finding(one) for one in reading.entries(model, "warnings"))
    return Section("gates", "Gates and warnings", findings=(*made, *warnings), most=common.WARNINGS_MOST)


def _state(gate: Mapping[str, Any]) -> bool | None:
    ok = gate.get("ok")
    return ok if ok in (True, False) else None


def _gate(gate: Mapping[str, Any]) -> Finding:
    state = _state(gate)
    word, tone = _STATES[state]
    effect = _EFFECTS.get(str(gate.get("effect")), "") if state is False else ""
    step = fmt.line(gate.get("next") or "") if state is False else ""
    text = fmt.line(gate.get("text") or "")
    return Finding(text, tone, next=step, name=fmt.line(gate.get("name") or ""), word=word, code=effect)


def _pictures(model: Analysis) -> Iterator[Section]:
    """Yield the figures, first the one for this kind of run, and the shapes fitted to curves."""
    kinds = sorted(_FIGURES, key=lambda kind: kind != model["kind"])
    yield Section("figures", "Figures", figures=common.figures(model, *kinds), where="page")
    yield from run_metrics.shapes(model)


def _terminal_sections(model: Analysis) -> Iterator[Section]:
    """Yield sections that only a terminal draws: curves as bars, blocks and points as lines."""
    if reading.curves(model):
        yield Section("curve", "Median commit time by redo size", figures=(Figure("curve", model),), where="text")
    yield from run_metrics.blocks(model)
    yield from run_metrics.sweep(model)
