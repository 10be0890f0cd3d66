"""Builder of the page about a search for the commit that changed the speed."""

from __future__ import annotations

from collections.abc import Sequence

from dbdyno.page import Cell, Column, Head, Page, Section, Tone
from dbdyno.pages import common, reading
from dbdyno.pages import format as fmt
from dbdyno.pages.common import columns, with_noun
from dbdyno.pages.reading import Analysis, Entry

SHORT = 12


def page(model: Analysis) -> Page:
    """Return the page about a search among commits."""
    suspects = reading.entries(model, "suspects")
    word, tone = _word(len(suspects), str(model.get("direction") or ""))
    head = Head(
        "Bisection",
        fmt.line(model.get("title") or ""),
        "verdict",
        word=word,
        tone=tone,
        headline=fmt.line(reading.dig(model, "verdict", "headline") or ""),
        sentences=tuple(fmt.line(one) for one in reading.strings(model, "verdict", "sentences")),
        next=fmt.line(reading.dig(model, "verdict", "next") or ""),
        chips=(with_noun(model.get("commits"), "commit"), with_noun(len(reading.entries(model, "tests")), "test")),
        section="Verdict",
    )
    sections = tuple(section for section in (_suspects(suspects), _tests(model)) if section.tables)
    return Page(head, sections, data=lambda: common.flat_table([_flat(row) for row in reading.entries(model, "tests")]))


def _word(suspects: int, direction: str) -> tuple[str, Tone]:
    if not direction:
        return "Cannot tell", "doubt"
    return ("Found", "bad" if direction == "slower" else "good") if suspects == 1 else ("Narrowed down", "doubt")


def _suspects(suspects: Sequence[Entry]) -> Section:
    """Return the section with the commits that may have changed the speed; it is empty if only one commit may have."""
    rows = [_commit(one) for one in suspects] if len(suspects) > 1 else []
    tables = (common.table("", columns("commit:text subject:text"), rows),) if rows else ()
    return Section("suspects", "One of these commits", tables=tables)


def _tests(model: Analysis) -> Section:
    shown = (
        *columns("commit:text subject:text result:text blocks:count"),
        Column("change", "change", "change"),
        Column("low", "from", "change"),
        Column("high", "to", "change"),
        Column("run", "run", where="page"),
    )
    rows = []
    for row in reading.entries(model, "tests"):
        change = row.get("change") or {}
        ends = {name: change.get(name) for name in ("low", "high")}
        rows.append(
            {
                **_commit(row),
                "result": fmt.line(row.get("result") or ""),
                "blocks": row.get("blocks") or None,
                "change": Cell(change.get("ratio")),
                **ends,
                "run": fmt.line(row.get("run") or ""),
            }
        )
    about = "Each commit ran in the same blocks as the good and the bad commit. Change: faster (+) or slower (−)."
    tables = (common.table("", shown, rows),) if rows else ()
    return Section("tests", "The tests, in the order in which they ran", about, tables=tables)


def _commit(row: Entry) -> dict[str, object]:
    return {"commit": fmt.line(row.get("commit") or "")[:SHORT], "subject": fmt.line(row.get("subject") or "", 60)}


def _flat(row: Entry) -> dict[str, object]:
    change = row.get("change") or {}
    return {
        "commit": row.get("commit"),
        "subject": row.get("subject"),
        "result": row.get("result"),
        "blocks": row.get("blocks"),
        "ratio": change.get("ratio"),
        "low": change.get("low"),
        "high": change.get("high"),
        "run": row.get("run"),
    }
