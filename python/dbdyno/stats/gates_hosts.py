"""Gates for a load from many hosts: none gets slower answers than the others, and all run a slice at the same time."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from dbdyno.stats.gates import Gate
from dbdyno.stats.wording import percent

LATER_MOST = 1.25
"""Largest ratio of a host's mean time to the median of all hosts at which the gate passes."""
BLOCKS_LEAST = 0.8
"""Minimum share of blocks in which a host is slower by a tenth; one bad block is no sign of a slower network."""
CUT_MOST = 0.1

Means = Mapping[str, Mapping[str, float]]
"""Mean times of one block: by host, then by arm."""


def hosts_alike(blocks: Sequence[Means]) -> Gate:
    """Return the gate that compares the mean times of hosts within blocks and arms."""
    ratios: dict[str, list[float]] = {}
    for block in blocks:
        for host, own in _relative_times(block).items():
            ratios.setdefault(host, []).append(own)
    late = {host: statistics.median(own) for host, own in ratios.items() if _is_late(own)}
    name, count = "all hosts get answers equally fast", len(ratios)
    if not late:
        return Gate(name, True, f"none of {count} hosts got answers 25 % later than the others", code="hosts")
    worst = max(late, key=lambda host: late[host])
    more = f", and {len(late) - 1} more" if len(late) > 1 else ""
    return Gate(
        name,
        False,
        f"host {worst} gets its answers {percent(late[worst] - 1)} % later than the median of {count} hosts{more}",
        "compare its network and processors with those of the other hosts, or leave it out",
        code="hosts",
    )


def host_start_gate(cut: int, transactions: int) -> Gate:
    """Return the gate for operations that began before all hosts were in their slice."""
    share = cut / transactions if transactions else 0.0
    return Gate(
        "all hosts are in a slice together",
        share <= CUT_MOST,
        f"{percent(share)} % of {transactions:,} transactions began before all hosts had started, and do not count",
        "use longer slices, or hosts with less other work",
        code="host clocks",
    )


def _relative_times(block: Means) -> dict[str, float]:
    """Return each host's mean time relative to the median of all hosts, averaged over the arms."""
    found: dict[str, list[float]] = {}
    for arm in dict.fromkeys(arm for own in block.values() for arm in own):
        middle = statistics.median(own[arm] for own in block.values() if arm in own)
        for host, own in block.items():
            if arm in own and middle > 0:
                found.setdefault(host, []).append(own[arm] / middle)
    return {host: statistics.fmean(own) for host, own in found.items()}


def _is_late(ratios: Sequence[float]) -> bool:
    often = sum(ratio > 1.1 for ratio in ratios) >= BLOCKS_LEAST * len(ratios)
    return often and statistics.median(ratios) > LATER_MOST
