"""A page without a figure as one SVG picture: its headline, sentences and tables, for a chat or a ticket.

Long texts are cut, and long tables end after `ROWS` rows; the page and its data have the complete content.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape

from dbdyno.page import Column, Page, Row, Section, Table
from dbdyno.pages import format as fmt
from dbdyno.report import cell_text
from dbdyno.report.figures import theme

WIDTH, MARGIN, SIZE, LINE, GAP = 1180, 28, 13, 20, 14
"""Sizes in pixels: width of the picture, margin, font size, line height, and gap between parts."""
ROWS, MARK, LETTERS = 30, 120, 70
"""Maximum number of table rows, width of a drawing in pixels, and maximum number of letters in a cell."""
LETTER = SIZE * theme.LETTER
TONES = {"good": "#00847b", "bad": "#b3243b", "doubt": "#a07400"}


@dataclass
class _Sheet:
    """The picture so far, and the position of the next line."""

    parts: list[str] = field(default_factory=list)
    y: float = MARGIN

    def text(self, words: str, x: float, size: int = SIZE, colour: str = theme.INK, more: str = "") -> None:
        place = f'x="{x:.1f}" y="{self.y:.1f}" font-size="{size}" fill="{colour}"'
        self.parts.append(f"<text {place}{more}>{escape(words)}</text>")

    def paragraph(self, words: str, size: int = SIZE, colour: str = theme.INK, more: str = "") -> None:
        """Draw a paragraph, broken into lines that fit the width."""
        for line in textwrap.wrap(fmt.line(words), int((WIDTH - 2 * MARGIN) / (size * theme.LETTER))):
            self.y += size + 5
            self.text(line, MARGIN, size, colour, more)


def page_svg(page: Page) -> str:
    """Return the picture of a page as SVG text."""
    sheet = _Sheet()
    head = page.head
    sheet.paragraph(head.headline or head.title, 20, more=' font-weight="600"')
    for words in (head.word, *head.chips, *head.sentences):
        sheet.paragraph(words, colour=theme.SOFT)
    for section in page.sections:
        _section(section, sheet)
    height = round(sheet.y + MARGIN)
    frame = f'xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
    ground = f'<rect width="{WIDTH}" height="{height}" fill="{theme.PAPER}"/>'
    return f'<svg {frame} font-family="{theme.FONT}">{ground}{"".join(sheet.parts)}</svg>'


def _section(section: Section, sheet: _Sheet, size: int = 16) -> None:
    if section.where == "text":
        return
    sheet.y += GAP
    sheet.paragraph(section.title, size, more=' font-weight="600"')
    facts = "   ".join(f"{name}: {value}" for name, value in section.facts)
    for words in (section.lead, facts, *section.sentences):
        sheet.paragraph(words)
    for one in section.findings:
        sheet.paragraph(f"{one.name} {one.word} {one.sentence}".strip(), colour=TONES.get(one.weight, theme.INK))
    for line in fmt.text(section.text).splitlines()[:ROWS]:
        sheet.paragraph(line)
    for table in section.tables:
        if table.where != "text" and table.rows:
            _table(table, sheet)
    for words in section.notes:
        sheet.paragraph(words, colour=theme.SOFT)
    for part in section.parts:
        _section(part, sheet, 14)


def _table(table: Table, sheet: _Sheet) -> None:
    columns, rows = cell_text.columns_of(table, "page"), table.rows[:ROWS]
    if table.title:
        sheet.paragraph(table.title, more=' font-weight="600"')
    places = list(_places(columns, rows))
    sheet.y += LINE
    for column, (left, right) in zip(columns, places, strict=True):
        label = fmt.line(column.label) if column.kind in ("value", "verdict", "spark") else ""
        _cell(label, column, left, right, sheet, theme.SOFT)
    _rule(sheet)
    for row in rows:
        sheet.y += LINE
        for column, (left, right) in zip(columns, places, strict=True):
            _value(row, column, left, right, sheet)
    left_out = table.left_out + len(table.rows) - len(rows)
    if left_out:
        sheet.paragraph(f"{fmt.count(left_out)} more", colour=theme.SOFT)
    sheet.y += GAP / 2


def _places(columns: list[Column], rows: tuple[Row, ...]) -> Iterator[tuple[float, float]]:
    """Yield the left and right end of each column; the widest ones are cut if not all fit."""
    wanted = []
    for column in columns:
        texts = [cell_text.value_text(row, column) for row in rows]
        longest = max((min(len(one), LETTERS) for one in (*texts, column.label)), default=4)
        wanted.append(MARK if column.kind in ("bar", "spark") else longest * LETTER + 6)
    room = WIDTH - 2 * MARGIN - GAP * (len(columns) - 1)
    while sum(wanted) > room and max(wanted) > 40:
        widest = wanted.index(max(wanted))
        wanted[widest] -= min(sum(wanted) - room, wanted[widest] * 0.1 + 1)
    left = float(MARGIN)
    for width in wanted:
        yield left, left + width
        left += width + GAP


def _cell(words: str, column: Column, left: float, right: float, sheet: _Sheet, colour: str) -> None:
    most = max(int((right - left) / LETTER), 1)
    cut = words if len(words) <= most else words[: most - 1] + "…"
    if cell_text.is_left(column):
        sheet.text(cut, left, colour=colour)
    else:
        sheet.text(cut, right, colour=colour, more=' text-anchor="end"')


def _value(row: Row, column: Column, left: float, right: float, sheet: _Sheet) -> None:
    cell = cell_text.cell_of(row, column)
    if column.kind == "spark":
        sheet.parts.append(_spark(list(cell.value or ()), left, right, sheet.y))
    elif column.kind == "bar":
        width = min(max(fmt.number(cell.value) or 0.0, 0.0), 1.0) * (right - left)
        sheet.parts.append(
            f'<rect x="{left:.1f}" y="{sheet.y - 9:.1f}" width="{width:.1f}" height="8" fill="{theme.BASELINE}"/>'
        )
    elif column.kind in ("value", "verdict"):
        words = cell.lead + fmt.line(cell_text.value_text(row, column))
        _cell(words, column, left, right, sheet, TONES.get(cell.tone, theme.INK))


def _spark(values: list[float], left: float, right: float, y: float) -> str:
    if len(values) < 2:
        return ""
    most = max(values) or 1.0
    step = (right - left) / (len(values) - 1)
    course = "L".join(f"{left + at * step:.1f} {y - value / most * 13:.1f}" for at, value in enumerate(values))
    return f'<path d="M{course}" fill="none" stroke="{theme.OTHERS[4]}" stroke-width="1.4"/>'


def _rule(sheet: _Sheet) -> None:
    y = sheet.y + 6
    sheet.parts.append(f'<line x1="{MARGIN}" x2="{WIDTH - MARGIN}" y1="{y:.1f}" y2="{y:.1f}" stroke="{theme.GRID}"/>')
