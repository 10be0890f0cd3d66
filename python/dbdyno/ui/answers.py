"""Conversion of a view to an answer: HTML, its data as CSV, JSON or Arrow, or its picture as SVG or PNG."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import replace
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from dbdyno.base.errors import Error
from dbdyno.base.json_types import JsonObject
from dbdyno.page import Finding, Head, Page, Section
from dbdyno.ui import drawing, rendering
from dbdyno.ui.preparer import NotReadyError
from dbdyno.ui.routes import live
from dbdyno.ui.view import View, shell_words
from dbdyno.ui.zones import COOKIE, draw_in_zone, zone_of

DATA = ("csv", "json", "arrow")
PICTURES = ("svg", "png")
MEDIA = {
    "csv": "text/csv; charset=utf-8",
    "json": "application/json",
    "arrow": "application/vnd.apache.arrow.stream",
    "svg": "image/svg+xml",
    "png": "image/png",
}
PRIVATE = {"cache-control": "no-store"}
PICTURE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
"""Content security policy for a picture that is opened by itself: it runs no script and loads nothing."""


def endpoint_of(route: Callable[[Request], View]) -> Callable[[Request], Response]:
    """Return the endpoint of a route: its view in the requested form, or a page about an `Error`."""

    def endpoint(request: Request) -> Response:
        request.state.seen = live.digest(live.state(request.app.state.places))
        with draw_in_zone(zone_of(request)):
            try:
                return respond(request, route(request))
            except NotReadyError as error:
                return respond(request, _waiting_page(error))
            except Error as error:
                return _problem_answer(request, error)

    return endpoint


def _problem_answer(request: Request, error: Error) -> Response:
    """Return the page about an error, or only its content if a script requests part of a page."""
    view = _problem(error)
    if not request.query_params.get("part"):
        return _html(request, view, status=404)
    return Response(
        rendering.render_part(replace(view, bare=True), zone_of(request)),
        status_code=404,
        headers=PRIVATE,
        media_type="text/html",
    )


def respond(request: Request, view: View) -> Response:
    """Return a view in the form named in the address.

    Raises:
        Error: The view has no such form.
    """
    form = request.query_params.get("format", "")
    if request.query_params.get("part"):
        return Response(rendering.render_part(view, zone_of(request)), headers=PRIVATE, media_type="text/html")
    if not form:
        return _html(request, view)
    headers = {**PRIVATE, "content-disposition": f"attachment; filename=dbdyno.{form}"}
    if form in PICTURES:
        headers["content-security-policy"] = PICTURE_POLICY
    if form in DATA or form in PICTURES:
        return Response(encode_view(view, form), headers=headers, media_type=MEDIA[form])
    raise Error(f"{form!r:.20} is not a format of a page", next_step=f"use one of {', '.join((*DATA, *PICTURES))}")


def _html(request: Request, view: View, status: int = 200) -> Response:
    kept = [(name, value) for name, value in request.query_params.multi_items() if name not in ("format", "part")]
    wanted = (*DATA, *PICTURES)
    if status == 200 and not view.command:
        view = replace(view, command=_command(request, kept))
    forms = {form: f"{request.url.path}?{urlencode([*kept, ('format', form)])}" for form in wanted}
    given = rendering.Frame(
        query=request.query_params.get("q", ""),
        forms=forms,
        path=request.url.path,
        zone=request.cookies.get(COOKIE, ""),
        has_sql=request.app.state.sql,
        shown_in=zone_of(request),
        seen=request.state.seen,
    )
    return Response(rendering.render(view, given), status_code=status, headers=PRIVATE, media_type="text/html")


def _command(request: Request, query: list[tuple[str, str]]) -> str:
    """Return the command that prints a page for which there is no other command."""
    places = request.app.state.places
    address = request.url.path + (f"?{urlencode(query)}" if query else "")
    return shell_words("dbdyno", "ui", "--runs", places.runs_folder, "--store", places.store_folder, "--page", address)


def encode_view(view: View, form: str) -> bytes:
    """Return a view's data or picture in a given form."""
    if form == "json" and view.model is not None:
        return (json.dumps(view.model, indent=1, ensure_ascii=False, default=str) + "\n").encode()
    if form in PICTURES:
        drawn = view.picture or (view.model if _has_figures(view.page) else None)
        return drawing.encode_figure(drawn, form) if drawn is not None else drawing.encoded_page(view.page, form)
    return encoded_rows(_rows(view), form)


def encoded_rows(rows: list[JsonObject], form: str) -> bytes:
    """Return rows as CSV, JSON or Arrow, as the commands write them."""
    from dbdyno.report import tabular

    if form == "arrow":
        stream = io.BytesIO()
        tabular.write_arrow(rows, stream)
        return stream.getvalue()
    return (tabular.csv_text(rows) if form == "csv" else tabular.json_text(rows)).encode()


def _rows(view: View) -> list[JsonObject]:
    if view.rows is not None:
        return list(view.rows())
    from dbdyno.report.flat import rows

    return rows(view.page)


def _has_figures(page: Page) -> bool:
    return any(section.figures for section in page.sections)


def _waiting_page(error: NotReadyError) -> View:
    """Return the page to show until the sums of an interval are computed; the interval's page then replaces it."""
    said = (f"{error.message}; {error.next_step}.", "dbdyno keeps each sum, so you wait only once.")
    headline = "dbdyno is summing up this interval"
    head = Head("Being prepared", "", name="waiting", headline=headline, section="Wait")
    section = Section("waiting", "Progress", notes=said)
    return View(Page(head, (section,)), trail=(("Home", "/"),), follows="sums")


def _problem(error: Error) -> View:
    """Return the page about an error: what, where, and the next step."""
    where = (f"at {error.where}",) if error.where else ()
    finding = Finding(error.message, "bad", evidence=where, next=error.next_step or "")
    head = Head("Not shown", "", name="problem", headline="This could not be shown", section="Problem")
    return View(Page(head, (Section("error", "What happened", findings=(finding,)),)), trail=(("Home", "/"),))
