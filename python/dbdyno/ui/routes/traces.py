"""Shared part of the views of a trace: the run in the address, the model of a page, and links to the other views."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from starlette.requests import Request

from dbdyno.base.errors import TraceError
from dbdyno.evidence.query import is_trace
from dbdyno.evidence.run import Run
from dbdyno.pages import format as fmt
from dbdyno.pages import page_of
from dbdyno.trace.conditions import restrict
from dbdyno.trace.source import Traces, open_traces
from dbdyno.ui.result_cache import ResultCache
from dbdyno.ui.routes.common import HOME, parameter, places_of
from dbdyno.ui.view import Link, View, address, shell_words

LONGEST = 500
"""Maximum length of an expression, a condition or a name in an address, in characters."""
VIEWS = (
    ("Profile by…", "/profile"),
    ("Statements", "/statements"),
    ("Call tree", "/tree"),
    ("Longest waits", "/waits"),
)
"""Text and path of each view of a trace."""
_MODELS: ResultCache[Mapping[str, Any]] = ResultCache(16)


def trace_of(request: Request) -> Run:
    """Return the trace or recording in the address.

    Raises:
        TraceError: The run is not a trace.
    """
    run = places_of(request).run(parameter(request, "id"))
    if not is_trace(run):
        raise TraceError(
            "is not a trace",
            where=run.id,
            next_step="create a trace with `dbdyno trace import` or `dbdyno trace record`",
        )
    return run


def limited_parameter(request: Request, name: str) -> str:
    """Return a parameter of the address, limited to `LONGEST` characters."""
    return parameter(request, name)[:LONGEST].strip()


def trail_of(run: Run) -> tuple[Link, ...]:
    """Return the links that lead to a view of a trace."""
    return (HOME, ("Runs", "/runs"), (fmt.line(run.manifest.title or run.id, 60), address("/run", id=run.id)))


def links_of(run: Run) -> tuple[Link, ...]:
    """Return a link to each view of a trace."""
    return tuple((text, address(path, id=run.id)) for text, path in VIEWS)


def cached_model(run: Run, name: str, make: Callable[[], Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the model of a trace's page, cached until the trace changes."""
    state = (run.path / "manifest.json").stat().st_mtime_ns
    return _MODELS.get(f"{run.path} {name}", state, make)


def trace_view(
    run: Run,
    page: str,
    options: Mapping[str, str | int | bool],
    make: Callable[[Traces], Mapping[str, Any]],
    **more: Any,
) -> View:
    """Return the view of a page that `dbdyno trace` prints with the same options.

    Args:
        run: The trace.
        page: The command's name.
        options: The command's options; those that are empty or False are left out, and True stands for a flag. `where`
            restricts the trace.
        make: Returns the page's model.
        more: Other attributes of the view.
    """
    given = {name: value for name, value in options.items() if value not in ("", False)}

    def read() -> Mapping[str, Any]:
        with open_traces([str(run.path)]) as traces:
            restrict(traces, where=str(given["where"]) if "where" in given else None)
            return make(traces)

    model = cached_model(run, f"{page} {given}", read)
    words = [
        word for name, value in given.items() for word in ((f"--{name}",) if value is True else (f"--{name}", value))
    ]
    return View(
        page_of(model),
        model=model,
        command=shell_words("dbdyno", "trace", page, run.path, *words),
        trail=trail_of(run),
        links=links_of(run),
        **more,
    )
