"""Search over everything: runs, moves, saved pages; statements, tables, indexes and settings of every server."""

from __future__ import annotations

from starlette.requests import Request

from dbdyno.page import Cell, Head, Page, Row, Section
from dbdyno.pages import format as fmt
from dbdyno.pages.common import columns, counted, table
from dbdyno.snapshot.model import Row as Found
from dbdyno.snapshot.reading.search import search
from dbdyno.ui.places import Server
from dbdyno.ui.routes.common import HOME, RUN_COLUMNS, asked, places_of, run_row, server_address, server_name
from dbdyno.ui.view import View, address

TOP = 20
_COLUMNS = columns("kind:text name:text text:code:what server:text")


def view(request: Request) -> View:
    """Return what contains the words of the address."""
    places, words = places_of(request), asked(request, "q").strip()[:200]
    needles = words.lower().split()
    runs = [
        run
        for run in places.runs()[::-1]
        if needles
        and all(one in f"{run.id} {run.manifest.title} {run.manifest.verdict or ''}".lower() for one in needles)
    ]
    rows = [
        _row(server, one)
        for server in places.servers()
        if needles and (last := server.store.last(server.target)) is not None
        for one in search(last, words, TOP)
    ]
    pages = [
        Row(
            {
                "kind": str(model["kind"]),
                "name": Cell(fmt.line(name, 80), href=address("/saved", name=name)),
                "text": "",
            }
        )
        for name, model in places.saved_pages().items()
        if needles
        and all(one in f"{name} {model.get('title') or ''} {model.get('headline') or ''}".lower() for one in needles)
    ]
    pages += [
        Row({"kind": "move", "name": Cell(fmt.line(job.name, 80), href=address("/run", job=job.name)), "text": ""})
        for job in places.jobs()
        if needles and all(one in job.name.lower() for one in needles)
    ]
    sections = (
        Section("runs", "Runs", tables=(table("", RUN_COLUMNS, map(run_row, runs[:TOP]), look="loose"),)),
        Section("pages", "Moves and saved pages", tables=(table("", _COLUMNS[:2], pages[:TOP], look="loose"),)),
        Section("servers", "On servers", tables=(table("", _COLUMNS, rows, look="loose"),)),
    )
    found = len(runs) + len(rows) + len(pages)
    headline = f"{counted(found, 'result') or 'Nothing'} for {fmt.line(words, 80)}" if words else "Search"
    head = Head("Search", "Search", name="search", headline=headline, section="Search")
    return View(Page(head, tuple(one for one in sections if one.tables[0].rows)), trail=(HOME,))


def _row(server: Server, found: Found) -> Row:
    name = str(found["name"])
    places = {
        "statement": server_address("/statement", server, id=name),
        "table": server_address("/server", server, by="statement", where=f"table={name}"),
        "index": server_address("/server", server, by="index"),
    }
    place = places.get(str(found["kind"]))
    cells = {
        "kind": found["kind"],
        "name": Cell(fmt.line(name, 80), href=place or ""),
        "text": fmt.text(found["text"])[:300],
        "server": Cell(server_name(server), href=server_address("/server", server)),
    }
    return Row(cells)
