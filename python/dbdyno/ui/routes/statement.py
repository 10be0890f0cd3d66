"""One statement of a server: its calls, time, latencies, plans and waits in an interval."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from starlette.requests import Request

from dbdyno.page import Page, Section
from dbdyno.pages import format as fmt
from dbdyno.pages import page_of
from dbdyno.snapshot.plans.side_by_side import NAME as TREES
from dbdyno.snapshot.reading.interval import Interval
from dbdyno.snapshot.reading.search import search
from dbdyno.snapshot.statement import statement
from dbdyno.ui.places import Server
from dbdyno.ui.routes.common import HOME, parameter, places_of, server_address, server_name, server_of
from dbdyno.ui.stretch import CURRENT_INTERVALS, stretch_of
from dbdyno.ui.view import View, shell_words

TOP = 10


def view(request: Request) -> View:
    """Return the page of the statement in the address."""
    server, name = server_of(request), parameter(request, "id")
    stretch = stretch_of(server.snapshots(), parameter(request, "stretch"))
    server.prepare(stretch.chain)
    with Interval(server.store, *stretch.ends) as interval:
        model = statement(interval, name, TOP)
    page = _with_trees_beside(page_of(model))
    text = Section("text", "Text", text=fmt.text(model["text"] or ""))
    links = [
        (f"Last {words}", server_address("/statement", server, id=name, stretch=words)) for words in CURRENT_INTERVALS
    ]
    links.append(("Test it in an experiment", server_address("/experiment", server, id=name, stretch=stretch.text)))
    links += [
        (f"On {server_name(one)}", server_address("/statement", one, id=name)) for one in _others(request, server, name)
    ]
    sessions = server_address("/server", server, stretch=stretch.text, by="event")
    return View(
        replace(page, sections=(text, *page.sections) if model["text"] else page.sections),
        model=model,
        command=shell_words("dbdyno", "snap", "statement", name, *stretch.numbers, "--store", server.store.folder),
        trail=(HOME, (server_name(server), sessions)),
        links=tuple(links),
        later=server_address("/advice", server, stretch=stretch.text, statement=name, part="1"),
        waiting="Judging this stretch…",
    )


def _others(request: Request, server: Server, name: str) -> Iterator[Server]:
    """Yield the other servers that have the statement in their last snapshot."""
    for one in places_of(request).servers():
        last = one.store.last(one.target) if (one.name, one.target) != (server.name, server.target) else None
        if last is not None and any(found["name"] == name for found in search(last, name, TOP)):
            yield one


def _with_trees_beside(page: Page) -> Page:
    """Return the page with plan trees as parts of one section, which the style sheet places side by side."""

    def beside(section: Section) -> Section:
        if section.name != f"s-{TREES}":
            return section
        parts = tuple(Section("", one.title, tables=(replace(one, title=""),)) for one in section.tables)
        return replace(section, tables=(), parts=(*parts, *section.parts))

    return replace(page, sections=tuple(map(beside, page.sections)))
