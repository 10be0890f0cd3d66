"""Pages about cells as HTML: head, findings, then each section with its figures and tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dbdyno.pages import format as fmt
from dbdyno.pages import reading
from dbdyno.report.cells import arranged
from dbdyno.pages.reading import Analysis
from dbdyno.report.sections import base, pictures
from dbdyno.report.snapshot import page as tables

_KINDS = {
    "report": "Report of a recording of storage cells",
    "show": "What the storage cells say",
    "diff": "What the storage cells did",
    "skew": "Storage cells and disks against their siblings",
}
_TONES = {
    "look": "bad",
    "to know": "doubt",
    "ok": "good",
    "differs": "bad",
    "alike": "good",
    "too short": "doubt",
    "in part": "doubt",
    "whole": "good",
}
LEVELS = {"bad": "look", "doubt": "to know", "good": "good", "even": "fact"}
"""A finding's level and the word that stands for it."""


def order(model: Mapping[str, Any]) -> tuple[base.Section, ...]:
    """Head, findings, a section for each of the model's."""
    made = [
        base.Section(
            f"s-{fmt.line(section.get('name') or at)}",
            fmt.line(section.get("title") or section.get("name") or "section"),
            _maker(at),
            "cells_section",
        )
        for at, section in enumerate(arranged.sections(reading.read(model)))
    ]
    return (
        base.Section("cells", "Summary", head, "snapshot_head"),
        base.Section("warnings", "Findings", findings, "cells_findings"),
        *made,
    )


def _maker(at: int) -> Callable[[Analysis], base.View | None]:
    def view(model: Analysis) -> base.View:
        section = arranged.sections(model)[at]
        names = reading.strings(section, "figures")
        drawn = pictures.view(model, names) if names else None
        return {**tables.view(section), "pictures": drawn["pictures"] if drawn else []}

    return view


def head(model: Analysis) -> base.View:
    """Title, ends, facts, and the verdict."""
    facts = reading.dig(model, "facts") or {}
    verdict = reading.dig(model, "verdict") or _verdict(model)
    ends = [fmt.moment(facts[name]) for name in ("began", "ended") if facts.get(name)]
    if len(ends) == 2 and ends[0][:10] == ends[1][:10]:
        ends = [ends[0].removesuffix(" UTC"), ends[1][11:]]
    word = fmt.line(verdict.get("word") or "ok")
    return {
        "kind": _KINDS.get(str(model.get("page")), "Storage cells"),
        "title": fmt.line(facts.get("title") or _title(model)),
        "ends": ends,
        "elapsed": fmt.span(facts.get("seconds")) if facts.get("seconds") else "",
        "chips": _chips(facts),
        "verdict": {"word": word, "tone": _TONES.get(word, "even")},
        "why": fmt.line(verdict.get("why") or ""),
        "alerts": len([f for f in said(model) if f["tone"] in ("bad", "doubt")]),
    }


def _chips(facts: Mapping[str, Any]) -> list[str]:
    chips = []
    if facts.get("rounds"):
        every = fmt.number(facts.get("every_s"))
        pace = f", one every {every:g}{fmt.THIN}s" if every else ""
        chips.append(f"{fmt.count(facts['rounds'])} rounds{pace}")
    if facts.get("status") not in (None, "complete"):
        chips.append(fmt.line(facts["status"]))
    return chips


def _title(model: Analysis) -> str:
    cells = [str(cell.get("name")) for cell in reading.entries(model, "cells")]
    cells = cells or sorted({str(r.get("cell")) for r in reading.entries(model, "rows")} - {"None", ""})
    few = ", ".join(cells[:4])
    return f"{few} and {len(cells) - 4} more" if len(cells) > 4 else few or "storage cells"


def _verdict(model: Analysis) -> dict[str, str]:
    """The word of a page that has no verdict of its own."""
    if model.get("page") == "skew":
        rows = reading.entries(model, "rows")
        number = sum(bool(row.get("differs")) for row in rows)
        if not model.get("enough"):
            why = f"{model.get('rounds')} intervals are recorded, 4 are needed"
            return {"word": "too short", "why": why}
        word = "differs" if number else "alike"
        return {"word": word, "why": f"{number} of {model.get('tested')} siblings differ"}
    problems = said(model)
    if model.get("page") == "diff" and not any(r.get("delta") for r in reading.entries(model, "rows")):
        return {"word": "in part", "why": "no counter has a difference"}
    if problems:
        return {"word": "in part", "why": f"{len(problems)} cells are not here whole"}
    return {"word": "whole", "why": "every cell answered"}


def said(model: Analysis) -> list[base.View]:
    """Findings as words with a tone; of a page without, what went wrong on which cell."""
    given = reading.entries(model, "findings")
    if not given:
        given = [
            {"level": "doubt", "text": f"{cell.get('name')}: {cell['problem']}", "next": cell.get("next_step")}
            for cell in reading.entries(model, "cells")
            if cell.get("problem")
        ] + [{"level": "doubt", "text": text} for text in reading.strings(model, "problems")]
    return [
        {
            "tone": level if (level := str(one.get("level"))) in LEVELS else "even",
            "word": LEVELS.get(level, "fact"),
            "text": fmt.line(one.get("text") or ""),
            "next": fmt.line(one.get("next") or ""),
        }
        for one in given
    ]


def findings(model: Analysis) -> base.View | None:
    """The findings as cards, or None without any."""
    found = said(model)
    return {"findings": found} if found else None
