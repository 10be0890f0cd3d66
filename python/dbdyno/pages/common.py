"""Building blocks shared by several kinds of pages: columns from a short notation, warnings, tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dbdyno.base import decisions
from dbdyno.page import Cell, Column, Figure, Finding, Head, Row, Section, Table, Tone
from dbdyno.pages import format as fmt
from dbdyno.pages import reading

TONES: dict[str, Tone] = {"good": "good", "bad": "bad", "even": "even", "doubt": "doubt"}

TEXT_MOST = 600
"""Maximum number of characters of a warning on a page, so that none hides the others; the model has the full text."""
WARNINGS_MOST = 4
"""Maximum number of warnings on a terminal, so that they do not hide the results."""


def columns(spec: str, *more: Column) -> tuple[Column, ...]:
    """Return columns described by words `name:unit:label:least`, followed by `more`.

    In a label each `_` stands for a blank, and a label that is only `_` is empty. In place of a unit, a word may name a
    kind of drawn column (`bar`, `spark`, ...). `least` is a minimum width, or `page` or `text` for a column that is
    shown only there.
    """
    made = []
    for word in spec.split():
        name, unit, label, least = [*word.split(":"), "", "", ""][:4]
        kind: Any = unit if unit in ("bar", "side", "heights", "spark", "strip", "verdict") else "value"
        unit = "text" if kind != "value" else unit or "count"
        where: Any = "page" if least == "page" else "text" if least == "text" else "both"
        text = {"_": ""}.get(label, label.replace("_", " ") or name)
        made.append(Column(name, text, unit, kind, "", where, int(least) if least.isdigit() else 0))
    return (*made, *more)


def table(title: str, columns: Sequence[Column], rows: Iterable[Mapping[str, Any] | Row], **more: Any) -> Table:
    """Return a table of plain rows."""
    return Table(title, tuple(columns), tuple(row if isinstance(row, Row) else Row(row) for row in rows), **more)


def data(names: Iterable[str], rows: Iterable[Mapping[str, Any]]) -> Table:
    """Return the table for CSV output: these columns of the rows, values unchanged."""
    shown = tuple(Column(name, name) for name in names)
    return Table("", shown, tuple(Row({one.name: row.get(one.name) for one in shown}) for row in rows))


def flat_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Return the table for CSV output with the keys of the first row as columns."""
    return data(rows[0] if rows else (), rows)


def warnings(model: Mapping[str, Any], title: str, name: str = "gates", **more: Any) -> Section:
    """Return a section with the model's warnings and their next steps."""
    found = tuple(finding(one) for one in reading.entries(model, "warnings"))
    return Section(name, title, findings=found, **more)


def finding(given: Mapping[str, Any], weight: Tone = "doubt") -> Finding:
    """Return a warning as a finding."""
    text, step = (fmt.line(given.get(key) or "", TEXT_MOST) for key in ("text", "next"))
    code = fmt.line(given.get("code") or "")
    return Finding(text, weight, next=step, code=code)


def decision_head(model: Mapping[str, Any], kind: str, title: str, about: str = "", **more: Any) -> Head:
    """Return the head of a page with a decision: its word, the headline and the sentences of the verdict."""
    answer = decisions.decision_named(reading.dig(model, "verdict", "decision"))
    return Head(
        kind,
        title,
        "verdict",
        about,
        word=answer.word,
        tone=answer.tone,
        headline=fmt.line(reading.dig(model, "verdict", "headline") or ""),
        sentences=tuple(reading.strings(model, "verdict", "sentences")),
        section="Verdict",
        **more,
    )


def model_head(model: Mapping[str, Any], kind: str, title: str, name: str, about: str = "") -> Head:
    """Return the head of a page of a modelled machine, with the model's sentences."""
    return Head(kind, title, name, about, sentences=reading.sentences(model), section=kind)


def figures(model: Mapping[str, Any], *kinds: str) -> tuple[Figure, ...]:
    """Return figures of the given kinds for a model; the renderer leaves out a figure that has no data."""
    return tuple(Figure(kind, model) for kind in kinds)


def with_noun(number: Any, noun: str) -> str:
    """Return a number with its noun: `1 file`, `3 files`; "" if there is no number."""
    if number is None or number == 0:
        return ""
    return f"{fmt.count(number)} {noun}{'' if number == 1 else 's'}"


def arm(model: Mapping[str, Any], index: Any, **more: Any) -> Cell:
    """Return a cell with an arm's name in the colour that figures use for it."""
    names = reading.arm_names(dict(model))
    places = list(names)
    series = places.index(index) if index in places else None
    return Cell(reading.arm_name(names, index), series=series, **more)
