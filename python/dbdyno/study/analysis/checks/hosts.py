"""Checks of a load from many hosts, based on the record of each block."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dbdyno.evidence.run import Block
    from dbdyno.stats.gates import Gate


def gates(blocks: Sequence[Block]) -> Iterator[Gate]:
    """Yield the gates of the hosts; none for a load from this machine only."""
    from dbdyno.stats.gates_hosts import host_start_gate, hosts_alike

    found = [block.report["hosts"] for block in blocks if block.report.get("hosts")]
    if not found:
        return
    yield hosts_alike([{row["host"]: row["mean_ns"] for row in rows} for rows in found])
    rows = [row for own in found for row in own]
    yield host_start_gate(sum(row["cut"] for row in rows), sum(row["transactions"] for row in rows))
