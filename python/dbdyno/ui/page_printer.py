"""One page on a terminal or in a file, without a server: the output of `dbdyno ui --page ADDRESS`."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from urllib.parse import unquote, urlsplit

from starlette.requests import Request

from dbdyno.base.errors import Error
from dbdyno.ui.answers import encode_view
from dbdyno.ui.places import Places
from dbdyno.ui.routes import VIEWS
from dbdyno.ui.view import View


def print_page(places: Places, address: str, form: str, width: int, color: bool, *, sql: bool = True) -> bytes:
    """Return the page at an address in a given form; addresses copied from a browser are accepted.

    Args:
        places: The folders.
        address: The path and query of the page, such as `/search?q=orders`.
        form: `text`, or a form that the page in a browser offers.
        width: Width of the text in columns.
        color: True if the text may have colours.
        sql: False leaves out the SQL console.

    Raises:
        Error: There is no such page, or it cannot be shown.
    """
    if form != "text":
        return encode_view(_view(places, address, sql), form)
    from dbdyno.report.terminal import render_text

    texts = (render_text(view.page, width=width, color=color) for view in _with_rest(places, address, sql))
    return "\n".join(texts).encode()


def _with_rest(places: Places, address: str, sql: bool) -> Iterator[View]:
    """Yield the view, then the second view that a browser loads after it, if there is one."""
    view = _view(places, address, sql)
    yield view
    if view.later:
        yield _view(places, view.later, sql)


def _view(places: Places, address: str, sql: bool) -> View:
    parts = urlsplit(address)
    path = unquote(parts.path) or "/"
    if path not in VIEWS or (path == "/sql" and not sql):
        raise Error(
            f"there is no page {path!r:.80}",
            where="--page",
            next_step=f"use one of {', '.join(sorted(VIEWS))}, with ?NAME=VALUE",
        )
    state = SimpleNamespace(places=places, sql=sql)
    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "query_string": parts.query.encode(),
        "headers": [],
        "app": SimpleNamespace(state=state),
    }
    return VIEWS[path](Request(scope))
