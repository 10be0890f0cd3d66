"""The call tree of one execution in a trace: the client's longest call, or the one that the address names."""

from __future__ import annotations

from starlette.requests import Request as Asked

from dbdyno.base.errors import TraceError
from dbdyno.pages import format as fmt
from dbdyno.trace.tree import Request, tree_page
from dbdyno.ui.routes.common import parameter
from dbdyno.ui.routes.traces import limited_parameter, trace_of, trace_view
from dbdyno.ui.view import View


def view(request: Asked) -> View:
    """Return the tree of the call with the number `call`, of a `statement`, or at a place `line` (FILE:LINE).

    With `calls` each call has its own line.

    Raises:
        TraceError: The run is not a trace, no call matches, or more than one of these parameters is given.
    """
    run = trace_of(request)
    options = {name: limited_parameter(request, name) for name in ("call", "statement", "line")}
    if sum(map(bool, options.values())) > 1:
        raise TraceError("more than one call is named", next_step="give only one of call, statement and line")
    call = options["call"]
    if call and not (call.isascii() and call.isdigit() and int(call) < 2**63):
        raise TraceError(
            f"{fmt.line(call, 40)!r} is not the number of a call", next_step="take a number from the column `call`"
        )
    calls = bool(parameter(request, "calls"))
    wanted = Request(int(call) if call else None, options["statement"] or None, options["line"] or None, calls)
    return trace_view(
        run,
        "tree",
        {**options, "calls": calls},
        lambda traces: tree_page(traces, wanted),
        widget="trace_tree.html",
        extra={"id": run.id, "calls": calls, **{name: fmt.text(text) for name, text in options.items()}},
    )
