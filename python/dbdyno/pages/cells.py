"""Builder of pages about storage cells: report of a recording, current state, comparison of two times, skew.

The sections of a report come from the model; those of the shorter pages are built from the model's rows, one section
per metric family.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from dbdyno.base.json_types import TableRow
from dbdyno.page import Column, Finding, Head, Page, Section, Table, Tone
from dbdyno.pages import common, explanation, reading, snapshot
from dbdyno.pages import format as fmt
from dbdyno.pages.common import columns, table
from dbdyno.pages.reading import Analysis, Entry

COMPARISON = "compare"
ROWS_MOST = 1000
CELLS_BESIDE = 6
"""Number of cells above which the table scrolls; the columns for all cells and the meaning then come first."""
_REASONS = {
    "not refreshed": "not refreshed: the cell had collected no new values",
    "reset": "reset: the cell's service was restarted in between",
    "new": "seen only after",
    "gone": "seen only before",
}
_KINDS = {
    "report": "Report of a recording of storage cells",
    "show": "Metrics of the storage cells",
    "diff": "Storage cells between two readings",
    "skew": "Storage cells and disks against their siblings",
}
_TONES: dict[str, Tone] = {
    "look": "bad",
    "to know": "doubt",
    "ok": "good",
    "differs": "bad",
    "alike": "good",
    "too short": "doubt",
    "in part": "doubt",
    "whole": "good",
}
_LEVELS = {"bad": "look", "doubt": "to know", "good": "good", "even": "fact"}
"""Word for the level of a finding."""


def page(model: Analysis) -> Page:
    """Return the page: head, findings, and a section for each section of the model or each family of its rows."""
    if model.get("page") == COMPARISON:
        compared = snapshot.page(model)
        return replace(compared, sections=(*explanation.sections(model), *compared.sections))
    found = tuple(_findings(model))
    make = {"show": _show, "diff": _diff, "skew": _skew}.get(str(model.get("page")), _report)
    return Page(
        _head(model, found),
        (Section("warnings", "Findings", findings=found), *explanation.sections(model), *make(model)),
        capitals=True,
    )


def _report(model: Analysis) -> Iterator[Section]:
    for at, given in enumerate(reading.entries(model, "sections")):
        yield snapshot.section({**given, "drawn": model}, at)


def _rows(title: str, columns: Sequence[Column], rows: Sequence[Entry]) -> Table:
    left = max(0, len(rows) - ROWS_MOST)
    return table(title, columns, rows[:ROWS_MOST], left_out=left, look="loose")


def _by_family(make: Callable[[list[Entry]], tuple[Column, ...]], rows: Sequence[Entry]) -> Iterator[Section]:
    """Yield a section for the rows of each family, which is the first word of their metric's name."""

    def head(row: Entry) -> str:
        return str(row.get("metric")).partition("_")[0]

    for family, grouped in groupby(sorted(rows, key=head), key=head):
        own = list(grouped)
        title = next((str(row["family"]) for row in own if row.get("family")), family)
        yield Section(f"s-f-{family.lower()}", title[:1].upper() + title[1:], tables=(_rows("", make(own), own),))


def _show(model: Analysis) -> Iterator[Section]:
    cells = reading.entries(model, "cells")
    rows = [
        {
            **row,
            "all": _whole(row),
            **{f"c{at}": (row.get("values") or {}).get(cell.get("name")) for at, cell in enumerate(cells)},
        }
        for row in reading.entries(model, "rows")
    ]
    heads = tuple(
        Column(f"c{at}", f"{cell.get('name')}{' !' if cell.get('problem') else ''}", "digits")
        for at, cell in enumerate(cells)
    )

    def made(entries: list[Entry]) -> tuple[Column, ...]:
        meaning = Column("description", "meaning")
        item = columns("object:text") if any(row.get("object") for row in entries) else ()
        beside = (*heads, meaning) if len(heads) <= CELLS_BESIDE else (meaning, *heads)
        return (*columns("metric:text"), *item, *columns("all:words unit:text"), *beside)

    yield from _by_family(made, rows)


def _whole(row: Entry) -> str:
    """Return the value for all cells together: a number, a range if a sum is meaningless, or a dash."""
    if row.get("all") is not None:
        return fmt.digits(row["all"])
    if row.get("rule") != "spread":
        return fmt.NONE
    low, high = fmt.digits(row.get("low")), fmt.digits(row.get("high"))
    return low if low == high else f"{low} to {high}"


def _diff(model: Analysis) -> Iterator[Section]:
    log = reading.dig(model, "flash_log")
    if log:
        about = "The interval is Wilson's, as if writes were independent: the true one is wider."
        torn = "Disk first + flash first differs from FL_IO_W: the counters were read at different moments."
        notes = () if log.get("identity_holds") else (torn,)
        yield Section("s-flash-log", "Who was first", about, tables=(_log_table(log),), notes=notes)
    latencies = reading.entries(model, "latencies")
    if latencies:
        shown = (
            *columns("metric:text:latency"),
            *_places(latencies),
            *columns("value:number4 unit:text requests:digits"),
        )
        about = "The difference of the times over the difference of the requests."
        yield Section("s-latencies", "Latencies", about, tables=(_rows("", shown, latencies),))

    def made(entries: list[Entry]) -> tuple[Column, ...]:
        more = columns("delta:digits:difference per_s:number4:per_second unit:text description:text:meaning")
        return (*columns("metric:text"), *_places(entries), *more)

    yield from _by_family(made, [row for row in reading.entries(model, "rows") if row["delta"]])
    without = reading.entries(model, "without")
    if without:
        yield Section("s-without", "Without a difference", tables=(_missing_table(without),))


def _places(rows: Sequence[Entry]) -> tuple[Column, ...]:
    return tuple(Column(name, name) for name in ("cell", "object") if any(row.get(name) for row in rows))


def _log_table(log: Entry) -> Table:
    heads = (
        ("writes", "redo writes"),
        ("disk_first", "disk first"),
        ("flash_first", "flash first"),
        ("flash_share", "share of flash"),
        ("flash_share_low", "95 % from"),
        ("flash_share_high", "to"),
        ("prevented_outliers", "outliers prevented"),
        ("actual_outliers", "on both"),
        ("flash_only_outliers", "on flash only"),
    )
    rows = [
        {"what": label, "value": _log_value(log[name], is_share="share" in name)}
        for name, label in heads
        if log.get(name) is not None
    ]
    rows += [
        {"what": f"bypassed: {reason}", "value": fmt.digits(number)}
        for reason, number in (log.get("passed_by") or {}).items()
    ]
    return _rows("", columns("what:text:_ value:words"), rows)


def _log_value(value: Any, *, is_share: bool) -> str:
    return f"{100 * value:.2f}{fmt.THIN}%" if is_share else fmt.digits(value)


def _missing_table(entries: Sequence[Entry]) -> Table:
    counts: dict[tuple[str, str], int] = {}
    for entry in entries:
        key = str(entry.get("cell")), str(entry.get("verdict"))
        counts[key] = counts.get(key, 0) + 1
    rows = [
        {"cell": cell, "counters": number, "why": _REASONS.get(verdict, verdict)}
        for (cell, verdict), number in counts.items()
    ]
    return _rows("", columns("cell:text counters:count why:text"), rows)


def _skew(model: Analysis) -> Iterator[Section]:
    rows = [
        {**row, "of": f"{row.get('n_siblings')} {row.get('siblings')}", "word": "differs" if row.get("differs") else ""}
        for row in reading.entries(model, "rows")
    ]
    shown = columns(
        "name:text:which metric:text of:text:siblings ratio:times:times_the_median low:times:95_%_from"
        " high:times:to rounds:count:intervals q:p word:text:_"
    )
    about = (
        "The mean log ratio of each sibling to the median of its kind, over the rounds; Student's "
        "t; all tests under one false-discovery control (Benjamini and Hochberg)."
    )
    drawn = common.figures(model, "cells_skew")
    yield Section("s-siblings", "Siblings", about, tables=(_rows("", shown, rows),) if rows else (), figures=drawn)


def _head(model: Analysis, findings: Sequence[Finding]) -> Head:
    """Return the head: title, start and end, facts and verdict."""
    facts = reading.dig(model, "facts") or {}
    verdict = reading.dig(model, "verdict") or _verdict(model, findings)
    ends = [fmt.moment(facts[name]) for name in ("began", "ended") if facts.get(name)]
    if len(ends) == 2 and ends[0][:10] == ends[1][:10]:
        ends = [ends[0].removesuffix(" UTC"), ends[1][11:]]
    word = fmt.line(verdict.get("word") or "ok")
    alerts = len([one for one in findings if one.weight in ("bad", "doubt")])
    return Head(
        _KINDS.get(str(model.get("page")), "Storage cells"),
        fmt.line(facts.get("title") or _title(model)),
        name="cells",
        about=fmt.span(facts.get("seconds")) if facts.get("seconds") else "",
        question=" → ".join(ends),
        word=word,
        tone=_TONES.get(word, "even"),
        headline=fmt.line(verdict.get("why") or ""),
        chips=tuple(_chips(facts)),
        alerts=((common.with_noun(alerts, "note"), "warnings"),) if alerts else (),
    )


def _chips(facts: Entry) -> Iterator[str]:
    if facts.get("rounds"):
        every = fmt.number(facts.get("every_s"))
        pace = f", one every {every:g}{fmt.THIN}s" if every else ""
        yield f"{fmt.count(facts['rounds'])} rounds{pace}"
    if facts.get("status") not in (None, "complete"):
        yield fmt.line(facts["status"])


def _title(model: Analysis) -> str:
    cells = [str(cell.get("name")) for cell in reading.entries(model, "cells")]
    cells = cells or sorted({str(row.get("cell")) for row in reading.entries(model, "rows")} - {"None", ""})
    few = ", ".join(cells[:4])
    return f"{few} and {len(cells) - 4} more" if len(cells) > 4 else few or "storage cells"


def _verdict(model: Analysis, findings: Sequence[Finding]) -> dict[str, str]:
    """Return the verdict of a page whose model has none."""
    rows = reading.entries(model, "rows")
    if model.get("page") == "skew":
        number = sum(bool(row.get("differs")) for row in rows)
        if not model.get("enough"):
            return {"word": "too short", "why": f"{model.get('rounds')} intervals were recorded; at least 4 are needed"}
        word = "differs" if number else "alike"
        return {"word": word, "why": f"{number} of {model.get('tested')} siblings differ"}
    if model.get("page") == "diff" and not any(row.get("delta") for row in rows):
        return {"word": "in part", "why": "no counter changed"}
    if findings:
        return {"word": "in part", "why": f"incomplete data from {common.with_noun(len(findings), 'cell')}"}
    return {"word": "whole", "why": "every cell answered"}


def _findings(model: Analysis) -> Iterator[Finding]:
    """Yield the findings of the model, or, if it has none, the problems of each cell."""
    given: list[TableRow] = reading.entries(model, "findings")
    if not given:
        given = [
            {"level": "doubt", "text": f"{cell.get('name')}: {cell['problem']}", "next": cell.get("next_step")}
            for cell in reading.entries(model, "cells")
            if cell.get("problem")
        ] + [{"level": "doubt", "text": text} for text in reading.strings(model, "problems")]
    for one in given:
        level = common.TONES.get(str(one.get("level")), "even")
        text, step = fmt.line(one.get("text") or ""), fmt.line(one.get("next") or "")
        yield Finding(text, level, next=step, word=_LEVELS[level])
