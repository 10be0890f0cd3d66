"""Current values of the cells side by side: a row per metric (and object), a column per cell, and an aggregate.

The aggregate follows the metric's own rule. Values are unformatted numbers.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence

from dbdyno.cells.aggregate import Aggregate, combine, own_names, with_cell_placeholder
from dbdyno.cells.catalogue import family_words, metric
from dbdyno.cells.clocks import MINUTE_S, NEAR_S, duration_words
from dbdyno.cells.collection import Collection, Column
from dbdyno.cells.identity import address_of
from dbdyno.cells.page import ShownCell, ShownMetric, ShowPage

SCHEMA = 1
NAMED = 3
"""Maximum number of cells that a sentence names; if there are more, it gives only the number of the others."""


def show_page(collection: Collection, *, by: str = "cell") -> ShowPage:
    """Return the page of one collection.

    `by` 'cell' aggregates a cell's objects, 'object' aggregates cells, 'both' keeps every object of every cell, with
    <cell> in object names in place of the cell's name.
    """
    return {
        "schema": SCHEMA,
        "kind": "cells",
        "page": "show",
        "by": by,
        "cells": [_cell(column) for column in collection.columns],
        "rows": list(_rows(collection, by)),
    }


def _cell(column: Column) -> ShownCell:
    times = [r.at_ns for r in column.everything or column.readings if r.at_ns is not None]
    return {
        "name": column.host.name,
        "readings": len(column.readings),
        "address": address_of(column.host),
        "collected_ns": max(times) if times else None,
        "asked_ns": column.asked_ns,
        "age_s": (column.asked_ns - max(times)) / 1e9 if times and column.asked_ns else None,
        "seconds": column.seconds,
        "started_ns": column.started_ns,
        "problem": column.problem,
        "next_step": column.next_step,
    }


def _rows(collection: Collection, by: str) -> Iterable[ShownMetric]:
    readings, rates = collection.readings, collection.rates
    descriptions = collection.descriptions
    keep_objects = by != "cell"
    if keep_objects:
        names = own_names([*readings, *rates])
        readings, rates = with_cell_placeholder(readings, names), with_cell_placeholder(rates, names)
    per_cell: dict[tuple[str, str], dict[str, Aggregate]] = {}
    for combined in combine(readings, "both" if keep_objects else "cell", rates):
        key = (combined.name, combined.object if keep_objects else "")
        per_cell.setdefault(key, {})[combined.cell] = combined
    over_all = {
        (combined.name, combined.object): combined
        for combined in combine(readings, "object" if keep_objects else "all", rates)
    }
    for (name, item), own in sorted(per_cell.items()):
        whole = over_all[name, item]
        known = metric(name)
        values = [c.value for c in own.values() if c.value is not None]
        yield {
            "metric": name,
            "family": family_words(name),
            "object": item,
            "unit": whole.unit or known.unit,
            "kind": known.kind,
            "rule": whole.rule,
            "description": descriptions.get(name) or known.meaning,
            "values": {cell: c.value for cell, c in own.items()},
            "notes": {cell: c.note for cell, c in own.items() if c.note},
            "all": whole.value,
            "note": whole.note,
            "n": whole.n,
            "low": min(values) if values else whole.low,
            "mean": math.fsum(values) / len(values) if values else whole.mean,
            "high": max(values) if values else whole.high,
        }


def flat_rows(page: ShowPage) -> list[dict[str, object]]:
    """Return a row per metric, object and cell for CSV and JSON lines, with cell 'all' for the aggregate.

    Numbers are unformatted; a missing number is None.
    """
    rows: list[dict[str, object]] = []
    for row in page["rows"]:
        whole = {"all": row["all"]}
        for cell, value in {**row["values"], **whole}.items():
            rows.append(
                {
                    "metric": row["metric"],
                    "object": row["object"],
                    "cell": cell,
                    "value": value,
                    "unit": row["unit"],
                    "kind": row["kind"],
                    "rule": row["rule"],
                    "note": row["note"] if cell == "all" else row["notes"].get(cell, ""),
                    "description": row["description"],
                }
            )
    return rows


def age_words(page: ShowPage) -> list[str]:
    """Return how old the values are: one sentence each for cells with clocks near ours, ahead of ours, and behind ours.

    There is no sentence per cell, because a rack whose time service is wrong would fill the screen.
    """
    ages = {cell["name"]: cell["age_s"] for cell in page["cells"] if cell["age_s"] is not None}
    near = {name: age for name, age in ages.items() if -NEAR_S <= age <= MINUTE_S + NEAR_S}
    said = []
    if near:
        low, high = (max(0.0, end) for end in (min(near.values()), max(near.values())))
        span = f"{low:.0f} s" if round(low) == round(high) else f"{low:.0f} to {high:.0f} s"
        said.append(f"values are {span} old; cells collect once a minute")
    far = {name: age for name, age in ages.items() if name not in near}
    said += _far_words({name: -age for name, age in far.items() if age < 0}, "from now", "{} ahead of ours")
    said += _far_words(
        {name: age for name, age in far.items() if age > 0}, "ago", "{} behind ours, or {} stopped collecting"
    )
    return said


def _far_words(ages: Mapping[str, float], when: str, why: str) -> list[str]:
    """Return a sentence on the cells whose values are dated far in the past or in the future; empty without cells."""
    if not ages:
        return []
    names = list(ages)
    one = len(names) == 1
    reason = why.format("its clock is" if one else "their clocks are", "it has" if one else "they have")
    low, high = duration_words(min(ages.values())), duration_words(max(ages.values()))
    span = low if low == high else f"{low} to {high}"
    who = ", ".join(names) if len(names) <= NAMED else f"{', '.join(names[:NAMED])} and {len(names) - NAMED} more"
    return [f"{who}: {'its' if one else 'their'} values are dated {span} {when}: {reason}"]


def worst_of(row: ShownMetric) -> tuple[str, float] | None:
    """Return the cell to look at first with its value, or None if all values are equal.

    For metrics where low is better (latencies, errors, percentages, loads) it is the highest, for an efficiency the
    lowest, otherwise the one farthest from the median.
    """
    known = {cell: value for cell, value in row["values"].items() if value is not None}
    if len(set(known.values())) < 2:
        return None
    if "_EFFICIENCY_" in row["metric"]:
        return min(known.items(), key=lambda one: one[1])
    if row["rule"] in ("weighted", "spread") or metric(row["metric"]).counts_errors:
        return max(known.items(), key=lambda one: one[1])
    middle = statistics.median(known.values())
    return max(known.items(), key=lambda one: abs(one[1] - middle))


def table_rows(
    page: ShowPage,
    *,
    cells: bool | Sequence[str] = True,
    stats: bool = False,
    describe: bool = False,
    scientific: bool = False,
) -> list[dict[str, str]]:
    """Return a row per metric (and object) for display: the aggregate first, then a column per cell.

    The aggregate is first so that it cannot be cut off the screen. If only some `cells` have columns, or none, the cell
    to look at first is shown beside the aggregate. Every digit is shown; `scientific` shows numbers as 1.23456e+07,
    with all digits.
    """
    show_object = any(row["object"] for row in page["rows"])
    found = []
    for row in page["rows"]:
        line = {"metric": row["metric"]}
        if show_object:
            line["object"] = row["object"]
        line["all"] = _all_text(row, scientific)
        line["unit"] = row["unit"]
        if cells is not True and len(page["cells"]) > 1:
            worst = worst_of(row)
            line["worst"] = f"{worst[0]}: {digits_text(worst[1], scientific)}" if worst else "–"
        for cell in page["cells"]:
            if cells is True or (cells and cell["name"] in cells):
                line[_head(cell)] = digits_text(row["values"].get(cell["name"]), scientific)
        if stats:
            for word, value in (("min", row["low"]), ("max", row["high"]), ("avg", row["mean"])):
                line[word] = digits_text(value, scientific)
        if describe:
            line["description"] = row["description"]
        found.append(line)
    return found


def _head(cell: ShownCell) -> str:
    return f"{cell['name']}{' !' if cell['problem'] else ''}"


def _all_text(row: ShownMetric, scientific: bool) -> str:
    if row["all"] is not None:
        return digits_text(row["all"], scientific)
    if row["rule"] == "spread":
        least, most = digits_text(row["low"], scientific), digits_text(row["high"], scientific)
        return least if least == most else f"{least} to {most}"
    return "–"


def digits_text(value: float | None, scientific: bool = False) -> str:
    """Return a number with all its digits and thousands separators; – for None."""
    if value is None:
        return "–"
    if scientific:
        mantissa, _, exponent = f"{value:.15e}".partition("e")
        return f"{mantissa.rstrip('0').rstrip('.')}e{exponent}"
    if value == int(value) and abs(value) < 2**53:
        return f"{int(value):,}"
    return f"{value:,.12g}" if abs(value) < 1e12 else f"{value:,.3f}"
