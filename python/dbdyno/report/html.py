"""A page as one HTML file: offline, printable, usable on a phone, safe; independent of the kind of page.

Safety: Jinja escapes everything; figures pass an allow list (`svg.py`); the model of the page is embedded as JSON
without any character that HTML or JavaScript could interpret; and a content security policy forbids the network and all
scripts and styles except the two on the page, identified by their hashes.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import re
from collections.abc import Callable, Mapping
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any

from dbdyno.base.json_types import JsonObject
from dbdyno.page import Cell, Column, Finding, Page, Row, Section, Table
from dbdyno.pages import format as fmt
from dbdyno.pages import page_of, reading
from dbdyno.report import cell_text, marks
from dbdyno.report.figures import theme
from dbdyno.report.files import write_whole
from dbdyno.report.typography import add_no_break_spaces

_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}
_SIGNS = {"good": "✓", "bad": "✗", "doubt": "?", "even": "·", "": "·"}
_OPEN_ROWS = 12
_CODE = re.compile(r"`([^`\n]+)`")
View = JsonObject


def render_html(given: Page | Mapping[str, Any]) -> str:
    """Return the page as HTML text; a model is first built into its page.

    Raises:
        ReportError: the model has another schema or an unknown kind, or is damaged; `where` names the place.
    """
    page = page_of(given)
    style, script = style_sheet(), template_text("report.js")
    return add_no_break_spaces(
        _environment()
        .get_template("page.html")
        .render(
            **view_of(page),
            style=_markup(style),
            script=_markup(script),
            policy=_policy(style, script),
            source=_markup(embedded_json(page.source)),
        )
    )


def view_of(page: Page) -> View:
    """Return head, alerts and sections of a page in the form that the macro `content` of `parts.html` takes."""
    colours = theme.arm_colours(len(page.series), page.baseline) if page.series else []
    sections = [made for one in page.sections if (made := _section(one, colours)) is not None]
    names = {section["name"] for section in sections}
    alerts = [(words, place) for words, place in page.head.alerts if place in names]
    return {"head": page.head, "alerts": alerts, "sections": sections}


def write_html(given: Page | Mapping[str, Any], path: Path | str) -> Path:
    """Write the page as a file, completely or not at all, and return its path.

    Raises:
        ReportError: as in `render_html`, or the file cannot be written.
    """
    target = Path(path)
    write_whole(target, render_html(given).encode())
    return target


def embedded_json(model: Mapping[str, Any]) -> str:
    """Return a model as JSON that is safe inside `<script>`; NaN becomes null."""
    plain = json.dumps(reading.finite(model), ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for character, escape in _ESCAPES.items():
        plain = plain.replace(character, escape)
    return plain


def _section(section: Section, colours: list[str]) -> View | None:
    """Return a section in the form that the template expects, or None if nothing in it is shown."""
    if section.where == "text":
        return None
    listed = [_finding(one) for one in section.findings if one.where != "text"]
    made: View = {
        "name": section.name,
        "title": section.title,
        "lead": section.lead,
        "facts": section.facts,
        "sentences": section.sentences,
        "checks": [one for one in listed if one["name"]],
        "findings": [one for one in listed if not one["name"]],
        "figures": [drawn for one in section.figures if one.where != "text" and (drawn := _figure(one))],
        "text": section.text,
        "text_title": section.text_title,
        "tables": _tables(section, colours),
        "notes": section.notes,
        "parts": [part for one in (*section.parts, *section.rest()) if (part := _section(one, colours))],
        "folded": section.folded,
        "tone": section.tone,
        "word": section.word,
        "mark": _markup(marks.svg("bar", section.share, "")) if section.share is not None else "",
    }
    shows = ("facts", "sentences", "checks", "findings", "figures", "text", "tables", "parts", "notes")
    return made if any(made[name] for name in shows) else None


def _finding(finding: Finding) -> View:
    names = ("sentence", "weight", "evidence", "next", "name", "word", "code")
    return {name: getattr(finding, name) for name in names} | {"sign": _SIGNS[finding.weight]}


def _figure(figure: Any) -> View | None:
    from dbdyno.report import figures

    found = figures.draw_figure(figure.kind, figure.data)
    return None if found is None else {**found, **{look: _markup(found[look]) for look in ("wide", "narrow")}}


def _tables(section: Section, colours: list[str]) -> list[View]:
    """Return the tables of a section, each with a label that identifies it among all tables of the page."""
    shown = [one for one in section.tables if one.where != "text"]
    made = []
    for at, one in enumerate(shown, 1):
        title = one.title or one.folded or ("table" if len(shown) == 1 else f"table {at}")
        made.append(_table(one, colours, f"{section.title}: {title}" if section.title else title))
    return made


def _table(table: Table, colours: list[str], label: str) -> View:
    columns = cell_text.columns_of(table, "page")
    made = partial(_row, columns=columns, colours=colours)
    return {
        "title": fmt.line(table.title),
        "label": fmt.line(label),
        "look": f"numbers {table.look}".strip(),
        "carded": table.look == "loose",
        "headed": table.headed,
        "columns": [_column(column) for column in columns],
        "rows": [made(row) for row in table.rows],
        "left_out": fmt.count(table.left_out) if table.left_out else "",
        "note": table.note,
        "folded": table.folded,
        "open": table.folded and len(table.rows) <= _OPEN_ROWS and table.look == "slim",
    }


def _column(column: Column) -> View:
    drawn = column.kind not in ("value", "verdict", "heights") and bool(column.label)
    return {
        "label": fmt.line(column.label),
        "left": cell_text.is_left(column),
        "help": column.help,
        "unseen": drawn,
    }


def _row(row: Row, *, columns: list[Column], colours: list[str]) -> View:
    return {
        "cells": [_cell(row, column, colours) for column in columns],
        "verdict": fmt.line(row.verdict),
        "why": fmt.line(row.why),
        "sum": row.style == "sum",
    }


def _cell(row: Row, column: Column, colours: list[str]) -> View:
    cell: Cell = cell_text.cell_of(row, column)
    is_mark = column.kind not in ("value", "verdict")
    mark = marks.svg(column.kind, cell.value, cell.tone or row.tone) if is_mark else ""
    text = "" if is_mark else cell_text.value_text(row, column)
    left, sql = cell_text.is_left(column), column.unit == "code" or cell.unit == "code"
    css = [*(["left"] if left else []), *(["sql"] if sql and column.narrowest else [])]
    if cell.tone and column.kind == "value" and not is_mark:
        css.append(cell.tone)
    return {
        "text": text,
        "mark": _markup(mark) if mark else "",
        "pill": column.kind == "verdict" and text,
        "tone": cell.tone,
        "colour": colours[cell.series] if cell.series is not None and cell.series < len(colours) else "",
        "href": cell.href,
        "sql": sql,
        "bold": cell.bold,
        "tag": cell.tag,
        "code": cell.code,
        "notes": cell.notes,
        "lead": cell.lead,
        "css": " ".join(css),
    }


@functools.cache
def _environment() -> Any:
    return template_environment(template_text)


def template_environment(text_of: Callable[[str], str]) -> Any:
    """Return a template environment that escapes everything and has the filter `coded`."""
    import jinja2

    made = jinja2.Environment(
        loader=jinja2.FunctionLoader(text_of),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["coded"] = code_spans
    return made


def code_spans(text: str) -> Any:
    """Return a sentence as escaped HTML in which `words in backticks` are set as code; single backticks stay."""
    from markupsafe import escape

    return _markup(_CODE.sub(r"<code>\1</code>", str(escape(text))))


def template_text(name: str) -> str:
    """Return the text of a template, style sheet or script of this package."""
    return resources.files("dbdyno.report").joinpath("templates", name).read_text(encoding="utf-8")


def _markup(own: str) -> Any:
    from markupsafe import Markup

    return Markup(own)  # noqa: S704 - only our own style sheet, script, marks, drawings, escaped JSON and sentences


def style_sheet() -> str:
    """Return the style sheet, with rules that give figures their dark colours."""
    dark = "".join(
        f'.themed [fill="{light}"]{{fill:{night}}}.themed [stroke="{light}"]{{stroke:{night}}}'
        for light, night in theme.DARK.items()
    )
    return template_text("report.css") + f"@media screen and (prefers-color-scheme:dark){{{dark}}}"


def _policy(style: str, script: str) -> str:
    """Return the content security policy: nothing is loaded, only our style and script are allowed, by hash."""
    rules = (
        "default-src 'none'",
        "img-src data:",
        f"style-src '{_hash(style)}'",
        f"script-src '{_hash(script)}'",
        "base-uri 'none'",
        "form-action 'none'",
    )
    return "; ".join(rules)


def _hash(content: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
