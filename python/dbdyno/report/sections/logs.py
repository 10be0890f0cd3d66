"""The log writers of a run on this host: each path's writes. The race has a section
of its own."""

from __future__ import annotations

from typing import Any

from dbdyno.pages import format as fmt
from dbdyno.pages import reading
from dbdyno.pages.reading import Analysis
from dbdyno.report.sections import base

COLUMNS = ("writes", "mean", "p50", "p99", "p99.9", "slowest", "outliers", "behind")


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
    return {
        "columns": COLUMNS,
        "paths": paths,
        "notes": [_backlog(log, analysis) for log in logs if log.get("race")],
    }


def _backlog(log: dict[str, Any], analysis: Analysis) -> str:
    """What happened when a path was too far behind."""
    name = base.arm(analysis, log.get("arm"))["name"]
    race = log["race"]
    busy, held = fmt.count(race.get("skipped_busy")), fmt.count(race.get("held_back"))
    return (
        f"{name}: {busy} writes passed the second path by, which was too far behind (busy); {held} "
        "were held back because the first path was."
    )


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
            *(fmt.duration(quantiles.get(q)) for q in ("p50", "p99", "p99.9")),
            fmt.duration(path.get("max_ns")),
            fmt.count(path.get("outliers")),
            fmt.quantity(behind, "bytes") if behind else fmt.NONE,
        ],
    }


SECTION = base.Section("logs", "The log and its paths", view)
