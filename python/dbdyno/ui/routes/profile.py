"""The profile of an imported or recorded trace, grouped by any expression and restricted by a condition."""

from __future__ import annotations

from starlette.requests import Request as Asked

from dbdyno.base.errors import TraceError
from dbdyno.base.json_types import JsonObject
from dbdyno.evidence.query import is_trace
from dbdyno.pages import format as fmt
from dbdyno.pages import page_of
from dbdyno.trace.expression import split
from dbdyno.trace.profile import DIMENSIONS, Request, profile_page
from dbdyno.ui.kept import Kept
from dbdyno.ui.routes.common import HOME, asked, places_of
from dbdyno.ui.view import View, address, shell_words

TOP = 40
LONGEST = 500
FIRST = ("event", "class", "statement", "module", "client", "session", "object", "minute")
"""Dimensions offered as links; users can type any other one, and expressions."""
_MODELS: Kept[JsonObject] = Kept(16)


def view(request: Asked) -> View:
    """Return the profile of the run in the address, grouped by the expressions `by` and filtered by `where`.

    Raises:
        TraceError: The run is no trace, or an expression is not valid.
    """
    run = places_of(request).run(asked(request, "id"))
    if not is_trace(run):
        raise TraceError("is not a trace", where=run.id, next_step="dbdyno trace import, or dbdyno trace record")
    by, where = (asked(request, name)[:LONGEST].strip() for name in ("by", "where"))
    expressions = tuple(split(by)) if by else ("event",)
    wanted = Request(expressions, where or None, top=TOP)
    state = (run.path / "manifest.json").stat().st_mtime_ns
    model = _MODELS.get(f"{run.path} {expressions} {where}", state, lambda: profile_page([str(run.path)], wanted))
    command = ["dbdyno", "trace", "profile", run.path, "--by", by or "event", "--top", TOP]
    return View(
        page_of(model),
        model=model,
        command=shell_words(*command, *(("--where", where) if where else ())),
        trail=(HOME, ("Runs", "/runs"), (fmt.line(run.manifest.title or run.id, 60), address("/run", id=run.id))),
        links=tuple((f"By {one}", address("/profile", id=run.id, by=one, where=where)) for one in FIRST),
        widget="profile.html",
        extra={"id": run.id, "by": fmt.text(by), "where": fmt.text(where), "dimensions": DIMENSIONS},
    )
