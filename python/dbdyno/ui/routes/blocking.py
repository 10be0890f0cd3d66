"""Who blocked whom over time: blocked sessions as a chart, and the blocking trees of the selected interval."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request

from dbdyno.page import Head, Page
from dbdyno.pages.snapshot import section as section_of
from dbdyno.snapshot.reading.interval import Interval
from dbdyno.snapshot.sessions.blocking import section
from dbdyno.ui.routes.common import HOME, parameter, server_address, server_name, server_of
from dbdyno.ui.routes.server import chart_data, sessions_of
from dbdyno.ui.stretch import stretch_of
from dbdyno.ui.timeline import Timeline, timeline
from dbdyno.ui.view import View, shell_words

TOP = 10
LOCKS = (("class", "lock"),)


def view(request: Request) -> View:
    """Return the blocking trees of the interval in the address, below a chart of the surrounding window."""
    server = server_of(request)
    snapshots = server.snapshots()
    window = stretch_of(snapshots, parameter(request, "window") or parameter(request, "stretch"))
    chosen = bool(parameter(request, "window") and parameter(request, "stretch"))
    stretch = stretch_of(snapshots, parameter(request, "stretch")) if chosen else window
    server.prepare(stretch.chain)
    with Interval(server.store, *stretch.ends) as interval:
        part = section(interval, TOP)
    head = Head("Blocking", server_name(server), name="blocking", headline=_headline(part), section="Blocking")
    drawn = chart_data(sessions_of(server, window, "statement", LOCKS))
    named = {"store": server.name, "target": server.target}
    return View(
        Page(head, (section_of(dict(part)),)),
        model={"schema": 1, "kind": "snapshot", "page": "sessions", "sections": [part]},
        picture={"schema": 1, "kind": "snapshot", **drawn} if drawn else None,
        command=shell_words("dbdyno", "snap", "sessions", *stretch.numbers, "--store", server.store.folder),
        trail=(HOME, (server_name(server), server_address("/server", server, stretch=stretch.text))),
        widget="blocking.html",
        extra={"timeline": timeline(Timeline(server, window, stretch if chosen else None, drawn), named, "/blocking")},
    )


def _headline(part: Mapping[str, Any]) -> str:
    """Return a headline with the main root blocker, or that nobody was blocked."""
    rows = part["tables"][0]["rows"] if part["tables"] else []
    if not rows:
        return "No session was seen waiting for another"
    from dbdyno.pages import format as fmt

    first = rows[0]
    who = fmt.line(first.get("application") or first.get("user") or "a session", 40)
    state = fmt.line(first.get("state") or "active", 40)
    return f"{who} ({state}) made other sessions wait {fmt.span(first['blocked'] / 1e9)} in total"
