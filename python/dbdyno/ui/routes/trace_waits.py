"""The waits of a trace: quantiles, distribution, time series, and the longest waits with file and line."""

from __future__ import annotations

from starlette.requests import Request as Asked

from dbdyno.pages import format as fmt
from dbdyno.trace.waits import Request, waits_page
from dbdyno.ui.routes.traces import limited_parameter, trace_of, trace_view
from dbdyno.ui.view import View

MOST = 1000
"""Number of longest waits in CSV, JSON and Arrow."""


def view(request: Asked) -> View:
    """Return the waits whose event matches `event` (* matches anything; by default all waits) and `where`.

    Raises:
        TraceError: The run is not a trace, no wait matches, or the condition is not valid.
    """
    run = trace_of(request)
    event, where = limited_parameter(request, "event") or "*", limited_parameter(request, "where")
    return trace_view(
        run,
        "waits",
        {"event": event, "longest": MOST, "where": where},
        lambda traces: waits_page(traces, Request((event,), longest=MOST)),
        widget="trace_waits.html",
        extra={"id": run.id, "event": fmt.text(event), "where": fmt.text(where)},
    )
