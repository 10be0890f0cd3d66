"""Sections as text: headings in capitals, tables that fit, and what was not measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dbdyno.pages import reading
from dbdyno.report import console
from dbdyno.pages import format as fmt
from dbdyno.pages.reading import Analysis
from dbdyno.report.snapshot import cells

if TYPE_CHECKING:
    from rich.console import Console

_STYLES = {"good": "green", "bad": "bold red", "even": "blue", "doubt": "yellow"}
_NAME_LEAST = 12
_TEXT_LEAST = 24


def draw(model: Analysis, out: Console) -> None:
    """The whole report."""
    _head(model, out)
    for one in reading.entries(model, "sections"):
        section(one, out)
    warnings = reading.entries(model, "warnings")
    if warnings:
        out.print()
        out.print(console.plain("TO KNOW", "bold"))
    for warning in warnings:
        console.item(out, "!", console.plain(warning["text"], "yellow"))
        if warning.get("next"):
            console.item(out, " ", console.plain(f"next: {warning['next']}"))


def _head(model: Analysis, out: Console) -> None:
    from rich.text import Text

    shown = cells.head(model)
    ends = " → ".join(shown["ends"])
    out.print(console.plain(f"{shown['title']}", "bold") + Text(f"  {ends}"))
    facts = " · ".join([*([f"elapsed {shown['elapsed']}"] if shown["elapsed"] else []), *shown["chips"]])
    out.print(console.plain(facts, "dim"))
    verdict = shown["verdict"]
    out.print(Text(f"verdict: {verdict['word']}", style=_STYLES[verdict["tone"]]) + Text(f"  {shown['why']}"))


def section(section: Analysis, out: Console) -> None:
    """One section: heading, tables, what was not measured, notes."""
    out.print()
    title = fmt.line(section.get("title") or section.get("name") or "")
    out.print(console.plain(title.upper(), "bold"))
    for table in reading.entries(section, "tables"):
        _table(table, out)
    for lack in reading.entries(section, "not_measured"):
        step = f"; next: {lack['next']}" if lack.get("next") else ""
        words = f"not measured: {lack['what']} ({lack['why']}{step})"
        console.item(out, "–", console.plain(words, "yellow"))
    for note in reading.strings(section, "notes"):
        console.item(out, "·", console.plain(note, "dim"))
    if section.get("about") and section.get("tables"):
        console.item(out, " ", console.plain(fmt.line(section["about"]), "dim"))


def _table(table: Analysis, out: Console) -> None:
    shown = [column for column in cells.shown(table) if not column.get("page_only")]
    rows = reading.entries(table, "rows")
    judged = any(row.get("verdict") not in (None, "ok") for row in rows)
    judged = judged and all(column["name"] != "verdict" for column in shown)
    body = [[cells.cell(row, column) for column in shown] for row in rows]
    kept, dropped = _fitting(shown, body, out.width - (10 if judged else 0))
    made = console.table(fmt.line(table.get("title") or ""), [], [], padding=(0, 2, 0, 0))
    for at in kept:
        column = shown[at]
        if column["unit"] in cells.LEFT:
            # the first names the row: it folds last
            least = _least(body, shown, at) if at else min(_NAME_LEAST, _width(body, shown, at))
            made.add_column(column["label"], overflow="fold", min_width=least)
        else:
            made.add_column(column["label"], justify="right", no_wrap=True)
    if judged:
        made.add_column("")
    for row, line in zip(rows, body, strict=True):
        mark = [] if not judged else [_mark(row)]
        made.add_row(*(console.plain(line[at]) for at in kept), *mark)
    out.print(made)
    left = table.get("left_out") or 0
    more = [f"{left} more rows"] if left else []
    if dropped:
        more.append("not shown for want of width: " + ", ".join(dropped))
    if more:
        console.item(out, " ", console.plain("; ".join(more) + " (--format json has all)", "dim"))


def _mark(row: Analysis) -> Any:
    word = row.get("verdict")
    return console.plain("" if word in (None, "ok") else str(word), "yellow")


def _fitting(shown: list[dict[str, Any]], body: list[list[str]], width: int) -> tuple[list[int], list[str]]:
    """The columns that fit, from the left; the labels of the others."""
    kept: list[int] = []
    used = 0
    dropped = []
    for at, column in enumerate(shown):
        need = _least(body, shown, at) + 2
        if kept and used + need > width:
            dropped.append(fmt.line(column["label"]))
            continue
        kept.append(at)
        used += need
    return kept, dropped


def _least(body: list[list[str]], shown: list[dict[str, Any]], at: int) -> int:
    """The least width of a column: words may fold, numbers not."""
    whole = _width(body, shown, at)
    if shown[at]["unit"] not in cells.LEFT:
        return whole
    return min(whole, _TEXT_LEAST if at == 0 or shown[at]["name"] in ("text", "why") else 16)


def _width(body: list[list[str]], shown: list[dict[str, Any]], at: int) -> int:
    return max([len(shown[at]["label"]), *(len(line[at]) for line in body)])
