"""Builder of the page about a map of a claim: the picture, and each of its points."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dbdyno.base.json_types import TableRow
from dbdyno.page import Head, Page, Section
from dbdyno.pages import format as fmt
from dbdyno.pages import reading
from dbdyno.pages.common import columns, data, figures, table
from dbdyno.pages.reading import Analysis

POINTS = ("curve", "x", "value", "low", "high")


def claim_map(model: Analysis) -> Page:
    """Return the page about a claim's quantity over the parameters that its source does not state."""
    points = reading.entries(model, "points")
    said = reading.sentences(model)
    words = {key: fmt.line(model.get(key) or key, 100) for key in ("parameter", "quantity")}
    shown = columns("curve:text x:words value:words interval:words")
    facts = fmt.line(model.get("facts") or "", 300)
    head = Head("Model", fmt.line(model.get("title") or "Map", 200), "claim_map", facts, sentences=said, section="Map")
    lead = f"x: {words['parameter']}. Value: {words['quantity']}, with its 95 % interval."
    return Page(
        head,
        (
            Section("picture", "Picture", figures=figures(model, "claim_map"), where="page"),
            Section("points", "Points", lead, tables=(table("", shown, map(_point, points)),)),
        ),
        data=lambda: data(POINTS, points),
    )


def _point(point: Mapping[str, Any]) -> TableRow:
    low, high = (fmt.significant(point.get(key)) for key in ("low", "high"))
    return {
        "curve": fmt.line(point.get("curve") or "", 60),
        "x": fmt.significant(point.get("x")),
        "value": fmt.significant(point.get("value")),
        "interval": "" if low == high else f"{low} to {high}",
    }
