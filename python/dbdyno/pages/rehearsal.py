"""Builder of the page about a rehearsal: verdict, budget by statement, regressions with both plans, everything else."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from dbdyno.base.json_types import TableRow
from dbdyno.page import Cell, Column, Finding, Head, Page, Row, Section, Strip, Table, Tone
from dbdyno.pages import common, reading
from dbdyno.pages import format as fmt
from dbdyno.pages.common import TONES, columns
from dbdyno.pages.reading import Analysis
from dbdyno.pages.rehearsal_replay import replay_section

BLANK = "\u2800"
"""A character that looks like a blank but is not stripped from the beginning of a cell."""
Entry = Mapping[str, Any]
_TONES: dict[str, Tone] = {"slower": "bad", "fails": "bad", "differs": "bad", "faster": "good", "unclear": "doubt"}
_WORDS = {"differs": "answers differ"}
_UNFOLDED = 30
"""Number of statements that the budget shows without folding; the others are in a folded table."""
_NAMED_MOST = 12
"""Maximum number of settings that are named if only one side has them."""
_DETAILED = 40
"""Maximum number of statements of each kind that are shown in detail, each in its own part."""


def page(model: Analysis) -> Page:
    """Return the page about a rehearsal."""
    verdict = reading.dig(model, "verdict") or {}
    statements = reading.entries(model, "statements")
    head = Head(
        "Rehearsal",
        fmt.line(reading.dig(model, "run", "title") or ""),
        "verdict",
        word=fmt.line(verdict.get("word") or ""),
        tone=TONES.get(str(verdict.get("tone")), "even"),
        headline=fmt.line(verdict.get("headline") or "", 400),
        sentences=reading.sentences(verdict),
        next=fmt.line(verdict.get("next") or "", 400),
        chips=tuple(_chips(model)),
        section="Verdict",
    )
    sections = (
        _budget(model, statements),
        *(_changed_section(model, statements, word) for word in ("slower", "fails", "differs", "faster")),
        replay_section(model),
        _first_executions(statements),
        _uncompared_section(statements),
        _settings(model),
        _extensions(model),
        _left_out(model),
    )
    shown = tuple(one for one in sections if one is not None)
    return Page(head, shown, data=lambda: common.flat_table(list(_flat(model))))


def _chips(model: Analysis) -> Iterator[str]:
    for side in reading.entries(model, "sides"):
        version = int(side.get("version") or 0)
        yield f"{fmt.line(side.get('name') or '')}: PostgreSQL {version // 10000}.{version % 10000}"
    for change in reading.strings(model, "change"):
        yield fmt.line(change, 120)
    load = reading.dig(model, "load") or {}
    yield f"{fmt.count(load.get('statements') or 0)} statements, {fmt.count(load.get('calls') or 0)} executions"


def _budget(model: Analysis, statements: Sequence[Entry]) -> Section:
    ratio = Column("ratio", "new / old", kind="strip", least=90)
    shown = columns(
        "calls:count share:share:of_the_time old:ns new:ns added:difference:adds",
        ratio,
    )
    shown = (Column("verdict", "", kind="verdict"), Column("what", "statement", "code", narrowest=24), *shown)
    shown = (*shown, *columns("values:text"))
    order = sorted(statements, key=lambda row: -abs(fmt.number(row.get("added_ns")) or 0.0))
    reach = _reach(statements)
    band = fmt.number(model.get("threshold")) or 0.1
    rows = [_row(row, reach, band) for row in order]
    about = "What each statement adds to the database time of the load: its calls times the change of its mean time."
    return Section(
        "budget",
        "Budget by statement",
        about,
        tables=_budget_tables(shown, tuple(rows)),
        figures=common.figures(model, "contributions"),
        notes=tuple(fmt.line(note, 300) for note in reading.strings(model, "load", "notes")),
    )


def _budget_tables(columns: tuple[Column, ...], rows: tuple[Row, ...]) -> tuple[Table, ...]:
    """Return the budget by statement as tables; on the page, statements that add little are in a folded table."""
    if len(rows) <= _UNFOLDED:
        return (Table("", columns, rows, most=12, look="loose"),)
    rest = rows[_UNFOLDED:]
    return (
        Table("", columns, rows, most=12, look="loose", where="text"),
        Table("", columns, rows[:_UNFOLDED], look="loose", where="page"),
        Table("", columns, rest, look="loose", where="page", folded=f"{len(rest):,} other statements that add less"),
    )


def _row(row: Entry, reach: float, band: float) -> Row:
    word = str(row.get("decision"))
    cells: TableRow = {
        "what": Cell(fmt.line(row.get("text") or "", 90), tag=f"{row.get('number')}"),
        "calls": row.get("calls"),
        "share": row.get("share"),
        "verdict": Cell(_WORDS.get(word, word), tone=_TONES.get(word, "even")),
        "old": row.get("old_ns"),
        "new": row.get("new_ns"),
        "added": row.get("added_ns"),
        "values": _values(row),
    }
    ratio = fmt.number(row.get("ratio"))
    if ratio is not None:
        low, high = fmt.number(row.get("low")), fmt.number(row.get("high"))
        cells["ratio"] = Strip(ratio, low, high, reach, band, _TONES.get(word, "even"))
    return Row(cells)


_ORIGINS = {"captured": "captured", "data": "from the data", "type": "by type", "none": "no parameters"}


def _values(row: Entry) -> str:
    """Return the number of value sets with which a statement was executed, and where the values come from."""
    sets, origin = row.get("sets"), _ORIGINS.get(str(row.get("origin")))
    return (origin if row.get("origin") == "none" else f"{sets} {origin}") if sets and origin else ""


def _reach(statements: Sequence[Entry]) -> float:
    ends = [abs(math.log(end)) for row in statements for key in ("low", "high") if (end := fmt.number(row.get(key)))]
    return min(max([0.2, *ends]), 3.0)


def _changed_section(model: Analysis, statements: Sequence[Entry], word: str) -> Section | None:
    rows = [row for row in statements if row.get("decision") == word]
    if not rows:
        return None
    titles = {
        "slower": "Slower statements",
        "fails": "Statements that fail",
        "differs": "Other answers",
        "faster": "Faster statements",
    }
    rows.sort(key=lambda row: -abs(fmt.number(row.get("added_ns")) or 0.0))
    parts = tuple(_part(row, word) for row in rows[:_DETAILED])
    left = f"{len(rows) - _DETAILED:,} more statements are in the table above." if len(rows) > _DETAILED else ""
    return Section(
        word,
        f"{titles[word]} ({len(rows)})",
        left,
        parts=parts,
        most=12,
        folded=f"{len(rows)} statements" if word == "faster" else "",
    )


def _part(row: Entry, word: str) -> Section:
    cause = reading.dig(row, "cause") or {}
    lead = _lead(row, word)
    findings = []
    if cause.get("sentence"):
        findings.append(
            Finding(
                fmt.line(cause["sentence"], 400),
                _TONES.get(word, "even"),
                evidence=(fmt.line(cause["observed"], 300),) if cause.get("observed") else (),
                next=fmt.line(cause.get("next") or "", 300),
            )
        )
    elif word == "slower":
        findings.append(Finding(fmt.line(row.get("unexplained") or "Nothing that was read explains it.", 600), "doubt"))
    plans = _plans(row)
    change = fmt.line(row.get("plan_change") or "", 300)
    return Section(
        f"statement-{row.get('number')}",
        f"Statement {row.get('number')}: {lead}",
        text=fmt.line(row.get("text") or "", 2000),
        sentences=(f"The plan changed: {change}.",) if change else (),
        findings=tuple(findings),
        tables=(plans,) if plans is not None else (),
    )


_DIFFERENCES = {"order": "the same rows in another order", "columns": "a different number of columns"}


def _lead(row: Entry, word: str) -> str:
    if word == "fails":
        error = reading.dig(row, "error") or {}
        return f"{fmt.line(error.get('sqlstate') or '')} {fmt.line(error.get('message') or '', 160)}"
    if word == "differs":
        rows = reading.dig(row, "rows") or {}
        old, new = rows.get("old"), rows.get("new")
        if old != new:
            return f"{fmt.count(new)} rows instead of {fmt.count(old)}"
        return _DIFFERENCES.get(str(row.get("difference")), "the same number of rows, with other values")
    ratio, low, high = (fmt.number(row.get(key)) for key in ("ratio", "low", "high"))
    if ratio is None or low is None or high is None:
        return word
    times = f"{fmt.duration(row.get('old_ns'))} → {fmt.duration(row.get('new_ns'))}"
    return f"{ratio:.2f} times as long (95 % CI {low:.2f} to {high:.2f}), {times}"


def _plans(row: Entry) -> Table | None:
    sides = [reading.entries(row, "plans", side) for side in ("old", "new")]
    if not all(sides):
        return None
    shown = columns(
        "old:text:old_plan old_rows:count:rows old_ns:ns:time new:text:new_plan new_rows:count:rows new_ns:ns:time"
    )
    rows = []
    for pair in zip_longest(*sides):
        cells: TableRow = {}
        for side, node in zip(("old", "new"), pair, strict=True):
            if node is not None:
                lead = BLANK * 2 * int(node.get("depth") or 0)
                is_changed = bool(node.get("changed"))
                cells[side] = Cell(
                    f"{lead}{fmt.line(node.get('title') or '', 120)}",
                    tone=("bad" if side == "new" else "even") if is_changed else "",
                    bold=is_changed,
                )
                cells[f"{side}_rows"], cells[f"{side}_ns"] = node.get("rows"), node.get("elapsed_ns")
        rows.append(cells)
    return common.table("", shown, rows, look="plans")


def _first_executions(statements: Sequence[Entry]) -> Section | None:
    """Return the section on statements whose time ratio is different in the first execution of a session."""
    rows = [
        {"text": row.get("text"), **row["first"], "later": row.get("ratio")} for row in statements if row.get("first")
    ]
    if not rows:
        return None
    shown = columns(
        "old_ns:ns:old new_ns:ns:new ratio:times:new_/_old low:times:from high:times:to later:times:later_executions"
    )
    table = common.table("", (Column("text", "statement", "code", narrowest=24), *shown), rows, most=12)
    about = (
        "The first execution in a new server process, whose catalog and plan caches are empty. Data pages stay cached."
    )
    return Section("first", f"First executions that differ from later ones ({len(rows)})", about, tables=(table,))


def _uncompared_section(statements: Sequence[Entry]) -> Section | None:
    """Return the section on statements whose answers were not compared, because they may legitimately differ."""
    rows = [row for row in statements if row.get("answers")]
    if not rows:
        return None
    table = common.table("", columns("text:code:statement calls:count answers:text:answers"), rows, most=12)
    about = "Their answers differ, but are allowed to differ."
    return Section("uncompared", f"Answers not compared ({len(rows)})", about, tables=(table,))


def _settings(model: Analysis) -> Section | None:
    rows = reading.entries(model, "settings")
    if not rows:
        return None
    shown = "name:text:setting old:text:old new:text:new"
    if any(row.get("why") for row in rows):
        rows = sorted(rows, key=lambda row: not row.get("why"))
        shown += " why:text:why"
    table = common.table("", columns(shown), rows, most=8)
    notes = []
    for side, other in (("old", "new"), ("new", "old")):
        if names := reading.strings(model, "one_sided", side):
            more = f" and {len(names) - _NAMED_MOST} more" if len(names) > _NAMED_MOST else ""
            listed = ", ".join(names[:_NAMED_MOST])
            notes.append(f"{len(names)} settings exist only on the {side} side, not on the {other}: {listed}{more}.")
    return Section("settings", f"Settings that differ ({len(rows)})", tables=(table,), notes=tuple(notes))


def _extensions(model: Analysis) -> Section | None:
    """Return the section on extensions whose version on the new side is different or outdated."""
    rows = reading.entries(model, "extensions")
    if not rows:
        return None
    shown = columns("name:text:extension old:text:old new:text:new now:text:the_new_server_has")
    behind = [fmt.line(row.get("name") or "") for row in rows if row.get("new") and row.get("now") != row.get("new")]
    notes = (f"After the upgrade: alter extension {', '.join(behind)} update.",) if behind else ()
    return Section("extensions", f"Extensions ({len(rows)})", tables=(common.table("", shown, rows),), notes=notes)


def _left_out(model: Analysis) -> Section | None:
    rows = reading.entries(model, "left_out")
    if not rows:
        return None
    shown = columns("text:code:statement calls:count share:share:of_the_time reason:text:why")
    order = sorted(rows, key=lambda row: fmt.number(row.get("share")) or 0.0, reverse=True)
    table = common.table("", shown, order, most=12)
    return Section("left-out", f"Not rehearsed ({len(rows)})", tables=(table,))


def _flat(model: Analysis) -> Iterator[TableRow]:
    times = ("ratio", "low", "high", "old_ns", "new_ns", "added_ns")
    names = ("number", "text", "calls", "share", "decision", *times, "blocks", "sets", "origin", "answers")
    for row in (*reading.entries(model, "statements"), *reading.entries(model, "left_out")):
        yield {name: row.get(name) for name in names} | {"cause": reading.dig(row, "cause", "sentence")}
