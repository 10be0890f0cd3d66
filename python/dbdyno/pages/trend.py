"""The page of a trend: the last change first, then each arm over its runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypedDict

from dbdyno import decisions
from dbdyno.page import Cell, Column, Head, Page, Row, Section, Table
from dbdyno.pages import common, reading
from dbdyno.pages import format as fmt
from dbdyno.pages.common import columns, counted
from dbdyno.pages.reading import Analysis

Given = Mapping[str, Any]


class Run(TypedDict, total=False):
    """A run: by arm its value with both ends of the interval."""

    run: str
    started_at: str
    blocks: int
    values: dict[str, float | None]
    lows: dict[str, float | None]
    highs: dict[str, float | None]
    failed: dict[str, float]
    canaries: dict[str, float]
    off: dict[str, float]
    comparable: bool
    unread: str


def page(model: Analysis) -> Page:
    """The page."""
    answer = decisions.answer(reading.dig(model, "verdict", "decision"))
    runs = reading.listed(Run, model, "runs")
    alerts = counted(len(reading.entries(model, "warnings")), "warning")
    head = Head(
        "Trend",
        fmt.line(model.get("title") or ""),
        "verdict",
        word=answer.word,
        tone=answer.tone,
        headline=fmt.line(reading.dig(model, "verdict", "headline") or ""),
        sentences=tuple(reading.strings(model, "verdict", "sentences")),
        chips=(counted(len(runs), "run"), fmt.line(model.get("label") or "")),
        alerts=((alerts, "warnings"),) if alerts else (),
        section="Verdict",
    )
    sections = (_arms(model, runs), _runs(model, runs), common.warnings(model, "Warnings", "warnings"))
    return Page(head, sections, data=lambda: common.flat(list(_flat(model, runs))))


def _arms(model: Analysis, runs: list[Run]) -> Section:
    rows = []
    for arm in reading.entries(model, "arms"):
        name = str(arm.get("name") or "")
        line = [value for run in runs if _counts(run, name) and (value := (run.get("values") or {}).get(name))]
        changes = [fmt.change(one.get("ratio")) for one in arm.get("changes") or []]
        rows.append(
            {
                "name": fmt.line(name),
                "runs": arm.get("runs"),
                "first": line[0] if line else None,
                "last": line[-1] if line else None,
                "changes": ", ".join(changes) or "none",
                "line": Cell(line),
            }
        )
    unit = _unit(model)
    shown = (
        *columns("name:text:arm runs:count"),
        Column("first", "first", unit),
        Column("last", "last", unit),
        Column("changes", "changes of its level", "text"),
        Column("line", "in order of time", kind="spark"),
    )
    about = "A change is told where the runs before and after differ by more than a random order of them does."
    drawn = common.figures(model, "trend")
    return Section("trend_arms", "The arms over time", about, tables=(common.table("", shown, rows),), figures=drawn)


def _runs(model: Analysis, runs: list[Run]) -> Section:
    names = [str(arm.get("name") or "") for arm in reading.entries(model, "arms")]
    begins = {one.get("run"): name for name, one in _changes(model)}
    unit = _unit(model)
    shown = (
        *columns("started:text run:text blocks:count"),
        *(Column(f"arm{at}", fmt.line(name, 30), unit) for at, name in enumerate(names)),
        *columns("cpu:change:CPU_canary fsync:change:fsync_canary mark:text:_"),
    )
    rows = []
    for at, run in enumerate(runs):
        off = run.get("off") or {}
        marks = [f"{begins[at]} changed"] if at in begins else []
        marks += [f"{fmt.line(name, 30)} failed" for name in run.get("failed") or {}]
        marks += [] if run.get("comparable") else ["not comparable"]
        values = run.get("values") or {}
        cells: dict[str, object] = {f"arm{number}": values.get(name) for number, name in enumerate(names)}
        cells |= {
            "started": str(run.get("started_at") or "")[:16].replace("T", " "),
            "run": fmt.line(run.get("run") or ""),
            "blocks": run.get("blocks"),
            "cpu": off.get("cpu_ns"),
            "fsync": off.get("fsync_ns"),
            "mark": ", ".join(marks),
        }
        rows.append(Row(cells, style="" if run.get("comparable") else "dim"))
    return Section("trend_runs", "The runs", tables=(Table("", shown, tuple(rows)),))


def _counts(run: Given, arm: str) -> bool:
    return bool(run.get("comparable")) and arm not in (run.get("failed") or {})


def _changes(model: Analysis) -> Iterator[tuple[str, Given]]:
    for arm in reading.entries(model, "arms"):
        for one in arm.get("changes") or []:
            yield fmt.line(arm.get("name") or ""), one


def _unit(model: Analysis) -> str:
    return "per_s" if model.get("unit") == "1/s" else "ns"


def _flat(model: Analysis, runs: list[Run]) -> Iterator[dict[str, object]]:
    begins = {(name, one.get("run")) for name, one in _changes(model)}
    for at, run in enumerate(runs):
        for name, value in (run.get("values") or {}).items():
            yield {
                "run": run.get("run"),
                "started_at": run.get("started_at"),
                "arm": name,
                "metric": model.get("metric"),
                "value": value,
                "low": (run.get("lows") or {}).get(name),
                "high": (run.get("highs") or {}).get(name),
                "comparable": _counts(run, name),
                "changed": (fmt.line(name), at) in begins,
            }
