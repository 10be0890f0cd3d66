"""The list of runs, filtered by kind, status, target and search words."""

from __future__ import annotations

from starlette.requests import Request

from dbdyno.base.json_types import TableRow
from dbdyno.evidence.run import Run
from dbdyno.page import Head, Page
from dbdyno.pages import format as fmt
from dbdyno.pages.common import table, with_noun
from dbdyno.ui.routes.common import (
    HOME,
    NO_RUN,
    RUN_COLUMNS,
    headline_of,
    kind_of,
    list_section,
    parameter,
    places_of,
    run_row,
    target_of,
)
from dbdyno.ui.view import View, shell_words

SHOWN = 100
"""Number of runs per page."""
FILTERS = ("kind", "status", "target", "q")


def view(request: Request) -> View:
    """Return the list of runs, newest first."""
    places = places_of(request)
    every = places.runs()[::-1]
    wanted = {name: parameter(request, name) for name in FILTERS}
    kept = [run for run in every if _fits(run, wanted)]
    first = int(parameter(request, "after") or 0) if parameter(request, "after").isdigit() else 0
    rows = [run_row(run) for run in kept[first : first + SHOWN]]
    left = max(len(kept) - first - SHOWN, 0)
    section = list_section("runs", "Runs", table("", RUN_COLUMNS, rows, look="loose", left_out=left), NO_RUN)
    head = Head("Runs", "Runs", name="list", chips=(with_noun(len(kept), "run") or "no run",), section="Runs")
    kinds = sorted({kind_of(run) for run in every})
    extra = {
        "kinds": kinds,
        "statuses": ("running", "complete", "aborted"),
        "targets": sorted({one for run in every if (one := target_of(run))}),
        "asked": {name: fmt.text(value) for name, value in wanted.items()},
    }
    return View(
        Page(head, (section,)),
        rows=lambda: [_plain(run) for run in kept],
        command=shell_words("dbdyno", "runs", "--runs", places.runs_folder),
        trail=(HOME,),
        widget="filters.html",
        extra=extra,
        follows="runs",
        links=(("Compare two runs", "/compare"), ("Trend of a plan", "/trend")),
    )


def _fits(run: Run, wanted: dict[str, str]) -> bool:
    known = run.manifest
    words = f"{run.id} {known.title} {headline_of(run)}".lower()
    return (
        wanted["kind"] in ("", kind_of(run))
        and wanted["status"] in ("", run.status)
        and wanted["target"] in ("", target_of(run))
        and all(word in words for word in wanted["q"].lower().split())
    )


def _plain(run: Run) -> TableRow:
    return {
        "run": run.id,
        "status": run.status,
        "started": str(run.manifest.started_at)[:19],
        "kind": kind_of(run),
        "title": fmt.line(run.manifest.title),
        "verdict": headline_of(run),
    }
