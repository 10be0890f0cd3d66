"""Plans of a server's statements, from the logs kept beside its snapshots."""

from __future__ import annotations

from starlette.requests import Request

from dbdyno.pages import page_of
from dbdyno.snapshot.plans.command import PlanOptions, page_of_stored_plans
from dbdyno.ui.routes.common import HOME, parameter, server_address, server_name, server_of
from dbdyno.ui.stretch import iso, stretch_of
from dbdyno.ui.view import View, shell_words

TOP = 20


def view(request: Request) -> View:
    """Return the page of `snap plans` for the interval in the address."""
    server = server_of(request)
    stretch = stretch_of(server.snapshots(), parameter(request, "stretch"))
    model = page_of_stored_plans(
        server.store, PlanOptions(stretch.low_us, stretch.high_us, server.target, False, False, TOP)
    )
    times = ("--from", iso(stretch.low_us), "--to", iso(stretch.high_us))
    return View(
        page_of(model),
        model=model,
        command=shell_words("dbdyno", "snap", "plans", *times, "--store", server.store.folder),
        trail=(HOME, (server_name(server), server_address("/server", server, stretch=stretch.text))),
    )
