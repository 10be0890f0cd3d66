"""Search over runs and their contents, moves, saved pages, and the statements, tables and settings of servers."""

from __future__ import annotations

from collections.abc import Iterator

from starlette.requests import Request

from dbdyno.base.sections import Row as Found
from dbdyno.evidence.query import is_trace
from dbdyno.evidence.run import Run
from dbdyno.evidence.run_search import search_run
from dbdyno.page import Cell, Head, Page, Row, Section
from dbdyno.pages import format as fmt
from dbdyno.pages.common import columns, table, with_noun
from dbdyno.snapshot.reading.search import search
from dbdyno.ui.places import Places, Server
from dbdyno.ui.routes.common import HOME, RUN_COLUMNS, parameter, places_of, run_row, server_address, server_name
from dbdyno.ui.view import View, address

TOP = 20
"""Maximum number of matches of each kind per run and per server."""
MOST = 100
"""Maximum number of rows in a section."""
_INSIDE = columns("kind:text name:text text:code:what run:text")
_COLUMNS = columns("kind:text name:text text:code:what server:text")


def view(request: Request) -> View:
    """Return everything that contains the words in the address."""
    places, words = places_of(request), parameter(request, "q").strip()[:200]
    needles = words.lower().split()
    found = {
        "runs": [run_row(run) for run in _runs(places, needles)],
        "inside": list(_inside(places, needles)),
        "pages": list(_pages(places, needles)),
        "servers": list(_on_servers(places, words)) if needles else [],
    }
    titles = {"runs": "Runs", "inside": "Inside runs", "pages": "Moves and saved pages", "servers": "On servers"}
    shown = {"runs": RUN_COLUMNS, "inside": _INSIDE, "pages": _COLUMNS[:2], "servers": _COLUMNS}
    sections = tuple(
        Section(
            name, titles[name], tables=(table("", shown[name], rows[:MOST], look="loose", left_out=len(rows[MOST:])),)
        )
        for name, rows in found.items()
        if rows
    )
    count = sum(map(len, found.values()))
    headline = f"{with_noun(count, 'result') or 'Nothing'} for {fmt.line(words, 80)}" if words else "Search"
    return View(
        Page(Head("Search", "", name="search", headline=headline, section="Search"), sections),
        trail=(HOME,),
    )


def _runs(places: Places, needles: list[str]) -> Iterator[Run]:
    """Yield the runs whose name, title or verdict contains the words, newest first."""
    for run in places.runs()[::-1]:
        whole = f"{run.id} {run.manifest.title} {run.manifest.verdict or ''}".lower()
        if needles and all(one in whole for one in needles):
            yield run


def _inside(places: Places, needles: list[str]) -> Iterator[Row]:
    """Yield matches inside runs, traces and rehearsals: statements and values of plans."""
    for run in places.runs()[::-1]:
        for one in search_run(run, needles, TOP):
            if one.kind == "statement" and is_trace(run):
                name = one.name.replace("'", "''")
                place = address("/profile", id=run.id, by="event", where=f"statement = '{name}'")
            else:
                place = address("/run", id=run.id)
            cells = {
                "kind": one.kind,
                "name": Cell(fmt.line(one.name, 80), href=place),
                "text": fmt.text(one.text)[:300],
            }
            yield Row(
                {**cells, "run": Cell(fmt.line(run.manifest.title or run.id, 80), href=address("/run", id=run.id))}
            )


def _pages(places: Places, needles: list[str]) -> Iterator[Row]:
    """Yield saved pages and moves whose name or title contains the words."""
    for name, model in places.saved_pages().items():
        whole = f"{name} {model.get('title') or ''} {model.get('headline') or ''}".lower()
        if needles and all(one in whole for one in needles):
            yield Row({"kind": str(model["kind"]), "name": Cell(fmt.line(name, 80), href=address("/saved", name=name))})
    for job in places.jobs():
        if needles and all(one in job.name.lower() for one in needles):
            yield Row({"kind": "move", "name": Cell(fmt.line(job.name, 80), href=address("/run", job=job.name))})


def _on_servers(places: Places, words: str) -> Iterator[Row]:
    """Yield matches in the last snapshot of each server."""
    for server in places.servers():
        last = server.store.last(server.target)
        for one in search(last, words, TOP) if last is not None else ():
            yield _row(server, one)


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
