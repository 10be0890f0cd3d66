"""Builder of pages about snapshots, and of other models made of sections with tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dbdyno.page import Cell, Column, Finding, Head, Page, Row, Section, Table, Tone
from dbdyno.pages import common, reading
from dbdyno.pages import format as fmt
from dbdyno.pages.reading import Analysis

_TONES: dict[str, Tone] = {
    "better": "good",
    "not comparable": "doubt",
    "cannot tell": "doubt",
    "ok": "good",
    "data complete": "good",
    "restart": "even",
    "partial": "doubt",
    "evicted": "doubt",
    "clock stepped": "doubt",
    "plans changed": "doubt",
}
_KINDS = {
    "report": "Report of an interval",
    "compare": "Comparison of two periods",
    "baseline": "Baseline",
    "sessions": "Active sessions of an interval",
    "plans": "Plans of statements",
}


def page(model: Analysis) -> Page:
    """Return the page: head, warnings, figures, and a section for each section of the model."""
    drawn = common.figures(model, "snapshot_series", "cells_changes")
    made = [section(one, at) for at, one in enumerate(reading.entries(model, "sections"))]
    opening = 1 if made and made[0].name == "s-happened" else 0
    return Page(
        _head(model),
        (
            *made[:opening],
            common.warnings(model, "To know", "warnings", where="page"),
            Section("figures", "Figures", figures=drawn, where="page"),
            *made[opening:],
            common.warnings(model, "To know", "warnings", where="text"),
        ),
        capitals=True,
    )


def section(analysis: Analysis, at: int = 0) -> Section:
    """Return a section of a model: tables, what was not measured, notes."""
    lacks = tuple(
        Finding(f"not measured: {fmt.line(one['what'])} ({fmt.line(one['why'])})", next=fmt.line(one.get("next") or ""))
        for one in reading.entries(analysis, "not_measured")
    )
    return Section(
        f"s-{fmt.line(analysis.get('name') or at)}",
        fmt.line(analysis.get("title") or analysis.get("name") or "section"),
        fmt.line(analysis.get("about") or ""),
        tables=tuple(table(one) for one in reading.entries(analysis, "tables")),
        figures=common.figures(analysis["drawn"], *reading.strings(analysis, "figures"))
        if analysis.get("drawn")
        else (),
        parts=(Section("", "", findings=lacks),) if lacks else (),
        notes=tuple(fmt.line(note) for note in reading.strings(analysis, "notes")),
    )


def table(analysis: Analysis) -> Table:
    """Return a table of a model; a column named `text` holds statements, and rows with a `depth` form a tree."""
    rows = reading.entries(analysis, "rows")
    leads = fmt.branches([int(row.get("depth") or 0) for row in rows])
    return Table(
        fmt.line(analysis.get("title") or ""),
        tuple(_column(one) for one in reading.entries(analysis, "columns")),
        tuple(_row(row, lead) for row, lead in zip(rows, leads, strict=True)),
        left_out=analysis.get("left_out") or 0,
        look="loose",
    )


def _column(given: Mapping[str, Any]) -> Column:
    is_sql = given["name"] == "text"
    return Column(
        given["name"],
        fmt.line(given.get("label") or ""),
        "code" if is_sql else str(given.get("unit") or "text"),
        where="page" if given.get("page_only") else "both",
        narrowest=24 if is_sql or given["name"] == "what" else 0,  # 0: identifiers are not folded
    )


def _row(given: Mapping[str, Any], lead: str) -> Row:
    word = given.get("verdict")
    if lead:
        given = {**given, "tree": Cell(given.get("tree"), lead=lead)}
    why = fmt.line(given.get("why") or "")
    word = "at least" if why.startswith("at least") else word
    return Row(given, "" if word in (None, "ok") else fmt.line(word), why)


def _head(model: Analysis) -> Head:
    """Return the head: the finding, its evidence, start and end of the interval, facts."""
    facts = reading.dig(model, "facts") or {}
    verdict = reading.dig(model, "verdict") or {}
    word = fmt.line(verdict.get("word") or "ok")
    alerts = len(reading.entries(model, "warnings"))
    finding = fmt.line(verdict.get("title") or verdict.get("why") or "", 300)
    return Head(
        _KINDS.get(str(model.get("page")), "Snapshots"),
        fmt.line(facts.get("title") or "snapshots"),
        name="snapshot_head",
        about=fmt.span(facts.get("seconds")) if facts.get("seconds") else "",
        question=_stretch(facts),
        word=word,
        tone=_TONES.get(word, "bad"),
        headline=finding or "no reset, no restart, no crash, no eviction",
        sentences=reading.sentences(verdict),
        next=fmt.line(verdict.get("next") or "", 300),
        chips=tuple(_chips(facts)),
        alerts=((common.with_noun(alerts, "note"), "warnings"),) if alerts else (),
        section="Interval",
    )


def _stretch(facts: Mapping[str, Any]) -> str:
    """Return the start and end of an interval, or the description of both periods of a comparison."""
    periods = reading.strings(facts, "periods")
    return "; ".join(periods) or " → ".join(_end(facts[name]) for name in ("first", "last") if facts.get(name))


def _end(end: Mapping[str, Any]) -> str:
    note = fmt.line(end.get("note") or "", 40)
    return f"{end.get('number')} at {fmt.moment(end.get('at'))}" + (f" “{note}”" if note else "")


def _chips(facts: Mapping[str, Any]) -> list[str]:
    engine = fmt.line(f"{facts.get('engine') or ''} {facts.get('version') or ''}".strip(), 60)
    names = facts.get("databases") or []
    found = [engine]
    if len(names) > 1:
        found.append(fmt.line("databases " + ", ".join(map(str, names)), 60))
    elif names:
        found.append(f"database {fmt.line(names[0], 40)}")
    if (facts.get("snapshots") or 0) > 2:
        found.append(f"{facts['snapshots']} snapshots")
    return [one for one in found if one]
