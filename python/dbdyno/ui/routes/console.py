"""The SQL console: one SELECT over the evidence of a run, fenced as `dbdyno sql` is, with a table and a chart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from starlette.requests import Request

from dbdyno.base.errors import Error, EvidenceError
from dbdyno.base.json_types import JsonObject
from dbdyno.evidence.query import Answer, table_columns
from dbdyno.evidence.run import Run
from dbdyno.page import Column, Finding, Head, Page, Row, Section, Table
from dbdyno.pages import format as fmt
from dbdyno.ui.routes.common import HOME, asked, places_of
from dbdyno.ui.view import View, shell_words

SHOWN = 500
"""Rows on the page; the files have `MOST`."""
MOST = 100_000
BAR = " bar"
"""Name of the column with bars, which no column of a query has."""
SECONDS = 20.0
"""A query is stopped after this time, so that one viewer does not hold up the others."""
OWN = ("same-origin", "none", "")
"""What a browser says of a request that no other site led to."""


def view(request: Request) -> View:
    """Return the console, and the answer if the address has a query and no other site led here."""
    places = places_of(request)
    runs = [run for run in places.runs()[::-1] if run.status != "running"]
    run = places.run(asked(request, "run")) if asked(request, "run") else runs[0] if runs else None
    text = asked(request, "query")
    columns, problem = _tables(run)
    known = [(one.id, fmt.line(one.manifest.title, 60)) for one in runs]
    extra = {"runs": known, "run": run.id if run else "", "query": fmt.text(text), "columns": columns}
    trusted = request.headers.get("sec-fetch-site", "") in OWN
    head = Head("SQL", "", name="sql", headline="Query the evidence of a run", section="SQL")
    sections: tuple[Section, ...] = ()
    rows: list[JsonObject] = []
    if run is not None and text and trusted:
        sections, rows = _answer(run, text)
    elif problem:
        sections = (Section("problem", "Problem", findings=(Finding(problem, "bad"),)),)
    words = ("dbdyno", "sql", text, "--run", run.id, "--runs", places.runs_folder) if run and text else ()
    return View(
        Page(head, sections),
        rows=lambda: rows,
        command=shell_words(*words),
        trail=(HOME,),
        widget="console.html",
        bare=True,
        extra=extra,
    )


def _answer(run: Run, text: str) -> tuple[tuple[Section, ...], list[JsonObject]]:
    """Return the sections of an answer, and its rows."""
    try:
        names, rows, broken = _asked(run, text)
    except EvidenceError as error:
        finding = Finding(fmt.text(error.message), "bad", next=error.next_step or "")
        return (Section("problem", "This query was not answered", findings=(finding,)),), []
    columns = [_column(name, [row[at] for row in rows[:SHOWN]]) for at, name in enumerate(names)]
    drawn = next((one.name for one in reversed(columns) if one.unit != "text"), None) if len(names) > 1 else None
    most = max((abs(row[names.index(drawn)] or 0) for row in rows[:SHOWN]), default=0) if drawn else 0
    shown = Table(
        "",
        (*columns, *((Column(BAR, drawn, kind="bar"),) if drawn and most else ())),
        tuple(_row(names, row, drawn if most else None, most) for row in rows[:SHOWN]),
        left_out=max(len(rows) - SHOWN, 0),
        look="loose",
    )
    left = tuple(f"left out: {fmt.line(one)}" for one in broken)
    notes = (*left, *(() if len(rows) < MOST else (f"The first {MOST:,} rows; the command has all of them.",)))
    title = f"{len(rows):,} row{'' if len(rows) == 1 else 's'}"
    section = Section("answer", title, tables=(shown,), notes=notes)
    return (section,), [dict(zip(names, row, strict=True)) for row in rows]


def _row(names: list[str], row: Sequence[Any], drawn: str | None, most: float) -> Row:
    """Return a row of the answer, with a bar for its value of the column that is drawn."""
    cells = dict(zip(names, row, strict=True))
    return Row(cells | {BAR: abs(cells[drawn] or 0) / most} if drawn else cells)


def _asked(run: Run, text: str) -> tuple[list[str], list[Sequence[Any]], list[str]]:
    with Answer(run, text, seconds=SECONDS) as answer:
        return answer.names, list(answer.rows(MOST)), answer.broken


def _column(name: str, values: list[Any]) -> Column:
    """Return a column of an answer: numbers with all their digits, in ns where the name says so."""
    known = [value for value in values if value is not None]
    is_number = bool(known) and all(isinstance(value, int | float) and not isinstance(value, bool) for value in known)
    if not is_number:
        return Column(name, fmt.line(name, 60))
    return Column(name, fmt.line(name, 60), "digits" if all(isinstance(value, int) for value in known) else "number5")


def _tables(run: Run | None) -> tuple[list[tuple[str, str]], str]:
    """Return the tables of a run with their columns, and why there are none."""
    if run is None:
        return [], "there is no run to query; `dbdyno run redo-size` makes one"
    try:
        return [(name, ", ".join(known)) for name, known in table_columns(run).items()], ""
    except Error as error:
        return [], str(error)
