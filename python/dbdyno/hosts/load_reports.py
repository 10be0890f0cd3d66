"""Merging of load reports: over the slices of one host, and over all hosts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

if TYPE_CHECKING:
    from dbdyno.base.core_types import LoadReport
    from dbdyno.base.json_types import JsonObject


class HostSlice(NamedTuple):
    """A slice that a host is to run or has run; times are on the host's clock [ns since the UNIX epoch]."""

    arm: int
    slice: int
    started_ns: int
    ended_ns: int


class HostReport(NamedTuple):
    """Report of one host's share of a series of slices: the slices that it ran, and one merged report."""

    slices: list[HostSlice]
    report: LoadReport


def empty_report(now_ns: int) -> LoadReport:
    """Return the report of a load that has run nothing."""
    times: JsonObject = {"started_ns": now_ns, "ended_ns": now_ns, "reconnects": 0, "cpu_ns": 0, "threads": 0}
    return cast("LoadReport", {**times, "interrupted": False, "arms": [], "error_codes": [], "lines": []})


def merge_reports(reports: Sequence[LoadReport], *, beside: bool) -> LoadReport:
    """Merge several reports into one: values are added; for names that contain `max`, the largest value is used.

    Args:
        reports: At least one report.
        beside: True if they ran at the same time, so that their threads add up.
    """
    whole = cast("Any", {**reports[0], "arms": [], "lines": []})
    for key in ("arms", "lines"):
        rows: dict[int, JsonObject] = {}
        for report in cast("Sequence[Any]", reports):
            for row in report[key]:
                _add(rows.setdefault(row["arm"], {"arm": row["arm"]}), row)
        whole[key] = list(rows.values())
    whole["started_ns"] = min(report["started_ns"] for report in reports)
    whole["ended_ns"] = max(report["ended_ns"] for report in reports)
    whole["reconnects"] = sum(report["reconnects"] for report in reports)
    whole["cpu_ns"] = sum(report["cpu_ns"] for report in reports)
    whole["threads"] = (sum if beside else max)(report["threads"] for report in reports)
    whole["interrupted"] = any(report["interrupted"] for report in reports)
    whole["error_codes"] = list(dict.fromkeys(code for report in reports for code in report["error_codes"]))
    return cast("LoadReport", whole)


def _add(known: JsonObject, row: JsonObject) -> None:
    for key, value in row.items():
        if key == "arm":
            continue
        if known.get(key) is None:
            known[key] = value
        elif "max" in key:
            known[key] = max(known[key], value)
        elif isinstance(value, int | float):
            known[key] += value
