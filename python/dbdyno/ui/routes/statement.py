"""One statement of a server: its calls, time, latencies, plans and waits over a stretch."""

from __future__ import annotations

from dataclasses import replace

from starlette.requests import Request

from dbdyno.page import Section
from dbdyno.pages import format as fmt
from dbdyno.pages import page_of
from dbdyno.snapshot.reading.interval import Interval
from dbdyno.snapshot.statement import statement
from dbdyno.ui.routes.common import HOME, asked, server_address, server_name, server_of
from dbdyno.ui.stretch import LASTING, stretch_of
from dbdyno.ui.view import View, shell_words

TOP = 10


def view(request: Request) -> View:
    """Return the page of the statement that the address names."""
    server, name = server_of(request), asked(request, "id")
    stretch = stretch_of(server.snapshots(), asked(request, "stretch"))
    with Interval(server.store, *stretch.ends) as interval:
        model = statement(interval, name, TOP)
    page = page_of(model)
    text = Section("text", "Text", text=fmt.text(model["text"] or ""))
    links = [(f"Last {words}", server_address("/statement", server, id=name, stretch=words)) for words in LASTING]
    sessions = server_address("/server", server, stretch=stretch.text, by="event")
    return View(
        replace(page, sections=(text, *page.sections) if model["text"] else page.sections),
        model=model,
        command=shell_words("dbdyno", "snap", "statement", name, *stretch.numbers, "--store", server.store.folder),
        trail=(HOME, (server_name(server), sessions)),
        links=tuple(links),
    )
