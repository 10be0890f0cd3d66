"""The views: one file each, a function from the request to a `View`."""

from __future__ import annotations

from collections.abc import Callable

from starlette.requests import Request

from dbdyno.ui.routes import (
    blocking,
    compare,
    console,
    home,
    periods,
    plans,
    report,
    run,
    run_list,
    search,
    server,
    statement,
    trend,
)
from dbdyno.ui.view import View

VIEWS: dict[str, Callable[[Request], View]] = {
    "/": home.view,
    "/search": search.view,
    "/runs": run_list.view,
    "/run": run.view,
    "/compare": compare.view,
    "/trend": trend.view,
    "/server": server.view,
    "/report": report.view,
    "/periods": periods.view,
    "/statement": statement.view,
    "/blocking": blocking.view,
    "/plans": plans.view,
    "/sql": console.view,
}
"""The view of each path."""
