"""HTML of a view: a frame with navigation around the page, whose content uses the macros of reports."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import tzinfo
from importlib import resources
from typing import Any

from dbdyno.pages import format as fmt
from dbdyno.report import html
from dbdyno.report.typography import add_no_break_spaces
from dbdyno.ui.view import View
from dbdyno.ui.zones import convert_times

KINDS = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8"}


@dataclass(frozen=True)
class Frame:
    """What the frame of a page shows in addition to the view.

    Attributes:
        query: Text in the search field.
        forms: The addresses of the view's data, by the form's name.
        path: The path of the view, by which the navigation marks it.
        zone: The time zone that the reader has chosen, as written in the cookie; "" for UTC.
        has_sql: True if there is an SQL console.
        shown_in: The same time zone as an object.
        seen: The state of the folders from which the page was made, for the stream of changes.
    """

    query: str
    forms: Mapping[str, str]
    path: str
    zone: str
    has_sql: bool
    shown_in: tzinfo
    seen: str = ""


def render(view: View, frame: Frame) -> str:
    """Return a view as HTML text."""
    template = environment().get_template("shell.html")
    places = [("Home", "/"), ("Runs", "/runs"), ("Latest", "/latest"), *([("SQL", "/sql")] if frame.has_sql else [])]
    given = {
        "view": view,
        "query": fmt.text(frame.query),
        "forms": frame.forms,
        "path": frame.path,
        "zone": fmt.line(frame.zone, 60),
        "places": places,
        "seen": frame.seen,
        "version": version(),
    }
    return add_no_break_spaces(convert_times(template.render(**html.view_of(view.page), **given), frame.shown_in))


def render_part(view: View, zone: tzinfo) -> str:
    """Return only the content of a view, which a script inserts into an open page."""
    template = environment().get_template("part.html")
    return add_no_break_spaces(convert_times(template.render(**html.view_of(view.page), view=view), zone))


@functools.cache
def environment() -> Any:
    """Return the template environment of the web pages, which includes the templates of reports."""
    return html.template_environment(_template)


@functools.cache
def assets() -> dict[str, str]:
    """Return the texts of style sheets and scripts by name."""
    own = resources.files("dbdyno.ui").joinpath("static")
    found = {one.name: one.read_text(encoding="utf-8") for one in own.iterdir() if one.name.rpartition(".")[2] in KINDS}
    return {"report.css": html.style_sheet(), "report.js": html.template_text("report.js"), **found}


@functools.cache
def version() -> str:
    """Return a digest of all style sheets and scripts, which lets browsers cache them until they change."""
    return hashlib.sha256("".join(sorted(assets().values())).encode()).hexdigest()[:12]


def _template(name: str) -> str:
    own = resources.files("dbdyno.ui").joinpath("templates", name)
    return own.read_text(encoding="utf-8") if own.is_file() else html.template_text(name)
