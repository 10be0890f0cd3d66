"""What a load reports of a block: several reports as one, rates for the progress, an arm of which nothing went well."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dbdyno.study.plan.plan import Plan
    from dbdyno.study.plan.schedule import Turn

SHOWN_MOST = 4
"""With more arms than this their rates are not shown."""


def joined(reports: Sequence[dict[str, Any]]) -> dict[str, object]:
    """One report of a block's pieces: sums, and the largest lag."""
    whole: dict[str, Any] = {}
    apart = ("arms", "lines", "started_ns", "ended_ns")
    for report in reports:
        _add(whole, {key: value for key, value in report.items() if key not in apart})
    if any(report.get("lines") for report in reports):
        whole["lines"] = _by_arm([line for report in reports for line in report["lines"]])
    return {**whole, "arms": _by_arm([arm for report in reports for arm in report["arms"]])} if reports else {}


def _by_arm(rows: Sequence[dict[str, Any]]) -> list[dict[str, object]]:
    arms: dict[int, dict[str, Any]] = {}
    for row in rows:
        _add(arms.setdefault(row["arm"], {"arm": row["arm"]}), {k: v for k, v in row.items() if k != "arm"})
    return list(arms.values())


def _add(known: dict[str, Any], more: dict[str, Any]) -> None:
    for key, value in more.items():
        if key not in known or known[key] is None:
            known[key] = value
        elif key.endswith("_max_ns"):
            known[key] = max(known[key], value)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            known[key] += value


def rates(plan: Plan, report: dict[str, Any], turns: Sequence[Turn]) -> dict[str, float]:
    """Successful transactions per second by arm: of the time that its sessions were busy, in an open loop of the
    time in which arrivals were due. Nothing for more arms than a line can show."""
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


def begun(report: dict[str, Any]) -> set[int]:
    """The arms of which transactions were begun."""
    return {arm["arm"] for arm in report.get("arms", []) if arm["transactions"]}


def hopeless(report: dict[str, Any]) -> Iterator[tuple[int, int, str]]:
    """The arms of which nothing went well: number, how many were tried, what was said first."""
    for arm in report.get("arms", []):
        tried = arm["transactions"]
        if tried and arm.get("errors") == tried:
            yield arm["arm"], tried, arm.get("first_error") or "?"
