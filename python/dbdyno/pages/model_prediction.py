"""Builders of pages about calibrated machines: what was calibrated, and how a machine predicts the arms of a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dbdyno.base.json_types import TableRow
from dbdyno.page import Cell, Page, Row, Section, Table, Tone
from dbdyno.pages import format as fmt
from dbdyno.pages import reading
from dbdyno.pages.common import columns, data, model_head, table
from dbdyno.pages.reading import Analysis

PREDICTED = ("arm", "sessions", "calibrated", "metric", "live", "low", "high", "model", "error", "inside")
CALIBRATED = ("section", "key", "value", "unit", "low", "high", "source", "how")
_AIMS = {"p50": 0.10, "p99": 0.25}
_SHOWN = ("throughput", "mean", "p50", "p90", "p99")


def calibration_page(model: Analysis) -> Page:
    """Return the page about a calibrated machine: every parameter with its interval and where it comes from."""
    shown = columns("key:text:parameter value:words unit:left interval:words:95_%_interval source:text how:text")
    rows = [_parameter(row) for row in reading.entries(model, "parameters")]
    statements = columns("text:text:statement user:ns:user_CPU system:ns:system_CPU wal:bytes:log")
    costs = [_statement(row) for row in reading.entries(model, "statements")]
    return Page(
        model_head(model, "Calibrated machine", fmt.line(model.get("title") or "a machine"), "calibrated_machine"),
        (
            Section(
                "parameters",
                "Parameters",
                "Measured, fitted to the median of a run, or a default because nothing was measured.",
                tables=(table("", shown, rows),),
            ),
            Section("statements", "Statements", tables=(table("", statements, costs),)),
            Section("toml", "The machine", text=fmt.text(model.get("toml") or ""), text_title="As TOML", where="page"),
        ),
        data=lambda: data(CALIBRATED, reading.entries(model, "parameters")),
    )


def _parameter(row: Mapping[str, Any]) -> TableRow:
    low, high = fmt.number(row.get("low")), fmt.number(row.get("high"))
    return {
        "key": fmt.line(row.get("key") or ""),
        "value": fmt.line(row.get("value") or "", 60),
        "unit": fmt.line(row.get("unit") or ""),
        "interval": f"{low:.4g} to {high:.4g}" if low is not None and high is not None else "",
        "source": fmt.line(row.get("source") or ""),
        "how": fmt.line(row.get("how") or "", 200),
    }


def _statement(row: Mapping[str, Any]) -> TableRow:
    def ns(key: str) -> float:
        return (fmt.number(row.get(key)) or 0.0) * 1e3

    text = fmt.line(row.get("text") or "", 120)
    return {"text": text, "user": ns("user_us"), "system": ns("system_us"), "wal": fmt.number(row.get("wal_bytes"))}


def prediction_page(model: Analysis) -> Page:
    """Return the page about a prediction: a table of all arms, then each arm with its waits."""
    arms = reading.entries(model, "arms")
    about = f"{fmt.line(model.get('machine') or '', 200)}; run {fmt.line(model.get('run') or '', 200)}"
    return Page(
        model_head(model, "Prediction", fmt.line(model.get("title") or "a prediction", 200), "prediction", about),
        (
            Section(
                "errors",
                "Error of the model for each arm",
                "Model / live - 1. Targets: at most 10 % at the median, 25 % at p99.",
                tables=(_errors(arms),),
            ),
            Section("arms", "Arms", parts=tuple(_arm(arm) for arm in arms)),
        ),
        data=lambda: data(PREDICTED, ({**arm, **row} for arm in arms for row in reading.entries(arm, "metrics"))),
    )


def _errors(arms: list[TableRow]) -> Table:
    rows = []
    for arm in arms:
        by = {fmt.line(row.get("metric") or ""): row for row in reading.entries(arm, "metrics")}
        cells = {name: _error(name, by.get(name, {}), bool(arm.get("calibrated"))) for name in _SHOWN}
        name = fmt.line(arm.get("arm") or "")
        rows.append(
            Row(
                {"arm": f"{name} (fitted)" if arm.get("calibrated") else name, "sessions": arm.get("sessions"), **cells}
            )
        )
    shown = columns("arm:text sessions:count throughput:words mean:words p50:words p90:words p99:words")
    return Table("", shown, tuple(rows))


def _error(name: str, row: Mapping[str, Any], fitted: bool) -> Cell:
    error = fmt.number(row.get("error"))
    if error is None:
        return Cell(fmt.NONE)
    tone: Tone = ""
    if name in _AIMS and not fitted:
        tone = "good" if abs(error) <= _AIMS[name] else "bad"
    return Cell(f"{error:+.1%}", tone=tone)


def _arm(arm: Mapping[str, Any]) -> Section:
    name, sessions = fmt.line(arm.get("arm") or ""), fmt.count(arm.get("sessions"))
    shown = columns(
        "metric:text live:words low:words:95_%_low high:words:95_%_high model:words error:words within:words"
    )
    rows = [_metric(row) for row in reading.entries(arm, "metrics")]
    waits = columns("class:text:waits_of_a_transaction live:ns model:ns")
    waited = [
        {
            "class": fmt.line(row.get("class") or ""),
            "live": fmt.number(row.get("live")),
            "model": fmt.number(row.get("model")),
        }
        for row in reading.entries(arm, "waits")
    ]
    return Section(
        f"arm-{name}",
        f"{name}, {sessions} session{'' if sessions == '1' else 's'}",
        sentences=(_says(arm),),
        tables=(table("", shown, rows), *([table("", waits, waited)] if waited else [])),
        notes=tuple(fmt.line(text, 300) for text in reading.strings(arm, "notes")),
    )


def _says(arm: Mapping[str, Any]) -> str:
    cores, device, commits = (fmt.number(arm.get(key)) or 0.0 for key in ("cores", "device", "commits_per_flush"))
    shared = f", {fmt.significant(commits)} commits share a flush" if commits else ""
    return f"In the model the cores are {cores:.0%} busy and the log's device is {device:.0%} busy{shared}."


def _metric(row: Mapping[str, Any]) -> TableRow:
    name = fmt.line(row.get("metric") or "")
    error = fmt.number(row.get("error"))
    return {
        "metric": name,
        **{key: _value(name, row.get(key)) for key in ("live", "low", "high", "model")},
        "error": fmt.NONE if error is None else f"{error:+.1%}",
        "within": "yes" if row.get("inside") else "no",
    }


def _value(name: str, value: Any) -> str:
    number = fmt.number(value)
    if number is None:
        return fmt.NONE
    if name == "throughput":
        return (
            f"{number:,.4g}/s".replace(",", fmt.THIN) if number < 10_000 else f"{number:,.0f}/s".replace(",", fmt.THIN)
        )
    return f"{number / 1e6:.4g} ms" if number >= 1e6 else f"{number / 1e3:.4g} us"
