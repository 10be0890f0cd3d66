"""The web application: one address per view, answered by a file in `routes`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dbdyno.ui import rendering
from dbdyno.ui.answers import endpoint_of
from dbdyno.ui.guard import Access, App, Guard
from dbdyno.ui.places import Places
from dbdyno.ui.routes import VIEWS, live
from dbdyno.ui.view import View

THREADS = 2
"""Maximum number of views rendered at the same time: each may hold a day of samples in memory."""
IMMUTABLE = {"cache-control": "private, max-age=31536000, immutable"}


def application(places: Places, access: Access, *, sql: bool = True) -> App:
    """Return the ASGI application for these folders; `sql=False` leaves out the SQL console."""
    routes = [Route(path, endpoint_of(view), methods=["GET"]) for path, view in VIEWS.items() if sql or path != "/sql"]
    fixed = [
        Route("/static/{name}", _asset, methods=["GET"]),
        Route("/events", live.events, methods=["GET"]),
    ]
    app = Starlette(routes=[*routes, *fixed], lifespan=_lifespan, exception_handlers=_handlers())
    app.state.places = places
    app.state.sql = sql
    return Guard(app, access)


@asynccontextmanager
async def _lifespan(app: Starlette) -> AsyncIterator[None]:
    import anyio.to_thread

    anyio.to_thread.current_default_thread_limiter().total_tokens = THREADS
    yield


def _handlers() -> dict[Any, Callable[[Request, Exception], Any]]:
    from dbdyno.base.errors import Error

    def absent(request: Request) -> View:
        raise Error(
            f"there is no page {request.url.path!r:.80}", next_step="open the home page, which links to all others"
        )

    def broken(request: Request) -> View:
        raise Error(
            "internal error; please report it",
            where=request.url.path[:80],
            next_step="report the traceback, which is in the terminal in which `dbdyno ui` runs",
        )

    return {404: lambda request, _: endpoint_of(absent)(request), 500: lambda request, _: endpoint_of(broken)(request)}


def _asset(request: Request) -> Response:
    name = request.path_params["name"]
    text = rendering.assets().get(name)
    if text is None:
        return Response("no such file\n", status_code=404, media_type="text/plain")
    named = request.query_params.get("v") == rendering.version()
    headers = IMMUTABLE if named else {"cache-control": "no-cache"}
    return Response(text, headers=headers, media_type=rendering.KINDS[name.rpartition(".")[2]])
