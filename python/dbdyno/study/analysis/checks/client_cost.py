"""CPU of the clients per transaction, for runs in which an arm names an external client.

The clients' CPU time is part of every latency; on the server's own host it is not available to the server.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from dbdyno.base.json_types import TableRow

if TYPE_CHECKING:
    from dbdyno.evidence.run import Block
    from dbdyno.study.analysis.measured.measures import ArmMeasures, Measures

LISTED_MOST = 10


def sentence(measures: Measures) -> str | None:
    """Return the client CPU per transaction by arm as a sentence.

    The result is None if no arm has an external client, or the blocks do not report it.
    """
    from dbdyno.stats.wording import duration

    parts = [f"{name} {duration(each_ns)}" for name, each_ns in _each_ns(measures)]
    if not parts:
        return None
    more = f"; and {len(parts) - LISTED_MOST} more arms" if len(parts) > LISTED_MOST else ""
    return f"CPU of the client for a transaction: {'; '.join(parts[:LISTED_MOST])}{more}"


def _each_ns(measures: Measures) -> Iterator[tuple[str, float]]:
    """Yield each arm with its client CPU per transaction [ns]; yield nothing if no arm has an external client.

    If exactly one arm has dbdyno's own client, the remaining client CPU of a block belongs to that arm.
    """
    ours = [arm for arm in measures.arms if not any("client_cpu_ns" in own for own in _reports_of(arm))]
    if len(ours) == len(measures.arms):
        return
    for arm in measures.arms:
        count = sum(own["transactions"] for own in _reports_of(arm))
        if arm not in ours:
            used = sum(own.get("client_cpu_ns", 0) for own in _reports_of(arm))
        elif len(ours) == 1:
            used = sum(_left_ns(block) for block in arm.blocks)
        else:
            continue
        if count:
            yield arm.label, used / count


def _reports_of(arm: ArmMeasures) -> Iterator[TableRow]:
    """Return the arm's entries in the reports of its blocks."""
    return (own for block in arm.blocks for own in block.report["arms"] if own["arm"] == arm.number)


def _left_ns(block: Block) -> int:
    """Return the client CPU time of a block [ns] minus that of external clients."""
    clients: int = sum(own.get("client_cpu_ns", 0) for own in block.report["arms"])
    return max(0, int(block.report.get("cpu_ns", 0)) - clients)
