"""A server: its active sessions over time, and the load in an interval broken down by a dimension.

The address contains the window that the chart shows, the interval (`stretch`) that the tables are about, the dimension
and the filters, so that a link shows the same page to everybody.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request

from dbdyno.base.json_types import JsonObject
from dbdyno.page import Cell, Page, Row, Section, Table
from dbdyno.pages import format as fmt
from dbdyno.pages import page_of
from dbdyno.snapshot.sessions.history import DIMENSIONS, TABLE
from dbdyno.snapshot.sessions.objects import INDEX
from dbdyno.snapshot.sessions.report import HEADINGS, sessions
from dbdyno.ui.places import Server
from dbdyno.ui.result_cache import ResultCache
from dbdyno.ui.routes.common import HOME, parameter, places_of, server_address, server_name, server_of, target_of
from dbdyno.ui.stretch import COMPARISON_DISTANCES, CURRENT_INTERVALS, Stretch, moment_us, stretch_of
from dbdyno.ui.timeline import Timeline, timeline
from dbdyno.ui.view import Link, View, address, shell_words, without_figures

TOP = 25
TABS = {
    "statement": "Statements",
    "event": "Waits",
    "class": "Wait classes",
    "session": "Sessions",
    "user": "Users",
    "database": "Databases",
    "application": "Applications",
    "client": "Clients",
    "table": "Tables",
    "index": "Indexes",
}
"""The tabs below an interval, by dimension."""
Filters = tuple[tuple[str, str], ...]
_MODELS: ResultCache[JsonObject] = ResultCache(32)


def view(request: Request) -> View:
    """Return the history of the server in the address."""
    server = server_of(request)
    snapshots = server.snapshots()
    window = stretch_of(snapshots, parameter(request, "window"))
    stretch = stretch_of(snapshots, parameter(request, "stretch")) if parameter(request, "stretch") else window
    by = parameter(request, "by") if parameter(request, "by") in HEADINGS else "statement"
    where = filters_of(request)
    model = sessions_of(server, stretch, by, where)
    place = Place(
        server, window, stretch if parameter(request, "stretch") else None, by, where, parameter(request, "window")
    )
    page = _with_links(without_figures(page_of(model)), place)
    drawn = chart_data(model) if stretch is window else chart_data(sessions_of(server, window, by, where))
    drawn = _with_runs(drawn, request, server, window)
    extra = {
        "timeline": timeline(Timeline(server, window, place.stretch, drawn), _parameters(request)),
        "tabs": [(words, place.address(by=one), one == by) for one, words in TABS.items()],
        "kept": [(f"{name}: {fmt.line(value, 60)}", place.address(without=name)) for name, value in where],
    }
    return View(
        replace(page, head=replace(page.head, kind="Server", title=server_name(server))),
        model=model,
        picture={"schema": 1, "kind": "snapshot", **drawn} if drawn else None,
        command=_command(place, stretch),
        trail=(HOME,),
        widget="server.html",
        bare=True,
        extra=extra,
        follows="stores" if parameter(request, "window") in ("", *CURRENT_INTERVALS) else "",
        links=_links(server, stretch),
        later=server_address("/report", server, stretch=stretch.text, brief="1", part="1"),
    )


class Place:
    """The selection in a server page's address, and addresses that differ from it in one parameter."""

    def __init__(
        self, server: Server, window: Stretch, stretch: Stretch | None, by: str, filters: Filters, named: str
    ) -> None:
        self.server = server
        self.window = window
        self.stretch = stretch
        self.by = by
        self.where = filters
        self.named = named

    def address(self, *, by: str = "", more: tuple[str, str] | None = None, without: str = "") -> str:
        """Return the address with another dimension, with an additional filter, or without a filter."""
        kept = [one for one in self.where if one[0] not in (without, more[0] if more else "")]
        kept += [more] if more else []
        chosen = {"window": self.named, "stretch": self.stretch.text if self.stretch else None, "by": by or self.by}
        found = server_address("/server", self.server, **chosen)
        return found + "".join("&" + urlencode({"where": f"{name}={value}"}) for name, value in kept)


def filters_of(request: Request) -> Filters:
    """Return the filters in the address, such as `where=class=lock`; unknown dimensions are ignored."""
    pairs = (one.partition("=") for one in request.query_params.getlist("where"))
    return tuple({name: value for name, _, value in pairs if name in (*DIMENSIONS, TABLE)}.items())


def sessions_of(server: Server, stretch: Stretch, by: str, filters: Filters) -> JsonObject:
    """Return the model of `snap sessions` for an interval."""
    asked = f" {by} {filters}"
    return server.model(_MODELS, stretch, lambda interval: sessions(interval, by, dict(filters), TOP), asked)


def chart_data(model: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the data for the chart of active sessions, or None if there are too few samples."""
    return next((one["drawn"] for one in model["sections"] if "drawn" in one), None)


def _with_runs(
    drawn: Mapping[str, Any] | None, request: Request, server: Server, window: Stretch
) -> Mapping[str, Any] | None:
    """Return the chart with the runs on this server as events, found by the target's name in their plan."""
    if drawn is None:
        return None
    found = []
    for run in places_of(request).runs():
        ends = [moment_us(str(one)) for one in (run.manifest.started_at, run.manifest.ended or run.manifest.started_at)]
        if server.target not in target_of(run) or None in ends:
            continue
        began, ended = (one or 0 for one in ends)
        if began < window.high_us and ended > window.low_us:
            title = fmt.line(run.manifest.title or run.id, 60)
            found.append({"kind": "run", "what": f"run {title}", "at_us": ended, "after_us": began})
    return {**drawn, "events": [*drawn["events"], *found]} if found else drawn


def _parameters(request: Request) -> dict[str, str]:
    return {name: value for name, value in request.query_params.items() if name in ("store", "target", "by", "where")}


def _with_links(page: Page, place: Place) -> Page:
    """Return the page with a link on each value: a value adds a filter, and a statement's text leads to its page."""
    title = HEADINGS[place.by][0]

    def linked(section: Section) -> Section:
        tables = tuple(_linked_table(one, place) if one.title == title else one for one in section.tables)
        return replace(section, tables=tables)

    return replace(page, sections=tuple(map(linked, page.sections)))


def _linked_table(table: Table, place: Place) -> Table:
    return replace(table, rows=tuple(replace(row, cells=_linked_cells(row, place)) for row in table.rows))


def _linked_cells(row: Row, place: Place) -> JsonObject:
    cells = dict(row.cells)
    name = str(cells.get("name") or "")
    given = "none" if name == "(none)" else name
    filter_by = (TABLE, str(cells.get("table"))) if place.by == INDEX else (place.by, given)
    cells["name"] = Cell(name, href=place.address(more=filter_by))
    if place.by == "statement" and given != "none":
        stretch = (place.stretch or place.window).text
        to = server_address("/statement", place.server, id=name, stretch=stretch)
        cells["text"] = Cell(cells.get("text"), href=to)
    return cells


def _command(place: Place, stretch: Stretch) -> str:
    words: list[object] = ["dbdyno", "snap", "sessions", *stretch.numbers, "--by", place.by]
    for name, value in place.where:
        words += ["--where", f"{name}={value}"]
    return shell_words(*words, "--top", TOP, "--store", place.server.store.folder)


def _links(server: Server, stretch: Stretch) -> tuple[Link, ...]:
    """Return the links to other views of the same interval."""
    found = [("Whole report", server_address("/report", server, stretch=stretch.text))]
    found += [("Blocking", server_address("/blocking", server, stretch=stretch.text))]
    found += [("Advice", server_address("/advice", server, stretch=stretch.text))]
    found += [("SQL", address("/sql", on=f"snap:{server.name}/{server.target}", stretch=stretch.text))]
    found += [("Plans", server_address("/plans", server, stretch=stretch.text))]
    found += [
        (f"Compare with {name}", server_address("/periods", server, stretch=stretch.text, against=name))
        for name in COMPARISON_DISTANCES
    ]
    return tuple(found)
