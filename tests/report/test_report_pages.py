"""Any page renders in all three formats: complete, escaped, at the requested width, and without colour on request."""

from __future__ import annotations

import ast
import html
import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dbdyno.report
from dbdyno.base.errors import ReportError
from dbdyno.page import Cell, Column, Finding, Head, Page, Row, Section, Strip, Table
from dbdyno.pages import page_of
from dbdyno.report import cell_text
from dbdyno.report.flat import rows
from dbdyno.report.html import render_html
from dbdyno.report.terminal import render_text

UNITS = [*sorted(cell_text._SHOWN), "number", "quantity", "left"]
WORDS = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc", "Cf", "Zl", "Zp")), max_size=30)
NAMES = st.sampled_from(["a", "b", "c", "unit", "text"])
NUMBERS = st.one_of(st.none(), st.integers(0, 10**15), st.floats(0, 1e12), st.just(math.nan))
LEFT = ("text", "code", "words", "left")


@st.composite
def cells(draw: st.DrawFn, column: Column) -> Any:
    if column.kind == "strip":
        return Cell(draw(st.one_of(st.none(), st.just(Strip(1.1, 0.9, 1.3, 0.2, 0.02, "bad")))))
    if column.kind in ("heights", "spark"):
        return Cell(draw(st.one_of(st.none(), st.lists(st.floats(0, 1e6), min_size=1, max_size=9))))
    if column.kind in ("bar", "side"):
        return Cell(draw(st.one_of(st.none(), st.floats(0, 1))))
    value = draw(WORDS if column.unit in LEFT else NUMBERS)
    if isinstance(value, float) and not math.isfinite(value):
        value = None
    if draw(st.booleans()):
        return value
    return Cell(value, notes=tuple(draw(st.lists(WORDS, max_size=2))), code=draw(WORDS), tone="bad", lead="├─ ")


@st.composite
def tables(draw: st.DrawFn) -> Table:
    kinds = st.sampled_from(["value", "value", "value", "bar", "side", "heights", "spark", "strip", "verdict"])
    names = draw(st.lists(NAMES, min_size=1, max_size=4, unique=True))
    columns = []
    for name in names:
        kind = draw(kinds)
        unit = draw(st.sampled_from(UNITS)) if kind == "value" else "text"
        where = draw(st.sampled_from(["both", "both", "page", "text"]))
        columns.append(Column(name, draw(WORDS), unit, kind, where=where, least=draw(st.sampled_from([0, 0, 90]))))
    made = [
        Row({one.name: draw(cells(one)) for one in columns}, verdict=draw(st.sampled_from(["", "", "reset"])))
        for _ in range(draw(st.integers(0, 4)))
    ]
    return Table(draw(WORDS), tuple(columns), tuple(made), most=draw(st.sampled_from([None, 1])))


@st.composite
def pages(draw: st.DrawFn) -> Page:
    sections = []
    for at in range(draw(st.integers(0, 3))):
        found = [Finding(draw(WORDS), "bad", (draw(WORDS),), draw(WORDS), draw(WORDS)) for _ in range(2)]
        part = Section("", draw(WORDS), tables=(draw(tables()),))
        made = tuple(draw(st.lists(tables(), max_size=2)))
        sections.append(
            Section(f"s-{at}", draw(WORDS), draw(WORDS), tables=made, findings=tuple(found), text=draw(WORDS))
        )
        sections.append(Section(f"t-{at}", draw(WORDS), notes=(draw(WORDS),), parts=(part,)))
    head = Head(draw(WORDS), draw(WORDS), word=draw(WORDS), tone="good", chips=(draw(WORDS),))
    return Page(head, tuple(sections), capitals=draw(st.booleans()))


any_page = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@any_page
@given(pages(), st.sampled_from([40, 60, 80, 120]))
def test_any_page_is_text_html_and_rows(page: Page, width: int):
    text = render_text(page, width=width, color=False)
    assert "\x1b" not in text
    page_text = render_html(page)
    assert page_text.startswith("<!doctype html>")
    assert page_text.rstrip().endswith("</html>")
    flat = rows(page)
    assert len({tuple(row) for row in flat}) <= 1
    json.dumps(flat, default=str)


HOSTILE = "</script><img src=x onerror=alert(1)>\x1b[31m\u202e{{7*7}}[bold]"


def hostile_page() -> Page:
    """Return a page with external text in every place that can have text."""
    cell = Cell(HOSTILE, notes=(HOSTILE,), code=HOSTILE, tag=HOSTILE, lead=HOSTILE)
    table = Table(HOSTILE, (Column("a", HOSTILE, help=HOSTILE), Column("b", HOSTILE, "code")),
                  (Row({"a": cell, "b": HOSTILE}, HOSTILE, HOSTILE),), note=HOSTILE, folded=HOSTILE)  # fmt: off
    finding = Finding(HOSTILE, "bad", (HOSTILE,), HOSTILE, HOSTILE, HOSTILE, HOSTILE)
    section = Section("s", HOSTILE, HOSTILE, ((HOSTILE, HOSTILE),), (HOSTILE,), (table,), (), (finding,), (HOSTILE,))
    whole = replace(section, text=HOSTILE, text_title=HOSTILE, parts=(replace(section, name="p"),))
    head = Head(HOSTILE, HOSTILE, about=HOSTILE, question=HOSTILE, word=HOSTILE, headline=HOSTILE)
    return Page(head, (whole,), series=(HOSTILE,), source={"a": HOSTILE}, foot=(HOSTILE,))


def test_foreign_text_stays_text_in_every_place():
    shown_ = render_html(hostile_page())
    assert "<img" not in shown_
    assert "&lt;img" in shown_
    assert "49" not in re.sub(r"[0-9a-f#]{6,}", "", shown_.split("<main>")[1].split("</main>")[0])
    text = render_text(hostile_page(), width=100, color=False)
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "[bold]" in text


@pytest.mark.parametrize("width", [40, 80, 120])
def test_words_fold_and_numbers_stay_whole(width: int):
    columns = (Column("a", "name"), Column("b", "bytes", "bytes"), Column("c", "why"))
    table = Table("", columns, tuple(Row({"a": "word " * 20, "b": 1 << at, "c": "because " * 9}) for at in range(40)))
    text = render_text(Page(Head("k", "t"), (Section("s", "S", tables=(table,)),)), width=width, color=False)
    assert max(map(len, text.splitlines())) <= width
    assert "512 GiB" in text.replace("\u202f", " ")


def test_columns_that_do_not_fit_are_named():
    columns = tuple(Column(f"n{at}", f"number {at}", "count") for at in range(12))
    table = Table("", columns, (Row({one.name: 123_456_789 for one in columns}),))
    text = render_text(Page(Head("k", "t"), (Section("s", "S", tables=(table,)),)), width=60, color=False)
    assert "not shown, because the terminal is too narrow: number" in text


def test_rows_that_a_screen_is_not_meant_for_are_counted():
    table = Table("", (Column("a", "a"),), tuple(Row({"a": str(at)}) for at in range(9)), most=4, left_out=2)
    page = Page(Head("k", "t"), (Section("s", "S", tables=(table,)),))
    assert "7 more rows" in render_text(page, width=60, color=False)
    assert "2 more rows" in html.unescape(render_html(page))
    assert len(rows(replace(page, data=lambda: table))) == 9


def test_what_is_not_known_is_a_dash_and_where_a_verdict_is_to_blame_it_says_so():
    column = Column("b", "b", "ns")
    assert cell_text.value_text(Row({"b": None}), column) == "–"
    assert cell_text.value_text(Row({"b": None}, "evicted"), column) == "n/a"
    assert cell_text.value_text(Row({"b": 1500}), column) == "1.50\u202fµs"
    assert cell_text.value_text(Row({"b": 0.25, "unit": "ratio"}), Column("b", "b", "quantity")) == "25.00\u202f%"


def test_an_unknown_kind_of_model_is_an_error_with_its_place():
    with pytest.raises(ReportError, match="kind"):
        page_of({"schema": 1, "kind": "poem"})


KINDS = {"snapshot", "trace", "traces", "experiment", "aa", "calibration", "claims", "machine", "correlation"}


def test_renderers_know_no_kind_of_page():
    """Not even by name: `machine` and `curve` are figures, which are drawn by kind."""
    folder = Path(dbdyno.report.__file__).parent
    for name in ("html", "terminal", "flat", "cell_text", "marks", "branches"):
        tree = ast.parse((folder / f"{name}.py").read_text())
        words = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
        assert not words & KINDS, name
        imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        assert not [one for one in imported if str(one).startswith("dbdyno.pages.")], name
    assert {path.name for path in (folder / "templates").glob("*.html")} == {"page.html", "parts.html"}


def test_a_row_without_a_name_has_no_empty_heading() -> None:
    """A statement's text stands in the first of its rows only; an empty heading is a barrier for screen readers."""
    columns = (Column("text", "statement", "code"), Column("mean", "mean", "ns"))
    table = Table("", columns, (Row({"text": "select 1", "mean": 5}), Row({"text": "", "mean": 7})))
    page = render_html(Page(Head("k", "t"), (Section("s", "S", tables=(table,)),)))
    assert page.count('scope="row"') == 1 and "select 1" in page
