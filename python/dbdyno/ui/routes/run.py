"""The report page of one run or one move."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from starlette.requests import Request

from dbdyno.cells.record import KIND as CELLS
from dbdyno.evidence.query import is_trace
from dbdyno.evidence.run import Run
from dbdyno.pages import page_of
from dbdyno.ui.models import model_of
from dbdyno.ui.result_cache import ResultCache
from dbdyno.ui.routes.common import HOME, parameter, places_of, target_of
from dbdyno.ui.routes.traces import links_of
from dbdyno.ui.view import Link, View, address, shell_words

UNFINISHED = ("At work", "Not finished")
"""Words in a move's verdict that mean that the move has not ended."""
_MODELS: ResultCache[Mapping[str, Any]] = ResultCache(16)


def view(request: Request) -> View:
    """Return the page of the run or move in the address."""
    places = places_of(request)
    job = parameter(request, "job")
    given = places.job(job) if job else places.run(parameter(request, "id"))
    found = cached_model(given)
    command = ("dbdyno", "report", given) if isinstance(given, Path) else _command(given, places.runs_folder)
    return View(
        page_of(found),
        model=found,
        command=shell_words(*command, "--format", "text"),
        trail=(HOME, ("Runs", "/runs")),
        links=() if isinstance(given, Path) else _links(given),
        follows="runs" if _is_under_way(given, found) else "",
    )


def _is_under_way(given: Run | Path, model: Mapping[str, Any]) -> bool:
    """Return True if a run is running, or a move has not ended."""
    if isinstance(given, Run):
        return given.status == "running"
    return str((model.get("verdict") or {}).get("word")) in UNFINISHED


def _links(run: Run) -> tuple[Link, ...]:
    found = [("SQL over its evidence", address("/sql", run=run.id))]
    if is_trace(run):
        found = [*links_of(run), *found]
    if run.manifest.kind == CELLS:
        found = [("Heat maps over time", address("/cells", id=run.id)), *found]
    if (target := target_of(run)).startswith("model:"):
        found = [(f"All runs on {target}", address("/runs", target=target)), *found]
    if run.manifest.has("plan"):
        found = [("Compare with…", address("/compare", a=run.id)), ("Trend", address("/trend", id=run.id)), *found]
    return tuple(found)


def _command(run: Run, folder: Path) -> tuple[object, ...]:
    return ("dbdyno", "report", run.id, "--runs", folder)


def cached_model(given: Run | Path) -> Mapping[str, Any]:
    """Return the model of a run or a move, cached until its files change."""
    folder = given if isinstance(given, Path) else given.path
    return _MODELS.get(str(folder), _state(folder), lambda: model_of(given))


def _state(folder: Path) -> tuple[int, ...]:
    """Return a state that changes with each new part of a run or job."""
    places = (folder, *(path for path in folder.iterdir() if path.is_dir() or path.name == "manifest.json"))
    return tuple(sorted(path.stat().st_mtime_ns for path in places))
