"""Two runs compared, chosen from lists: the page of `dbdyno compare`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request

from dbdyno.evidence.run import Run
from dbdyno.page import Head, Page
from dbdyno.pages import format as fmt
from dbdyno.pages import page_of
from dbdyno.study.analysis.pair import analyse_pair
from dbdyno.ui.result_cache import ResultCache
from dbdyno.ui.routes.common import HOME, parameter, places_of
from dbdyno.ui.view import View, shell_words

_MODELS: ResultCache[Mapping[str, Any]] = ResultCache(16)


def view(request: Request) -> View:
    """Return the comparison of the runs `a` and `b` in the address, below the lists to choose them from."""
    places = places_of(request)
    names = (parameter(request, "a"), parameter(request, "b"))
    known = [run for run in places.runs()[::-1] if run.manifest.has("plan")]
    extra = {"names": names, "runs": [(run.id, fmt.line(run.manifest.title, 60)) for run in known]}
    trail = (HOME, ("Runs", "/runs"))
    if not all(names):
        how = ("Choose the run before and the run after. Their base arms are compared.",)
        head = Head("Runs", "", name="compare", headline="Compare two runs", sentences=how, section="Compare")
        return View(Page(head, ()), trail=trail, widget="compare.html", extra=extra)
    one, other = (places.run(name) for name in names)
    model = _MODELS.get(" ".join(names), _states(one, other), lambda: analyse_pair(one, other))
    command = shell_words("dbdyno", "compare", *names, "--runs", places.runs_folder)
    return View(page_of(model), model=model, command=command, trail=trail, widget="compare.html", extra=extra)


def _states(*runs: Run) -> tuple[int, ...]:
    return tuple((run.path / "manifest.json").stat().st_mtime_ns for run in runs)
