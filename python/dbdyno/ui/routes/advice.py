"""Advice on an interval of a server, as from `dbdyno advise`: all findings, or only those about one statement.

The page only shows text: fixes are never run. A finding that can be tested by varying a setting links to the plan that
would test it.
"""

from __future__ import annotations

from dataclasses import replace

from starlette.requests import Request

from dbdyno.advise.experiments import untestable
from dbdyno.advise.snapshot_advice import about_statement, advice_on
from dbdyno.base.json_types import JsonObject
from dbdyno.page import Page, Section
from dbdyno.pages import page_of
from dbdyno.ui.places import Server
from dbdyno.ui.result_cache import ResultCache
from dbdyno.ui.routes.common import HOME, parameter, server_address, server_name, server_of
from dbdyno.ui.stretch import Stretch, stretch_of
from dbdyno.ui.view import Link, View, shell_words

_MODELS: ResultCache[JsonObject] = ResultCache(32)


def view(request: Request) -> View:
    """Return the advice on the interval in the address, or only its findings about one statement."""
    server = server_of(request)
    stretch = stretch_of(server.snapshots(), parameter(request, "stretch"))
    model, name = advice_of(server, stretch), parameter(request, "statement")
    model = about_statement(model, name) if name else model
    page = page_of(model)
    if name and parameter(request, "part"):
        page = replace(page, sections=tuple(one for one in page.sections if one.name == "advice_each"))
        page = _or_none(page)
    return View(
        page,
        model=model,
        command=_command(server, stretch),
        trail=(HOME, (server_name(server), server_address("/server", server, stretch=stretch.text))),
        links=tuple(_experiments(server, stretch, model)),
        bare=bool(name and parameter(request, "part")),
    )


def advice_of(server: Server, stretch: Stretch) -> JsonObject:
    """Return the model of the advice on an interval."""
    server.prepare(stretch.chain)
    first, last = stretch.numbers
    name = f"{server.store.folder} {server.target} {stretch.numbers}"
    return _MODELS.get(name, len(stretch.chain), lambda: advice_on(server.store, f"{first}..{last}", server.target))


def _or_none(page: Page) -> Page:
    """Return the page about one statement, or a page that says there is no finding about it."""
    none = Section("advice_each", "Advice", notes=("No rule has found anything about this statement.",))
    kept = tuple(replace(one, title="Advice") for one in page.sections if one.parts)
    return replace(page, sections=kept or (none,))


def _experiments(server: Server, stretch: Stretch, model: JsonObject) -> list[Link]:
    """Return, for each finding that a setting can test, a link to its plan."""
    return [
        (
            f"Plan for {one['number']}. {one['test']['setting']}",
            server_address("/experiment", server, stretch=stretch.text, finding=one["number"]),
        )
        for one in model["findings"]
        if not untestable(one, None)
    ]


def _command(server: Server, stretch: Stretch) -> str:
    first, last = stretch.numbers
    return shell_words(
        "dbdyno", "advise", f"snap:{first}..{last}", "--store", server.store.folder, "--target", server.target
    )
