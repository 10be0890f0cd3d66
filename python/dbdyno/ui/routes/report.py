"""What happened in an interval: the report of `snap report`, or only its main finding and time budget."""

from __future__ import annotations

from dataclasses import replace

from starlette.requests import Request

from dbdyno.base.json_types import JsonObject
from dbdyno.judge.interval_report import judged_report
from dbdyno.pages import page_of
from dbdyno.ui.places import Server
from dbdyno.ui.result_cache import ResultCache
from dbdyno.ui.routes.common import HOME, parameter, server_address, server_name, server_of
from dbdyno.ui.stretch import Stretch, stretch_of
from dbdyno.ui.view import View, shell_words

TOP = 10
BRIEF = ("s-happened", "s-profile", "s-waits")
"""Sections shown beside the chart: what happened, the load profile, and where the time went."""
_MODELS: ResultCache[JsonObject] = ResultCache(16)


def view(request: Request) -> View:
    """Return the report of the interval in the address; with `brief`, only the sections shown beside the chart."""
    server = server_of(request)
    stretch = stretch_of(server.snapshots(), parameter(request, "stretch"))
    model = report_of(server, stretch)
    page = page_of(model)
    if parameter(request, "brief"):
        page = replace(page, sections=tuple(one for one in page.sections if one.name in BRIEF))
    return View(
        page,
        model=model,
        command=shell_words("dbdyno", "snap", "report", *stretch.numbers, "--store", server.store.folder),
        trail=(HOME, (server_name(server), server_address("/server", server, stretch=stretch.text))),
    )


def report_of(server: Server, stretch: Stretch) -> JsonObject:
    """Return the model of `snap report` for an interval."""
    return server.model(_MODELS, stretch, lambda interval: judged_report(interval, TOP))
