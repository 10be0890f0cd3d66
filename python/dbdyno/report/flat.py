"""The analysis as flat rows, for CSV, JSON lines or a data frame: raw numbers, no formatting."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dbdyno.report import reading

METRIC_COLUMNS = (
    "metric", "unit", "base_value", "value", "ratio", "low", "high", "boot_low", "boot_high",
    "level", "p", "q",
    "blocks", "decision", "words", "smallest_visible", "blocks_needed",
)  # fmt: skip
BIN_COLUMNS = ("redo_bytes", "median_ns", "low_ns", "high_ns", "n")


def rows(analysis: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One row per arm and metric; of a curve one row per bin. All have the same keys, in order.

    Raises:
        ReportError: as `reading.read`.
    """
    safe = reading.read(analysis)
    head = {"run": reading.dig(safe, "run", "id"), "kind": safe["kind"]}
    names = reading.arm_names(safe)
    bins = reading.entries(safe, "figures", "curve", "bins")
    if safe["kind"] == "curve" and bins:
        return [head | {name: entry.get(name) for name in BIN_COLUMNS} for entry in bins]
    return [
        head
        | {
            "arm": reading.arm_name(names, row.get("arm")),
            "baseline": reading.arm_name(names, row.get("baseline")),
        }
        | {name: row.get(name) for name in METRIC_COLUMNS}
        for row in reading.entries(safe, "metrics")
    ]
