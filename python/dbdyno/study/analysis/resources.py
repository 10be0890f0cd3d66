"""What a transaction of each arm used: CPU in user and system mode, calls to the system, bytes from the storage.

Benches that can see it add it up per arm in the report of a block (`COSTS`): programs that were started, or the
processes of the server that serve the load's sessions. What settles after a switch is in both the sums and the
count of transactions. A number that a bench does not see is null.
"""

from __future__ import annotations

from typing import Any

from dbdyno.study.analysis.measures import Measures

COSTS = ("user_ns", "system_ns", "read_calls", "write_calls", "read_bytes", "write_bytes")
"""Names in a block's report, per arm, of what its transactions used."""
NEARLY_EQUAL = 1.02


def of_run(measures: Measures) -> list[dict[str, Any]]:
    """Per arm what a transaction used on average over the blocks that count; empty where no bench saw it."""
    rows = []
    for arm in measures.arms:
        reports = [own for block in arm.blocks for own in block.report["arms"] if own["arm"] == arm.number]
        seen = [own for own in reports if "user_ns" in own]
        count = sum(own["transactions"] for own in seen)
        if count:
            rows.append({"arm": arm.number, **{name: _each(seen, name, count) for name in COSTS}})
    return rows


def sentence(model: dict[str, Any], operation: str = "transaction") -> str:
    """The arms whose transactions take the least and the most CPU; empty where fewer than two are known."""
    from dbdyno.stats.words import duration

    rows = model["resources"]
    if len(rows) < 2:
        return ""
    ranked = sorted(rows, key=_cpu)

    def told(row: dict[str, Any]) -> str:
        share = f"{100 * row['system_ns'] / _cpu(row):.0f} % of it in the system" if _cpu(row) else "none"
        return f"{duration(_cpu(row))} with {model['arms'][row['arm']]['name']} ({share})"

    least, most = ranked[0], ranked[-1]
    if _cpu(most) <= NEARLY_EQUAL * _cpu(least):
        return f"CPU of a {operation}: {told(least)}, and as much with the others."
    return f"CPU of a {operation}: {told(least)}, {told(most)}."


def _cpu(row: dict[str, Any]) -> float:
    return float(row["user_ns"] + row["system_ns"])


def _each(reports: list[dict[str, Any]], name: str, count: int) -> float | None:
    known = [own[name] for own in reports if name in own]
    return sum(known) / count if known else None
