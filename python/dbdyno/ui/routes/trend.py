"""The trend of a plan: all runs with the same plan, and the points where the level changed."""

from __future__ import annotations

from starlette.requests import Request

from dbdyno.evidence.run import Run
from dbdyno.page import Cell, Head, Page, Row
from dbdyno.pages import format as fmt
from dbdyno.pages import page_of
from dbdyno.pages.common import columns, table
from dbdyno.study.analysis.trend import trend_of
from dbdyno.study.plan.runs_of_plan import are_runs_alike
from dbdyno.ui.routes.common import HOME, NO_RUN, list_section, parameter, places_of
from dbdyno.ui.view import View, address

_COLUMNS = columns("plan:text:title runs last:text:last_run")


def view(request: Request) -> View:
    """Return the trend of all runs with the plan of run `id`; without `id`, the plans to choose from."""
    places = places_of(request)
    runs = [run for run in places.runs() if run.status == "complete" and run.manifest.has("plan")]
    trail = (HOME, ("Runs", "/runs"))
    if not parameter(request, "id"):
        rows = [_row(group) for group in _groups(runs)]
        head = Head("Runs", "", name="trend", headline="Trend of a plan", section="Trend")
        return View(Page(head, (list_section("plans", "Plans", table("", _COLUMNS, rows), NO_RUN),)), trail=trail)
    chosen = places.run(parameter(request, "id"))
    alike = [run for run in runs if are_runs_alike(run, chosen)]
    model = trend_of(alike, chosen.manifest.title, levels=bool(parameter(request, "level")))
    own = address("/trend", id=chosen.id, level=None if parameter(request, "level") else "1")
    link = ("Ratio to the base" if parameter(request, "level") else "Level of each arm", own)
    return View(page_of(model), model=model, trail=trail, links=(link,))


def _groups(runs: list[Run]) -> list[list[Run]]:
    """Return the runs grouped by plan, with the plan of the newest run first."""
    groups: list[list[Run]] = []
    for run in runs[::-1]:
        mine = next((group for group in groups if are_runs_alike(group[0], run)), None)
        if mine is None:
            groups.append([run])
        else:
            mine.append(run)
    return groups


def _row(group: list[Run]) -> Row:
    last = group[0]
    title = Cell(fmt.line(last.manifest.title, 80), href=address("/trend", id=last.id))
    return Row({"plan": title, "runs": len(group), "last": fmt.line(last.id, 90)})
