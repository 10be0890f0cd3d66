"""A page as text for a terminal; independent of the kind of page, with width and colour as arguments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from dbdyno.page import Column, Finding, Head, Page, Row, Section, Table
from dbdyno.pages import format as fmt
from dbdyno.pages import page_of
from dbdyno.report import branches, cell_text, console, marks
from dbdyno.report.flat import rows

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["render_text", "rows"]

STYLES = {"good": "green", "bad": "red", "even": "blue", "doubt": "yellow"}
ROW_STYLES = {"cpu": "green", "unaccounted": "yellow", "between": "yellow", "wait": "cyan", "worst": "bold"}
SIGNS = {"good": "+", "bad": "!", "even": "·", "doubt": "!", "": "·"}
CHECKS = {"bad": "✗", "doubt": "?"}
_LINES_MOST = 3
_NAME_LEAST, _TEXT_LEAST, _WORDS_LEAST = 12, 24, 16
_UNNAMED = ("bar", "side", "strip")
"""Kinds of marks that need no heading on a terminal."""


def render_text(given: Page | Mapping[str, Any], *, width: int, color: bool, **options: bool) -> str:
    """Return the page as text, `width` columns wide (at least 40), with colours only if `color`.

    A model is first built into its page, with these options.

    Raises:
        ReportError: the model has another schema or an unknown kind, or is damaged.
    """
    page = page_of(given, **options)

    def draw(out: Console) -> None:
        _head(page.head, out, is_plain=not page.capitals)
        for section in page.sections:
            _section(section, out, page.capitals)
        if page.foot:
            out.print()
        for line in page.foot:
            out.print(console.plain_text(fmt.line(line), "dim"))

    return console.render_text(draw, width=width, color=color)


def _head(head: Head, out: Console, *, is_plain: bool) -> None:
    """Print the finding, its evidence, the next step, then facts; without a finding the title comes first."""
    from rich.text import Text

    about = [head.about] if head.about else []
    facts = [*head.chips, *about] if is_plain else [head.kind, *about, *head.chips]
    facts += [words for words, _ in head.alerts]
    answer = Text(head.word.upper(), style=f"bold {STYLES.get(head.tone, '')}")
    if head.headline:
        out.print(console.plain_text(f"{head.title}  {head.question}".rstrip(), "dim"))
        out.print(answer + Text(f"{'  ' if head.word else ''}{head.headline}", style="bold"))
    else:
        out.print(console.plain_text(head.title, "bold") + Text(f"  {head.question}" if head.question else ""))
        if head.word:
            out.print(answer)
    for sentence in head.sentences:
        console.item(out, "•", console.plain_text(sentence))
    if head.next:
        console.item(out, "→", console.plain_text(head.next))
    if facts:
        out.print(console.plain_text(" · ".join(facts), "dim"))


def _section(section: Section, out: Console, capitals: bool, *, is_part: bool = False) -> None:
    """Print one section: heading, words, tables, findings; nothing if it is empty or not for a terminal."""
    tables = [table for table in section.tables if table.where != "page"]
    findings = [one for one in section.findings if one.where != "page"]
    figures = [lines for one in section.figures if one.where != "page" and (lines := _figure(one, out.width))]
    parts = [part for part in section.parts if part.where != "page"]
    words = section.facts or section.sentences or section.notes or section.text
    if section.where == "page" or not (tables or findings or figures or parts or words):
        return
    if section.title:
        out.print()
        title = section.title.upper() if capitals else section.title
        out.print(_title_line(fmt.line(title), section))
    _words(section, out)
    if section.lead and is_part:
        console.item(out, " ", console.plain_text(section.lead, "dim"))
    for lines in figures:
        for line in lines:
            out.print(line, soft_wrap=bool(line.no_wrap))
    _findings(findings, section, out)
    for at, table in enumerate(tables):
        if at and not capitals:
            out.print()
        _table(table, out)
    for part in parts:
        _section(part, out, False, is_part=True)
    for note in section.notes:
        console.item(out, "·" if capitals else " ", console.plain_text(note, "dim"))
    if section.lead and capitals and tables:
        console.item(out, " ", console.plain_text(section.lead, "dim"))


def _title_line(title: str, section: Section) -> Any:
    made = console.plain_text(title, "bold" if not section.tone or section.word else STYLES[section.tone])
    if section.word:
        made.append(f"  {section.word}", STYLES.get(section.tone, ""))
    return made


def _words(section: Section, out: Console) -> None:
    """Print facts, sentences and text."""
    if section.facts:
        console.item(out, " ", console.plain_text(" · ".join(f"{name} {fact}" for name, fact in section.facts)))
    for sentence in section.sentences:
        console.item(out, "•", console.plain_text(sentence))
    if not section.text:
        return
    if section.text_title:
        for line in section.text.rstrip().split("\n"):
            out.print(console.plain_text(line), soft_wrap=True)
        return
    for line in fold_statement(section.text, out.width - 3, 5):
        out.print(console.plain_text(f"   {line}", "cyan"))


def fold_statement(text: str, width: int, limit: int) -> list[str]:
    """Return a statement on at most `limit` lines, white space folded, cut with an ellipsis."""
    import textwrap

    lines = textwrap.wrap(fmt.line(text), max(width, 20)) or [""]
    if len(lines) > limit:
        lines = [*lines[: limit - 1], lines[limit - 1][: max(width - 2, 1)] + " …"]
    return lines


def _figure(figure: Any, width: int) -> list[Any]:
    """Return a figure drawn with characters; an empty list if it has no such drawing."""
    from dbdyno.report import texts

    return texts.draw_text(figure.kind, figure.data, width)


def _findings(findings: list[Finding], section: Section, out: Console) -> None:
    """Print the findings and failed checks, each with its next step; passed checks are not shown."""
    checks = [one for one in findings if one.name and one.weight == "bad"]
    plain = [one for one in findings if not one.name]
    most = len(plain) if section.most is None else section.most
    for one in (*checks, *plain[:most]):
        style = STYLES.get(one.weight, "") if one.weight != "even" else ""
        sign = CHECKS.get(one.weight, SIGNS[one.weight]) if one.name else SIGNS[one.weight]
        words = one.sentence
        if one.name:
            words = f"check failed: {one.sentence}" + (f" ({one.code})" if one.code else "")
        console.item(out, sign, console.plain_text(fmt.line(words, _LINES_MOST * (out.width - 12)), style))
        for line in one.evidence[:1]:
            console.item(out, " ", console.plain_text(line, "dim"))
        if one.next:
            console.item(out, " ", console.plain_text(f"next: {one.next}"))
    left = len(plain) - most
    if left > 0:
        noun = "warning" if left == 1 else "warnings"
        console.item(out, "!", console.plain_text(f"{left} more {noun}; --format json has all", "yellow"))
    unknown = Counter(one.name for one in findings if one.name and one.weight == "doubt")
    if unknown:
        words = ", ".join(name if count == 1 else f"{name} ({count} times)" for name, count in unknown.items())
        console.item(out, "?", console.plain_text(f"not known: {words}", "dim"))


def _table(table: Table, out: Console) -> None:
    """Print the columns that fit, the rows meant for a terminal, and what was left out."""
    kept_rows = table.rows if table.most is None else table.rows[: table.most]
    columns = cell_text.columns_of(table, "text", out.width)
    judged = any(row.verdict for row in kept_rows) and all(one.name != "verdict" for one in columns)
    read = partial(_read, columns=columns, width=out.width)
    body = [read(row) for row in kept_rows]
    _put_under_branches(kept_rows, columns, body, out.width, headed=table.headed)
    kept, dropped = _fitting_columns(columns, body, out.width - (10 if judged else 0), headed=table.headed)
    if not _put_lines(
        table, [columns[at] for at in kept], kept_rows, [[line[at] for at in kept] for line in body], out
    ):
        made = console.table(fmt.line(table.title or table.folded), [], [], padding=(0, 2, 0, 0))
        made.show_header = table.headed
        for at in kept:
            _add_column(made, columns[at], at, body, headed=table.headed)
        if judged:
            made.add_column("")
        for row, line in zip(kept_rows, body, strict=True):
            style = {"sum": "bold", "dim": "dim"}.get(row.style, "")
            marked = [console.plain_text(row.verdict, "yellow")] if judged else []
            cells = [_styled_cell(line[at], row, columns[at], style, first=at == kept[0]) for at in kept]
            made.add_row(*cells, *marked)
        out.print(made)
    if table.note:
        console.item(out, " ", console.plain_text(table.note, "dim"))
    left = table.left_out + len(table.rows) - len(kept_rows)
    more = [f"{left} more {'row' if left == 1 else 'rows'}"] if left else []
    if dropped:
        more.append("not shown, because the terminal is too narrow: " + ", ".join(dropped))
    if more:
        console.item(out, " ", console.plain_text("; ".join(more) + " (--format json has all)", "dim"))


def _put_lines(
    table: Table, columns: Sequence[Column], rows: Sequence[Row], body: list[list[str]], out: Console
) -> bool:
    """Write a table directly, ten times as fast as rich does; return False if it needs colours or folding."""
    title = fmt.line(table.title or table.folded)
    heads = [column.label if column.kind not in _UNNAMED else "" for column in columns]
    lines = [heads, *body] if table.headed else body
    if not out.no_color or not body or any(row.verdict for row in rows) or not console.are_plain(lines):
        return False
    widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
    whole = sum(widths) + 2 * (len(widths) - 1)
    if whole > out.width or len(title) > whole:
        return False
    places = [
        f"{{:{'<' if cell_text.is_left(column) else '>'}{width}}}"
        for column, width in zip(columns, widths, strict=True)
    ]
    line = "  ".join(places).format
    out.file.write("".join([f"{title}\n"] * bool(title) + [f"{line(*cells)}\n" for cells in lines]))
    return True


def _put_under_branches(
    rows: Sequence[Row], columns: list[Column], body: list[list[str]], width: int, *, headed: bool
) -> None:
    """Lay out the first column of a tree or plan in the room that the other columns leave."""
    cells = [cell_text.cell_of(row, columns[0]) for row in rows] if columns else []
    if not any(cell.lead for cell in cells):
        return
    others = sum(_width(body, column, at, headed) + 2 for at, column in enumerate(columns) if at)
    room = max(width - others - 1, columns[0].narrowest)
    deepest = max(len(cell.lead) // 2 for cell in cells)
    for line, cell in zip(body, cells, strict=True):
        lead = cell.lead
        line[0] = (
            branches.text_below_branch(lead, str(cell.value), cell.code, cell.notes, deepest, room) if lead else line[0]
        )


def _add_column(made: Any, column: Column, at: int, body: list[list[str]], *, headed: bool) -> None:
    if not cell_text.is_left(column):
        made.add_column(column.label, justify="right", no_wrap=True)
    elif column.kind != "value":
        made.add_column("" if column.kind in _UNNAMED else column.label, no_wrap=True)
    elif column.unit == "left":
        made.add_column(column.label, no_wrap=True)
    else:
        # the first column names the row, so it folds last
        whole = _width(body, column, at, headed)
        least = (
            _least_width(body, column, at, headed)
            if at
            else min(max(column.narrowest or _NAME_LEAST, _longest_number(body, at)), whole)
        )
        made.add_column(column.label, overflow="fold", min_width=least)


def _read(row: Row, *, columns: list[Column], width: int) -> list[str]:
    return [_word(row, column, width, first=at == 0) for at, column in enumerate(columns)]


def _word(row: Row, column: Column, width: int, *, first: bool) -> str:
    """Return the text of a cell; below the text of the first cell of a row are the row's notes."""
    cell = cell_text.cell_of(row, column)
    if column.kind not in ("value", "verdict"):
        return marks.mark_text(column.kind, cell.value, width - 60, column.narrowest)
    text = cell_text.value_text(row, column)
    if column.kind == "verdict":
        return text.lower()
    if cell.tag:
        text = f"{text} ({cell.tag})"
    if cell.lead:
        return text
    notes = [*([fmt.line(cell.code, max(width // 2, 30))] if cell.code else []), *cell.notes] if first else []
    return "\n  ".join([text, *notes])


def _styled_cell(text: str, row: Row, column: Column, style: str, *, first: bool) -> Any:
    cell = cell_text.cell_of(row, column)
    tone = STYLES.get(cell.tone, "")
    if column.kind == "side":
        tone = "red" if cell.value is not None and cell.value > 0 else "green"
    if not tone and (first or column.kind in ("bar", "heights")):
        tone = ROW_STYLES.get(row.tone, "")
    return console.plain_text(text, " ".join(part for part in (style, tone) if part))


def _fitting_columns(
    columns: list[Column], body: list[list[str]], width: int, *, headed: bool
) -> tuple[list[int], list[str]]:
    """Return the indexes of the columns that fit, from the left, and the labels of the others."""
    kept: list[int] = []
    used = 0
    dropped = []
    for at, column in enumerate(columns):
        need = _least_width(body, column, at, headed) + 2
        if kept and used + need > width + 2:
            if column.label and column.kind == "value":
                dropped.append(fmt.line(column.label))
            continue
        kept.append(at)
        used += need
    return kept, dropped


def _least_width(body: list[list[str]], column: Column, at: int, headed: bool) -> int:
    """Return the minimum width of a column: words may fold, numbers may not."""
    whole = _width(body, column, at, headed)
    if not cell_text.is_left(column) or column.kind != "value" or column.unit == "left":
        return whole
    widest = column.narrowest or (_TEXT_LEAST if at == 0 or column.name in ("text", "why") else _WORDS_LEAST)
    return min(whole, max(widest, _longest_number(body, at)))


def _longest_number(body: list[list[str]], at: int) -> int:
    """Return the length of the longest cell that is a number in a text column, such as a statement's identifier."""
    return max((len(line[at]) for line in body if line[at].lstrip("-").isdigit()), default=0)


def _width(body: list[list[str]], column: Column, at: int, headed: bool) -> int:
    label = len(column.label) if headed and column.kind not in _UNNAMED else 0
    return max([label, *(len(part) for line in body for part in line[at].split("\n"))])
