"""Comparison of two sets of traces line by line: what became slower or faster, and the share of the difference.

Two metrics of each line decide: the time of one occurrence (`mean`), and the total cost of the line, either in total or
per execution of the client (`per_execution`, which includes how often it occurs). All lines of all families share one
false discovery rate.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from dbdyno.study.analysis.contract.parts import LineRow, LineSide
from dbdyno.study.analysis.traces.blocks import FAMILIES, Blocks, Line, Unit
from dbdyno.study.analysis.traces.options import ComparisonOptions
from dbdyno.trace.source import Traces

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dbdyno.stats.comparison import BlockComparison

    Array = NDArray[np.float64]

Sides = tuple[dict[str, Line], ...]
"""The lines of each set, by name."""
LINES_MOST = 60
"""Largest number of lines compared per family: those with the most time in either set."""
METRICS = (
    ("mean", "mean", "ns"),
    ("p50", "median", "ns"),
    ("p99", "p99", "ns"),
    ("per_execution", "cost", "ns"),
    ("count_per_s", "number per second", "1/s"),
    ("time_per_s", "time per second", "ns"),
)
"""Name, label and unit of the metrics of each line; smaller is better for all of them."""
RATES = ("count_per_s", "time_per_s")


def compare_lines(
    sets: tuple[Traces, Traces],
    lines: tuple[Mapping[str, dict[str, Line]], Mapping[str, dict[str, Line]]],
    blocks: tuple[Blocks, Blocks],
    executions: tuple[Array, Array],
    scales: tuple[float, float],
    options: ComparisonOptions,
) -> list[LineRow]:
    """Return a row per line; in each family, those with the largest share of the difference come first.

    `lines` are the lines of each set by family.
    """
    from dbdyno.stats.blocks import decide_metric, row_of
    from dbdyno.stats.decide import benjamini_hochberg

    rows: list[LineRow] = []
    found: list[tuple[LineRow, BlockComparison]] = []
    for family in FAMILIES:
        sides = tuple(side[family] for side in lines)
        about = _names_of(sets, family)
        for name in _names(sides):
            row = _row(family, name, about.get(name, {}), sides, scales)
            rows.append(row)
            if row["only_in"] is None:
                compared = _compare(name, sides, blocks, executions, scales, options)
                found += [(row, comparison) for comparison in compared]
    qs = benjamini_hochberg([comparison.p for _, comparison in found])
    for (row, comparison), q in zip(found, qs, strict=True):
        row["metrics"].append(row_of(decide_metric(comparison, q)))
    rows.sort(key=lambda row: (FAMILIES.index(row["family"]), -abs(row["difference_ns"] or 0.0)))
    return rows


def _names(sides: Sides) -> list[str]:
    """Return the names of the lines with the most time in either set."""
    total: dict[str, int] = {}
    for side in sides:
        for name, line in side.items():
            total[name] = max(total.get(name, 0), line.total_ns)
    return sorted(total, key=lambda name: -total[name])[:LINES_MOST]


def _row(
    family: str,
    name: str,
    about: Mapping[str, str | None],
    sides: Sides,
    scales: tuple[float, float],
) -> LineRow:
    told: list[LineSide] = []
    for side, scale in zip(sides, scales, strict=True):
        line = side.get(name)
        total = line.total_ns if line else 0
        told.append(
            {
                "count": line.count if line else 0,
                "total_ns": total,
                "max_ns": line.max_ns if line else None,
                "mean_ns": total / line.count if line and line.count else None,
                "scaled_ns": total * scale,
            }
        )
    known = [at for at, side in enumerate(sides) if name in side]
    return {
        "family": family,
        "name": name,
        "class": about.get("class"),
        "text": about.get("text"),
        "only_in": known[0] if len(known) == 1 else None,
        "sides": told,
        "difference_ns": told[1]["scaled_ns"] - told[0]["scaled_ns"],
        "metrics": [],
    }


def _compare(
    name: str,
    sides: Sides,
    blocks: tuple[Blocks, Blocks],
    executions: tuple[Array, Array],
    scales: tuple[float, float],
    options: ComparisonOptions,
) -> list[BlockComparison]:
    values: list[dict[str, Array]] = []
    for side, cut, executed, scale in zip(sides, blocks, executions, scales, strict=True):
        line = side[name]
        amounts = {"mean": line.mean, "p50": line.p50, "p99": line.p99}
        if cut.unit == "batch":  # the number of waits or calls is fixed, only their length varies
            amounts["per_execution"] = line.mean * line.count * scale
        else:
            amounts["per_execution"] = _ratio(line.time, executed)
            amounts["count_per_s"] = _ratio(line.n, cut.seconds)
            amounts["time_per_s"] = _ratio(line.time, cut.seconds)
        values.append(amounts)
    # The count in a block is uncertain by half an event at its ends.
    fewest = min(float(side[name].n.mean()) for side in sides)
    grain = 0.5 / fewest if fewest > 0 else 0.0
    return [
        judge(
            blocks[0].unit,
            (values[0][metric], values[1][metric]),
            level=options.level,
            threshold=options.threshold,
            metric=metric,
            label=label,
            unit=unit,
            sd_least=grain if metric in RATES else 0.0,
        )
        for metric, label, unit in METRICS
        if metric in values[0] and _counts(values[0][metric]) >= 2 and _counts(values[1][metric]) >= 2
    ]


def judge(
    block: Unit,
    values: tuple[Array, Array],
    *,
    level: float,
    threshold: float,
    metric: str,
    label: str,
    unit: str,
    sd_least: float = 0.0,
) -> BlockComparison:
    """Compare two sets of block values: as pairs if the blocks are pairs, else by Welch's t.

    If the blocks are batches of one trace, they must be in time order.
    """
    from dbdyno.stats.blocks import compare_blocks
    from dbdyno.stats.unpaired import compare_unpaired

    more = {"level": level, "threshold": threshold, "metric": metric, "label": label, "unit": unit}
    if block == "pair":
        return compare_blocks(*values, higher_is_better=False, resamples=0, **more)  # type: ignore[arg-type]
    in_order = block == "batch"
    return compare_unpaired(*values, higher_is_better=False, in_order=in_order, sd_least=sd_least, **more)  # type: ignore[arg-type]


def _ratio(values: Array, by: Array) -> Array:
    import numpy as np

    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(by > 0, values / by, math.nan)


def _counts(values: Array) -> int:
    import numpy as np

    return int(np.sum(np.isfinite(values) & (values > 0)))


def _names_of(sets: tuple[Traces, Traces], family: str) -> dict[str, dict[str, str | None]]:
    """Return the class of each event, or the text of each statement, in a family of lines."""
    query = {
        "event": "select event as line, any_value(class) as class from waits group by event",
        "call": "select distinct kind as line from calls",
        "statement": "select key as line, any_value(text) as text from matched group by key",
    }[family]
    return {row["line"]: row for traces in reversed(sets) for row in traces.rows(query)}
