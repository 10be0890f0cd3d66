"""CSV rows of a run: raw numbers, one row per arm and metric, bin, point, property or line."""

from __future__ import annotations

from dbdyno.base.json_types import TableRow
from dbdyno.pages import reading
from dbdyno.pages.reading import Analysis

METRIC_COLUMNS = (
    "metric",
    "unit",
    "base_value",
    "value",
    "ratio",
    "low",
    "high",
    "boot_low",
    "boot_high",
    "level",
    "p",
    "q",
    "blocks",
    "decision",
    "words",
    "smallest_visible",
    "blocks_needed",
    "tell_low",
    "tell_high",
)
CORRELATION_COLUMNS = (
    "x",
    "n",
    "spearman",
    "spearman_log10_p",
    "q",
    "pearson",
    "low",
    "high",
    "pearson_log10_p",
)
SWEEP_COLUMNS = (
    "x",
    "per_s",
    "per_s_low",
    "per_s_high",
    "mean_ns",
    "mean_low_ns",
    "mean_high_ns",
)
BIN_COLUMNS = ("redo_bytes", "median_ns", "low_ns", "high_ns", "n")


def rows(safe: Analysis) -> list[TableRow]:
    """Return one row per arm and metric, all with the same keys in the same order.

    Other kinds of runs have other rows: curves have one per bin, sweeps one per point, correlations one per property,
    and comparisons of traces one per metric of each line.
    """
    head = {"run": reading.dig(safe, "run", "id"), "kind": safe["kind"]}
    names = reading.arm_names(safe)
    if safe["kind"] == "correlation":
        found = reading.entries(safe, "correlation", "rows")
        return [head | {name: row.get(name) for name in CORRELATION_COLUMNS} for row in found]
    if safe["kind"] == "traces":
        return [head | row for row in _lines(safe)]
    bins = [
        {"arm": reading.arm_name(names, curve.get("arm"))} | {name: entry.get(name) for name in BIN_COLUMNS}
        for curve in reading.curves(safe)
        for entry in reading.entries(curve, "bins")
    ]
    if safe["kind"] == "curve" and bins:
        return [head | row for row in bins]
    if safe["kind"] == "sweep":
        return [head | row for row in _sweep(safe)]
    return [
        head
        | {
            "arm": reading.arm_name(names, row.get("arm")),
            "baseline": reading.arm_name(names, row.get("baseline")),
        }
        | {name: row.get(name) for name in METRIC_COLUMNS}
        for row in reading.entries(safe, "metrics")
    ]


def _sweep(safe: Analysis) -> list[dict[str, object]]:
    """Return one row per curve and point of a sweep."""
    axis = str(reading.dig(safe, "figures", "sweep", "x_label") or "x")
    return [
        {"curve": curve.get("name"), "axis": axis} | {name: point.get(name) for name in SWEEP_COLUMNS}
        for curve in reading.entries(safe, "figures", "sweep", "curves")
        for point in reading.entries(curve, "points")
    ]


def _lines(safe: Analysis) -> list[TableRow]:
    """Return the metrics of two sets of traces as a whole, then those of each line."""
    whole = {"family": "whole", "name": "", "only_in": None}
    sides = ("base_count", "count", "base_total_ns", "total_ns")
    found = [
        whole | dict.fromkeys(sides) | {name: row.get(name) for name in METRIC_COLUMNS}
        for row in reading.entries(safe, "metrics")
    ]
    for line in reading.entries(safe, "lines"):
        one, two = line.get("sides") or [{}, {}]
        figures = (one.get("count"), two.get("count"), one.get("total_ns"), two.get("total_ns"))
        about = {name: line.get(name) for name in whole} | dict(zip(sides, figures, strict=True))
        for row in line.get("metrics") or [{}]:
            found.append(about | {name: row.get(name) for name in METRIC_COLUMNS})
    return found
