"""The views: one file each, with a function from the request to a `View`."""

from __future__ import annotations

from collections.abc import Callable

from starlette.requests import Request

from dbdyno.ui.routes import (
    advice,
    blocking,
    cells,
    compare,
    console,
    experiment,
    home,
    latest,
    periods,
    plans,
    profile,
    report,
    run,
    run_list,
    saved,
    search,
    server,
    statement,
    trace_statements,
    trace_tree,
    trace_waits,
    trend,
)
from dbdyno.ui.view import View

VIEWS: dict[str, Callable[[Request], View]] = {
    "/": home.view,
    "/latest": latest.view,
    "/search": search.view,
    "/runs": run_list.view,
    "/run": run.view,
    "/compare": compare.view,
    "/trend": trend.view,
    "/profile": profile.view,
    "/statements": trace_statements.view,
    "/tree": trace_tree.view,
    "/waits": trace_waits.view,
    "/cells": cells.view,
    "/saved": saved.view,
    "/server": server.view,
    "/report": report.view,
    "/periods": periods.view,
    "/statement": statement.view,
    "/blocking": blocking.view,
    "/plans": plans.view,
    "/advice": advice.view,
    "/experiment": experiment.view,
    "/sql": console.view,
}
"""View function for each path."""
