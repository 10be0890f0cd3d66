"""The SQL console: one SELECT over a run or a server's snapshots, restricted as in `dbdyno sql`, with table and chart.

The address contains the subject of the query (`on`: `run:NAME` or `snap:STORE/TARGET` with a `stretch`) and the query.
Saved queries are read from the user's file that `dbdyno sql --save` writes; nothing is written here.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request

from dbdyno.base.errors import Error, EvidenceError
from dbdyno.base.json_types import JsonObject
from dbdyno.evidence.memory import memory_connection
from dbdyno.evidence.query import Answer, table_columns
from dbdyno.evidence.query_model import answer_model
from dbdyno.evidence.run import Run
from dbdyno.evidence.saved_queries import queries_file, saved_queries
from dbdyno.page import Finding, Head, Page, Section
from dbdyno.pages import format as fmt
from dbdyno.pages import page_of
from dbdyno.snapshot.reading.interval import Interval
from dbdyno.snapshot.reading.store_query import StoreAnswer, store_tables
from dbdyno.ui.places import Places, Server
from dbdyno.ui.routes.common import HOME, parameter, places_of, server_name
from dbdyno.ui.stretch import DEFAULT, Stretch, stretch_of
from dbdyno.ui.view import View, address, shell_words

MOST = 100_000
"""Maximum number of rows on the page; the command prints all."""
SECONDS = 20.0
"""Time limit of a query [s], so that one user does not delay others."""
SAME_SITE = ("same-origin", "none", "")
"""Values of the Sec-Fetch-Site header for requests that did not come from another site."""


@dataclass(frozen=True)
class Subject:
    """Subject of a query: a run, or an interval of a server's snapshots; `value` identifies it in addresses."""

    value: str
    run: Run | None = None
    server: Server | None = None
    stretch: Stretch | None = None


def view(request: Request) -> View:
    """Return the console, with the answer if the address has a query and the request did not come from another site."""
    places = places_of(request)
    known = _subjects(places)
    text = parameter(request, "query")
    trusted = request.headers.get("sec-fetch-site", "") in SAME_SITE
    subject, tables, problem = _choose_subject(request, places, known)
    model: JsonObject | None = None
    rows: list[JsonObject] = []
    if subject is not None and text and trusted:
        try:
            model, rows = _answer(subject, text)
        except EvidenceError as error:
            problem = Section(
                "problem",
                "This query was not answered",
                findings=(Finding(fmt.text(error.message), "bad", next=error.next_step or ""),),
            )
    made = page_of(model).sections if model is not None else ()
    head = Head("SQL", "", name="sql", headline="Query runs and snapshots", section="SQL")
    command = shell_words(*_command(subject, text, places)) if subject and text else ""
    return View(
        Page(head, (problem, *made) if problem else made),
        model=model,
        rows=lambda: rows,
        command=command,
        trail=(HOME,),
        widget="console.html",
        bare=True,
        extra=_extra(known, subject, tables, text, command),
    )


def _extra(
    known: dict[str, str], subject: Subject | None, tables: dict[str, list[str]], text: str, command: str
) -> JsonObject:
    """Return the values for the console's template."""
    value = subject.value if subject else ""
    stretch = subject.stretch.text if subject and subject.stretch else ""
    saved = [
        (name, query, address("/sql", on=value, stretch=stretch, query=query))
        for name, query in saved_queries().items()
    ]
    return {
        "subjects": list(known.items()),
        "on": value,
        "stretch": stretch,
        "query": fmt.text(text),
        "columns": [(name, ", ".join(columns)) for name, columns in tables.items()],
        "saved": [(fmt.line(name, 60), fmt.text(query), place) for name, query, place in saved],
        "file": fmt.line(queries_file()),
        "save": f"{command} --save NAME" if command else "",
    }


def _subjects(places: Places) -> dict[str, str]:
    """Return the available subjects: their values in addresses, and their titles."""
    servers = {f"snap:{one.name}/{one.target}": f"Snapshots of {server_name(one)}" for one in places.servers()}
    runs = {
        f"run:{one.id}": f"{fmt.line(one.manifest.title, 60)} · {one.id}"
        for one in places.runs()[::-1]
        if one.status != "running"
    }
    return servers | runs


def _choose_subject(
    request: Request, places: Places, known: dict[str, str]
) -> tuple[Subject | None, dict[str, list[str]], Section | None]:
    """Return the selected subject, its tables with columns, and a section that explains it if there are no tables."""
    named = f"run:{parameter(request, 'run')}" if parameter(request, "run") else parameter(request, "on")
    value = named or next(iter(known), "")
    if not value:
        finding = Finding(
            "there are no runs or snapshots to query",
            next="make a run with `dbdyno run redo-size`, or take snapshots with `dbdyno snap watch`",
        )
        return None, {}, Section("problem", "Nothing here yet", findings=(finding,))
    kind, _, name = value.partition(":")
    if kind != "snap":
        run = places.run(name)
        try:
            return Subject(value, run=run), table_columns(run), None
        except Error as error:
            return Subject(value, run=run), {}, Section("problem", "Problem", findings=(Finding(str(error), "bad"),))
    server = places.server(*name.split("/", 1))
    stretch = stretch_of(server.snapshots(), parameter(request, "stretch") or DEFAULT)
    server.prepare(stretch.chain)
    with Interval(server.store, *stretch.ends) as interval:
        return Subject(value, server=server, stretch=stretch), store_tables(interval), None


def _answer(subject: Subject, text: str) -> tuple[JsonObject, list[JsonObject]]:
    """Return the model of the answer to a query, and its rows.

    Raises:
        EvidenceError: The query is not one SELECT, fails, or takes too long.
    """
    with contextlib.ExitStack() as stack:
        answer: Answer | StoreAnswer
        if subject.run is not None:
            answer = stack.enter_context(Answer(subject.run, text, seconds=SECONDS))
        else:
            assert subject.server and subject.stretch
            alone = memory_connection(in_order=True)
            interval = stack.enter_context(Interval(subject.server.store, *subject.stretch.ends, connection=alone))
            answer = stack.enter_context(StoreAnswer(interval, text, seconds=SECONDS))
        rows: list[Sequence[Any]] = list(answer.rows(MOST))
        notes = [f"left out: {one}" for one in answer.broken]
        if len(rows) == MOST:
            notes.append(f"The first {MOST:,} rows; the command returns all of them.")
        names = answer.names
    return answer_model(names, rows, notes), [dict(zip(names, row, strict=True)) for row in rows]


def _command(subject: Subject, text: str, places: Places) -> tuple[object, ...]:
    if subject.run is not None:
        return ("dbdyno", "sql", text, "--run", subject.run.id, "--runs", places.runs_folder)
    assert subject.server and subject.stretch
    first, last = subject.stretch.numbers
    return ("dbdyno", "sql", text, "--run", f"snap:{first}..{last}", "--store", subject.server.store.folder)
