"""Two intervals of one server compared: the page of `dbdyno compare`."""

from __future__ import annotations

from starlette.requests import Request

from dbdyno.base.json_types import JsonObject
from dbdyno.judge.snapshots import compare
from dbdyno.pages import page_of
from dbdyno.snapshot.reading.periods import Period
from dbdyno.ui.result_cache import ResultCache
from dbdyno.ui.routes.common import HOME, parameter, server_address, server_name, server_of
from dbdyno.ui.stretch import COMPARISON_DISTANCES, comparison_stretch, stretch_of
from dbdyno.ui.view import View, shell_words

_MODELS: ResultCache[JsonObject] = ResultCache(16)


def view(request: Request) -> View:
    """Return the comparison of an interval with the same hours `yesterday` or `last week`, or with another interval."""
    server = server_of(request)
    snapshots = server.snapshots()
    stretch = stretch_of(snapshots, parameter(request, "stretch"))
    against = parameter(request, "against") or next(iter(COMPARISON_DISTANCES))
    other = comparison_stretch(snapshots, stretch, against)
    for one in (other, stretch):
        server.prepare(one.chain)
    names = tuple(f"{first}..{last}" for first, last in (other.numbers, stretch.numbers))
    model = _MODELS.get(
        f"{server.store.folder} {server.target} {names}",
        (len(other.chain), len(stretch.chain)),
        lambda: compare(server.store, Period(names[0], other.chain), Period(names[1], stretch.chain)),
    )
    links = [(f"Compare with {name}", name) for name in COMPARISON_DISTANCES]
    return View(
        page_of(model),
        model=model,
        command=shell_words("dbdyno", "compare", *(f"snap:{one}" for one in names), "--store", server.store.folder),
        trail=(HOME, (server_name(server), server_address("/server", server, stretch=stretch.text))),
        links=tuple(
            (words, server_address("/periods", server, stretch=stretch.text, against=name)) for words, name in links
        ),
    )
