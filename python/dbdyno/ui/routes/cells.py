"""A recording of cells as heat maps: a row per cell over time, for one metric that the address names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from starlette.requests import Request

from dbdyno.base.errors import CellsError
from dbdyno.base.json_types import JsonObject
from dbdyno.cells.record import KIND
from dbdyno.page import Figure, Head, Page, Section
from dbdyno.pages import format as fmt
from dbdyno.ui.routes.common import HOME, parameter, places_of
from dbdyno.ui.routes.run import cached_model
from dbdyno.ui.view import View, address


def view(request: Request) -> View:
    """Return the heat map of the metric in the address, or of the first one.

    Raises:
        CellsError: The run is not a recording of cells, or contains no metric that changed.
    """
    places = places_of(request)
    run = places.run(parameter(request, "id"))
    if run.manifest.kind != KIND:
        raise CellsError(
            "is not a recording of cells",
            where=run.id,
            next_step="record cells with `dbdyno cells record --hosts HOSTS --out RUN`",
        )
    panels = {f"{family}: {one['name']}": one for family, one in _panels(cached_model(run))}
    if not panels:
        raise CellsError(
            "contains no metric that changed", where=run.id, next_step="see in its report what was collected"
        )
    chosen = parameter(request, "metric") if parameter(request, "metric") in panels else next(iter(panels))
    model = {"schema": 1, "kind": "cells", "panel": panels[chosen]}
    title = fmt.line(chosen, 80)
    head = Head("Cells over time", fmt.line(run.id, 90), name="heat", headline=title, section="Heat map")
    about = fmt.line(panels[chosen].get("meaning") or "", 300)
    section = Section("map", title, about, figures=(Figure("cells_heat", model),))
    return View(
        Page(head, (section,)),
        model=model,
        rows=lambda: list(_rows(panels[chosen])),
        trail=(HOME, ("Runs", "/runs"), (fmt.line(run.id, 90), address("/run", id=run.id))),
        links=tuple((fmt.line(name, 60), address("/cells", id=run.id, metric=name)) for name in panels),
    )


def _panels(model: Mapping[str, Any]) -> Iterator[tuple[str, JsonObject]]:
    for family in model.get("families") or ():
        for panel in family["panels"]:
            yield str(family["name"]), panel


def _rows(panel: Mapping[str, Any]) -> Iterator[dict[str, object]]:
    for one in panel["cells"]:
        for low, high, value in zip(one["from_s"], one["to_s"], one["value"], strict=True):
            yield {"cell": one["cell"], "from_s": low, "to_s": high, "value": value, "unit": panel["unit"]}
