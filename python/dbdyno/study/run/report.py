"""Processing of load reports: joining the reports of a block, rates to show, and arms that always fail."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from dbdyno.base.json_types import JsonObject

if TYPE_CHECKING:
    from dbdyno.study.plan.plan import Plan
    from dbdyno.study.plan.schedule import Turn

SHOWN_MOST = 4
"""Largest number of arms whose rates are shown."""


def join_reports(reports: Sequence[JsonObject]) -> dict[str, object]:
    """Return the reports of a block's pieces as one report, with their sums and the largest lag."""
    whole: JsonObject = {}
    apart = ("arms", "lines", "started_ns", "ended_ns")
    for report in reports:
        _add(whole, {key: value for key, value in report.items() if key not in apart})
    if any(report.get("lines") for report in reports):
        whole["lines"] = _by_arm([line for report in reports for line in report["lines"]])
    return {**whole, "arms": _by_arm([arm for report in reports for arm in report["arms"]])} if reports else {}


def _by_arm(rows: Sequence[JsonObject]) -> list[dict[str, object]]:
    arms: dict[int, JsonObject] = {}
    for row in rows:
        _add(arms.setdefault(row["arm"], {"arm": row["arm"]}), {k: v for k, v in row.items() if k != "arm"})
    return list(arms.values())


def _add(known: JsonObject, more: JsonObject) -> None:
    for key, value in more.items():
        if key not in known or known[key] is None:
            known[key] = value
        elif key.endswith("_max_ns"):
            known[key] = max(known[key], value)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            known[key] += value


def rates(plan: Plan, report: JsonObject, turns: Sequence[Turn]) -> dict[str, float]:
    """Return successful transactions per second by arm.

    Rates refer to the time in which the arm's sessions were busy or, in an open loop, in which arrivals were due. The
    result is empty if there are more arms than fit in a line.
    """
    found = {}
    for arm in report.get("arms", []):
        own = plan.arms[arm["arm"]]
        done = arm["transactions"] - arm.get("errors", 0)
        due_ns = sum(turn.length_ns or 0 for turn in turns if turn.arm == arm["arm"])
        if plan.rate_of(own) and due_ns:
            found[own.name] = done * 1e9 / due_ns
        elif arm["busy_ns"]:
            found[own.name] = done * plan.sessions_of(own) * 1e9 / arm["busy_ns"]
    return found if len(found) <= SHOWN_MOST else {}


def started_arms(report: JsonObject) -> set[int]:
    """Return the arms in which at least one transaction was started."""
    return {arm["arm"] for arm in report.get("arms", []) if arm["transactions"]}


def always_failing_arms(report: JsonObject) -> Iterator[tuple[int, int, str]]:
    """Yield the arms in which every transaction failed: arm, number of transactions, first error message."""
    for arm in report.get("arms", []):
        tried = arm["transactions"]
        if tried and arm.get("errors") == tried:
            yield arm["arm"], tried, arm.get("first_error") or "?"
