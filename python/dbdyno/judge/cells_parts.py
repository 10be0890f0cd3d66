"""Parts of a comparison page: sections, tables, and rows as plain values."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from dbdyno.base.json_types import TableRow
from dbdyno.base.sections import Heading, Table
from dbdyno.cells.catalogue import metric
from dbdyno.cells.intervals import Intervals
from dbdyno.cells.page import Section
from dbdyno.judge.cells_rates import Row

TOP = 40
"""Maximum number of rows that a long table shows."""
DIFFERENT = ("worse", "better", "more", "less")


def section(
    name: str,
    title: str,
    tables: Iterable[Table] = (),
    *,
    about: str = "",
    notes: Sequence[str] = (),
) -> Section:
    """Return a section of a page, without its empty tables."""
    kept = [one for one in tables if one["rows"]]
    return {"name": name, "title": title, "about": about, "tables": kept, "not_measured": [], "notes": list(notes)}


def table(title: str, columns: str, rows: Sequence[Mapping[str, object]], *, top: int | None = None) -> Table:
    """Return a table; `columns` lists its columns as `name:unit:label`, and a column without a unit is a count."""
    words = [[*word.split(":"), "", ""][:3] for word in columns.split()]
    shown: list[Heading] = [
        {"name": name, "unit": unit or "count", "label": (label or name).replace("_", " ")}
        for name, unit, label in words
    ]
    kept = [dict(row) for row in rows[:top]]
    return {"title": title, "columns": shown, "rows": kept, "left_out": len(rows) - len(kept)}


def list_names(names: Sequence[str], limit: int = 6) -> str:
    """Return names joined by commas; if there are more than `limit`, the number of further names follows."""
    more = len(names) - limit
    return ", ".join(names[:limit]) + (f" and {more} more" if more > 0 else "")


def as_dict(row: Row) -> TableRow:
    """Return a row as a dictionary of plain values, in the row's unit."""
    ends: TableRow = {}
    for side, own in (("first", row.a), ("second", row.b)):
        found = own.interval()
        ends |= {
            side: own.value * row.scale,
            f"{side}_rounds": own.rounds,
            f"{side}_low": found[0] * row.scale if found else None,
            f"{side}_high": found[1] * row.scale if found else None,
        }
    return {
        "metric": row.label,
        "cell": row.cell,
        "object": row.object,
        "measure": row.measure,
        "unit": row.unit,
        "decision": row.decision,
        "ratio": row.ratio,
        "low": row.low,
        "high": row.high,
        **ends,
        "p": row.p,
        "q": row.q,
        "second_larger": row.larger,
    }


def levels_section(first: Intervals, second: Intervals, threshold: float, everything: bool) -> Section:
    """Return the means over time of space, loads and temperatures; they change too slowly to be tested."""
    rows = []
    for name in sorted({n for n, _, _ in first.levels} & {n for n, _, _ in second.levels}):
        values = [_level(side, name) for side in (first, second)]
        a, b = values
        apart = max(abs(a), abs(b)) * threshold < abs(a - b)
        if everything or apart:
            rows.append(
                {"metric": name, "first": a, "second": b, "measure": first.units.get(name) or metric(name).unit}
            )
    return section(
        "levels",
        "Levels, not tested",
        [table("", "metric:text first:number second:number measure:text:unit", rows, top=TOP)],
        notes=["they drift too slowly for a test; space is summed over the cells, loads and percentages are averaged"]
        if rows
        else ["none that differs by the threshold"],
    )


def _level(side: Intervals, name: str) -> float:
    """Return a level's mean over time, summed over objects if the metric allows it, otherwise averaged over objects."""
    means = []
    for (own, _, _), row in side.levels.items():
        known = [value for value in row if not math.isnan(value)]
        if own == name and known:
            means.append(math.fsum(known) / len(known))
    total = math.fsum(means)
    return total if metric(name).rule == "sum" else total / max(len(means), 1)
