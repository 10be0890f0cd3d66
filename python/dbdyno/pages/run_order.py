"""Section about the order of a data flow's steps: what it costs in each engine, and what each optimizer recovers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dbdyno.base.json_types import TableRow
from dbdyno.page import Section
from dbdyno.pages import common, reading
from dbdyno.pages import format as fmt
from dbdyno.pages.common import columns
from dbdyno.pages.reading import Analysis

_ABOUT = (
    "Each engine is compared with itself by the mean time of a flow; all intervals hold jointly. As written: the "
    "optimizer is off. "
    "The time of a flow over almost no rows is that of planning and starting."
)
_RATIOS = ("written", "given_back", "left", "done")


def sections(model: Analysis) -> Iterator[Section]:
    """Yield the table of engines; nothing if the run has no flows."""
    given = reading.entries(model, "order")
    if not given:
        return
    shown = columns(
        "engine:left lines:count floor:ns:over_next_to_nothing written:change:bad_order,_as_written"
        " written_interval:words:interval given_back:change:bad_order,_by_the_optimizer:page"
        " given_back_interval:words:interval:page left:change:bad_order,_optimized left_interval:words:interval"
        " done:change:good_order,_by_the_optimizer done_interval:words:interval"
    )
    rows = [_row(row) for row in given]
    yield Section("order", "What the written order costs", _ABOUT, tables=(common.table("", shown, rows),))


def _row(row: Mapping[str, Any]) -> TableRow:
    made: TableRow = {"engine": fmt.line(row.get("engine") or "?"), "lines": row.get("lines")}
    made["floor"] = row.get("floor_ns")
    for name in _RATIOS:
        own = row.get(name) or {}
        made[name] = own.get("ratio")
        made[f"{name}_interval"] = fmt.interval(own.get("low"), own.get("high"))
    return made
