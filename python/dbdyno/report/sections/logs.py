"""The log writers of a run on this host: each path's writes, and the race between two."""

from __future__ import annotations

from typing import Any

from dbdyno.report import format as fmt
from dbdyno.report import reading
from dbdyno.report.reading import Analysis
from dbdyno.report.sections import base

COLUMNS = ("writes", "mean", "p50", "p90", "p99", "p99.9", "slowest", "outliers", "behind at most")
_RACE = (
    ("races", "races"),
    ("first", "first path first"),
    ("second", "second path first"),
    ("skipped_busy", "second path skipped (busy)"),
    ("held_back", "held back for the first path"),
    ("prevented_outliers", "outliers prevented"),
    ("second_only_outliers", "outliers of the second path alone"),
    ("actual_outliers", "outliers not prevented"),
)


def view(analysis: Analysis) -> base.View | None:
    """One table of paths over all arms and one of races, or None without logs."""
    logs = reading.entries(analysis, "logs")
    if not logs:
        return None
    paths = [
        {**base.arm(analysis, log.get("arm")), **_path(path)}
        for log in logs
        for path in [*reading.entries(log, "paths"), _whole(log)]
    ]
    races = [
        {
            **base.arm(analysis, log.get("arm")),
            "rows": [_share(log["race"], key, label) for key, label in _RACE],
        }
        for log in logs
        if log.get("race")
    ]
    return {"columns": COLUMNS, "paths": paths, "races": races}


def _whole(log: dict[str, Any]) -> dict[str, Any]:
    return {"path": "log writer", "file": "", **(log.get("write") or {})}


def _path(path: dict[str, Any]) -> base.View:
    quantiles = reading.dig(path, "quantiles_ns") or {}
    behind = path.get("farthest_behind_bytes")
    return {
        "path": fmt.line(path.get("path") or ""),
        "file": fmt.line(path.get("file") or ""),
        "cells": [
            fmt.count(path.get("writes")),
            fmt.duration(path.get("mean_ns")),
            *(fmt.duration(quantiles.get(q)) for q in ("p50", "p90", "p99", "p99.9")),
            fmt.duration(path.get("max_ns")),
            fmt.count(path.get("outliers")),
            fmt.quantity(behind, "bytes") if behind else fmt.NONE,
        ],
    }


def _share(race: dict[str, Any], key: str, label: str) -> base.View:
    value, all_races = fmt.number(race.get(key)), fmt.number(race.get("races"))
    share = value / all_races if value is not None and all_races and key != "races" else None
    return {"label": label, "value": fmt.count(value), "share": fmt.percent(share)}


SECTION = base.Section("logs", "The log and its paths", view)
