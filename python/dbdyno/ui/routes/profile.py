"""The profile of an imported or recorded trace, grouped by any expression and restricted by a condition."""

from __future__ import annotations

from starlette.requests import Request as Asked

from dbdyno.pages import format as fmt
from dbdyno.pages import page_of
from dbdyno.trace.expression import split_expressions
from dbdyno.trace.profile import DIMENSIONS, Request, profile_page
from dbdyno.ui.routes.traces import cached_model, limited_parameter, links_of, trace_of, trail_of
from dbdyno.ui.view import View, address, shell_words

TOP = 40
FIRST = ("event", "class", "statement", "module", "client", "session", "object", "minute")
"""Dimensions offered as links; users can type any other one, and expressions."""


def view(request: Asked) -> View:
    """Return the profile of the run in the address, grouped by the expressions `by` and filtered by `where`.

    Raises:
        TraceError: The run is not a trace, or an expression is not valid.
    """
    run = trace_of(request)
    by, where = limited_parameter(request, "by"), limited_parameter(request, "where")
    expressions = tuple(split_expressions(by)) if by else ("event",)
    wanted = Request(expressions, where or None, top=TOP)
    model = cached_model(run, f"profile {expressions} {where}", lambda: profile_page([str(run.path)], wanted))
    command = ["dbdyno", "trace", "profile", run.path, "--by", by or "event", "--top", TOP]
    return View(
        page_of(model),
        model=model,
        command=shell_words(*command, *(("--where", where) if where else ())),
        trail=trail_of(run),
        links=(
            *links_of(run)[1:],
            *((f"By {one}", address("/profile", id=run.id, by=one, where=where)) for one in FIRST),
        ),
        widget="profile.html",
        extra={"id": run.id, "by": fmt.text(by), "where": fmt.text(where), "dimensions": DIMENSIONS},
    )
