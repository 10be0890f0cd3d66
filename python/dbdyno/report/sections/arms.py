"""The arms: what each one is, what it changed, what it did."""

from __future__ import annotations

from typing import Any

from dbdyno.pages import format as fmt
from dbdyno.pages import reading
from dbdyno.pages.reading import Analysis
from dbdyno.report.sections import base

COLUMNS = (
    "sessions",
    "operations",
    "errors",
    "per second",
    "mean",
    "std dev",
    "p50",
    "p90",
    "p99",
    "p99.9",
    "slowest",
)

OVER = "over all operations (per second: the mean of the blocks)"
"""What the numbers of an arm are of; those of the metrics are means of the blocks' own."""


def view(analysis: Analysis) -> base.View | None:
    """One row per arm, or None without arms. Numbers that no arm has are left out."""
    arms = reading.entries(analysis, "arms")
    if not arms:
        return None
    table = [cells(arm) for arm in arms]
    kept = [at for at in range(len(COLUMNS)) if any(row[at] != fmt.NONE for row in table)]
    return {
        "over": OVER,
        "columns": [COLUMNS[at] for at in kept],
        "rows": [
            {
                **base.arm(analysis, arm.get("index", at)),
                "baseline": bool(arm.get("baseline")) and len(arms) > 1,
                "description": fmt.line(arm.get("description") or ""),
                "changes": [
                    f"{fmt.line(name)} = {fmt.line(value)}"
                    for name, value in (reading.dig(arm, "changes") or {}).items()
                ],
                "cells": [table[at][column] for column in kept],
                "notes": notes(arm),
            }
            for at, arm in enumerate(arms)
        ],
    }


def cells(arm: dict[str, Any]) -> list[str]:
    """The numbers of an arm as text, in the order of `COLUMNS`."""
    quantiles = reading.dig(arm, "quantiles_ns") or {}
    return [
        fmt.count(arm.get("sessions")),
        fmt.count(arm.get("ops")),
        fmt.count(arm.get("errors")),
        fmt.significant(arm.get("throughput_per_s"), 4),
        fmt.duration(arm.get("mean_ns")),
        fmt.duration(arm.get("sd_ns")),
        *(fmt.duration(quantiles.get(name)) for name in ("p50", "p90", "p99", "p99.9")),
        fmt.duration(arm.get("max_ns")),
    ]


def notes(arm: dict[str, Any]) -> list[str]:
    """What else happened in an arm: errors by code, repetitions, arrivals given up."""
    codes = reading.dig(arm, "error_codes") or {}
    found = [f"{fmt.count(number)} × error {fmt.line(code)}" for code, number in codes.items()]
    if fmt.number(arm.get("retries")):
        found.append(f"{fmt.count(arm['retries'])} retries")
    if fmt.number(arm.get("skipped")):
        found.append(f"{fmt.count(arm['skipped'])} arrivals skipped")
    return found


SECTION = base.Section("arms", "The arms", view)
