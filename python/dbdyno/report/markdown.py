"""A page as Markdown, for a comment on a change: answer visible, sections folded; independent of the kind of page."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping
from typing import Any

from dbdyno.page import Finding, Page, Row, Section, Table
from dbdyno.pages import format as fmt
from dbdyno.pages import page_of
from dbdyno.report import cell_text

_SIGNS = {"good": "✓", "bad": "✗", "doubt": "?", "even": "·", "": "·"}
_SPECIAL = re.compile(r"([\\`*_\[\]#|~])")
"""Characters that would be markup or begin a link. HTML is escaped separately, and mentions are broken after the @."""


def render_markdown(given: Page | Mapping[str, Any]) -> str:
    """Return the page as GitHub Markdown: text from the page's data never becomes markup, a link or a mention.

    Raises:
        ReportError: the model has another schema or an unknown kind, or is damaged.
    """
    page = page_of(given)
    return "\n".join(_lines(page)).rstrip("\n") + "\n"


def escape_text(text: object) -> str:
    """Return foreign text escaped so that it stays plain text."""
    escaped = _SPECIAL.sub(r"\\\1", html.escape(fmt.line(str(text), 2000), quote=False))
    return escaped.replace("@", "@\u200b").replace("://", ":\u200b//")


def _lines(page: Page) -> Iterator[str]:
    head = page.head
    yield f"### {escape_text(head.headline or head.title)}"
    yield ""
    about = [head.title if head.headline else "", head.question]
    line = "  ".join(escape_text(one) for one in about if one)
    if head.word:
        line = f"**{escape_text(head.word)}.** {line}".rstrip()
    if line:
        yield line
        yield ""
    for sentence in head.sentences:
        yield f"- {escape_text(sentence)}"
    if head.next:
        yield f"- → {escape_text(head.next)}"
    if head.sentences or head.next:
        yield ""
    facts = [*head.chips, *([head.about] if head.about else []), *(words for words, _ in head.alerts)]
    if facts:
        yield " · ".join(escape_text(fact) for fact in facts)
        yield ""
    for section in page.sections:
        yield from _section(section)
    for line in page.foot:
        yield f"<sub>{escape_text(line)}</sub>"


def _section(section: Section) -> Iterator[str]:
    body = list(_body(section))
    if section.where == "page" or not body:
        return
    yield f"<details><summary>{html.escape(fmt.line(section.title or section.name))}</summary>"
    yield ""
    yield from body
    yield "</details>"
    yield ""


def _body(section: Section) -> Iterator[str]:
    for name, value in section.facts:
        yield f"- {escape_text(name)}: {escape_text(value)}"
    for sentence in (*section.sentences, *section.notes):
        yield f"- {escape_text(sentence)}"
    for finding in section.findings:
        if finding.where != "page":
            yield _finding(finding)
    if section.facts or section.sentences or section.notes or section.findings:
        yield ""
    for table in section.tables:
        if table.where != "page":
            yield from _table(table)
    for part in section.parts:
        if part.where != "page" and (own := list(_body(part))):
            yield f"**{escape_text(part.title)}**"
            yield ""
            yield from own


def _finding(finding: Finding) -> str:
    words = finding.sentence or f"{finding.name}: {finding.word}"
    return f"- {_SIGNS[finding.weight]} {escape_text(words)}" + (
        f" ({escape_text(finding.next)})" if finding.next else ""
    )


def _table(table: Table) -> Iterator[str]:
    columns = [column for column in cell_text.columns_of(table, "text", 120) if column.kind in ("value", "verdict")]
    if table.title:
        yield f"**{escape_text(table.title)}**"
        yield ""
    yield "| " + " | ".join(escape_text(column.label) or " " for column in columns) + " |"
    yield "|" + "|".join("---" if cell_text.is_left(column) else "---:" for column in columns) + "|"
    rows = table.rows if table.most is None else table.rows[: table.most]
    for row in rows:
        yield "| " + " | ".join(_cell(row, column) for column in columns) + " |"
    left = len(table.rows) - len(rows)
    yield ""
    if left > 0:
        yield f"and {fmt.count(left)} more"
        yield ""


def _cell(row: Row, column: Any) -> str:
    cell = cell_text.cell_of(row, column)
    notes = "".join(f" · {note}" for note in cell.notes)
    return escape_text(f"{cell.lead}{cell_text.value_text(row, column)}{notes}") or " "
