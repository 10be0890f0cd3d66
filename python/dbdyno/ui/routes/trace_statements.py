"""The statements of a trace: calls, waits, plan with row counts, parents and children of each."""

from __future__ import annotations

from starlette.requests import Request as Asked

from dbdyno.pages import format as fmt
from dbdyno.trace.statements import SORTS, Request, statements_page
from dbdyno.ui.routes.traces import limited_parameter, trace_of, trace_view
from dbdyno.ui.view import View

TOP = 10


def view(request: Asked) -> View:
    """Return the top statements by `sort` that match `where`, or one `statement`.

    Raises:
        TraceError: The run is not a trace, or the statement, the order or the condition is unknown.
    """
    run = trace_of(request)
    sort = limited_parameter(request, "sort") or "elapsed"
    statement, where = limited_parameter(request, "statement"), limited_parameter(request, "where")
    return trace_view(
        run,
        "sql",
        {"sort": sort, "statement": statement, "top": TOP, "where": where},
        lambda traces: statements_page(traces, Request(TOP, sort, statement=statement or None)),
        widget="trace_statements.html",
        extra={
            "id": run.id,
            "sort": sort,
            "sorts": tuple(SORTS),
            "statement": fmt.text(statement),
            "where": fmt.text(where),
        },
    )
