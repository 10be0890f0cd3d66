"""What several kinds of pages build alike: columns from words, warnings, sections of tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dbdyno.page import Cell, Column, Figure, Finding, Row, Section, Table, Tone
from dbdyno.pages import format as fmt
from dbdyno.pages import reading

TONES: dict[str, Tone] = {"good": "good", "bad": "bad", "even": "even", "doubt": "doubt"}

TEXT_MOST = 600
"""Characters of a warning on a page, so that none hides the others; the model has it whole."""
WARNINGS_MOST = 4
"""Warnings on a terminal: they must not hide what they warn about."""


def columns(spec: str, *more: Column) -> tuple[Column, ...]:
    """Columns from words `name:unit:label:least` (an underscore in a label is a blank; a mark's kind stands for its
    unit), then those given."""
    made = []
    for word in spec.split():
        name, unit, label, least = [*word.split(":"), "", "", ""][:4]
        kind: Any = unit if unit in ("bar", "side", "heights", "spark", "strip", "verdict") else "value"
        unit = "text" if kind != "value" else unit or "count"
        where: Any = "page" if least == "page" else "text" if least == "text" else "both"
        text = {"_": ""}.get(label, label.replace("_", " ") or name)
        made.append(Column(name, text, unit, kind, "", where, int(least) if least.isdigit() else 0))
    return (*made, *more)


def table(title: str, shown: Sequence[Column], rows: Iterable[Mapping[str, Any] | Row], **more: Any) -> Table:
    """A table of plain rows."""
    return Table(title, tuple(shown), tuple(row if isinstance(row, Row) else Row(row) for row in rows), **more)


def data(names: Iterable[str], rows: Iterable[Mapping[str, Any]]) -> Table:
    """What CSV holds: these columns of the rows, as they are."""
    shown = tuple(Column(name, name) for name in names)
    return Table("", shown, tuple(Row({one.name: row.get(one.name) for one in shown}) for row in rows))


def flat(rows: Sequence[Mapping[str, Any]]) -> Table:
    """What CSV holds where the rows name the columns themselves."""
    return data(rows[0] if rows else (), rows)


def warnings(model: Mapping[str, Any], title: str, name: str = "gates", **more: Any) -> Section:
    """The warnings with their next steps."""
    found = tuple(finding(one) for one in reading.entries(model, "warnings"))
    return Section(name, title, findings=found, **more)


def finding(given: Mapping[str, Any], weight: Tone = "doubt") -> Finding:
    """A warning as a finding."""
    text, step = (fmt.line(given.get(key) or "", TEXT_MOST) for key in ("text", "next"))
    code = fmt.line(given.get("code") or "")
    return Finding(text, weight, next=step, code=code)


def figures(model: Mapping[str, Any], *kinds: str) -> tuple[Figure, ...]:
    """These figures of a model; one without data is not drawn."""
    return tuple(Figure(kind, model) for kind in kinds)


def counted(number: Any, noun: str) -> str:
    """`1 file`, `3 files`; nothing of none."""
    if number is None or number == 0:
        return ""
    return f"{fmt.count(number)} {noun}{'' if number == 1 else 's'}"


def arm(model: Mapping[str, Any], index: Any, **more: Any) -> Cell:
    """An arm's name in the colour that figures give it."""
    names = reading.arm_names(dict(model))
    places = list(names)
    series = places.index(index) if index in places else None
    return Cell(reading.arm_name(names, index), series=series, **more)
