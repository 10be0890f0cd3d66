"""Pages that commands saved as JSON in the folder of runs: power cuts, advice, flows, cells and others."""

from __future__ import annotations

from starlette.requests import Request

from dbdyno.pages import page_of
from dbdyno.ui.routes.common import HOME, parameter, places_of
from dbdyno.ui.view import View


def view(request: Request) -> View:
    """Return the saved page named in the address."""
    model = places_of(request).saved_page(parameter(request, "name"))
    return View(page_of(model), model=model, trail=(HOME,), follows="runs")
