"""Check of whether the operations that a client reports fill the time that its sessions had.

In a closed loop a session begins a transaction when the previous one ended, so its transactions fill all of its time. A
client that reports half of each latency leaves gaps, or seems to be done long before it says so; dbdyno takes the times
of the request and of the answer from its own clock. Time that a client spends between transactions is not part of any
latency either, so the error mentions this cause as well.

A whole block is judged, since a busy machine may delay any single slice; blocks that are too short for that are judged
together until they are long enough, and a client that was doubted before is judged after a shorter time. The time after
a failed transaction counts as used: the session rolls back or reconnects. In a client with one thread the sessions take
turns: if no two operations ever overlap, each of them counts for all sessions. Open loops wait for due times and are
not judged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dbdyno.bench.clients.stream import TRANSACTION

if TYPE_CHECKING:
    from dbdyno.bench.clients.reader import Records, SliceRequest
    from dbdyno.bench.clients.stream import Record

LEAST_SHARE = 0.75
"""Minimum share of the time that operations must fill for a client to be believed.

On a machine at load 8 the built-in clients reported 94 to 100 %.
"""
TRANSIT_NS = 1_000_000_000
"""Time that a slice may need to reach the client and return on a busy machine (for example while R compiles its loop).
"""
TRANSIT_PER_RECORD_NS = 5_000
"""Additional time allowed for each record of a slice."""
LEAST_NS = 400_000_000
"""Minimum time to be measured before a client is judged.

On a machine at load 15 an honest client reported only half of a 60 ms block, because its threads woke up only when
slices were over.
"""
SLICE_LEAST_NS = 50_000_000
"""Minimum slice length for a block to be judged together with other blocks.

In shorter slices the threads of an honest client wake up late each time.
"""
LEAST_AGAIN_NS = 100_000_000
"""Minimum time to be measured before a previously doubted client is judged again, over all of that time."""


class TimeCoverage:
    """Sums over slices of the time available and the time reported, by two measures.

    `sessions_ns` compares each session's operations with the slice's length; `wall_ns` compares the time in which any
    session worked with the time from the request for the slice to the arrival of its end record. Both hold [available,
    reported].
    """

    def __init__(self) -> None:
        self.sessions_ns = [0, 0]
        self.wall_ns = [0, 0]
        self.shortest_ns = SLICE_LEAST_NS

    def add(self, records: Records, end: Record, request: SliceRequest, length_ns: int | None) -> None:
        """Add a slice of a closed loop.

        Args:
            records: The slice's operations.
            end: The client's record of the slice's end.
            request: What was requested, and when.
            length_ns: Length of the slice, or None if it was limited by a number of transactions.
        """
        whole = records[records["kind"] == TRANSACTION]
        whole = whole[np.argsort(whole["session"], kind="stable")]
        held = _held_ns(whole, end.started_ns + end.elapsed_ns)
        any_ns, at_once = _covered_ns(whole["started_ns"], held)
        if length_ns is not None:
            self.shortest_ns = min(self.shortest_ns, length_ns)
            each = (
                np.bincount(whole["session"], held, request.sessions) if at_once else np.full(request.sessions, any_ns)
            )
            _book(self.sessions_ns, length_ns * request.sessions, int(np.minimum(each, length_ns).sum()))
        way_ns = TRANSIT_NS + TRANSIT_PER_RECORD_NS * len(records)
        wall_ns = max(0, request.heard_ns - request.sent_ns - way_ns)
        _book(self.wall_ns, wall_ns, min(any_ns, wall_ns))

    def share(self, least_ns: int = LEAST_NS) -> float | None:
        """Return the share of the time that the client reported, or None if fewer than `least_ns` were measured.

        Of the two measures, by sessions and by the clock, the smaller counts.
        """
        shares = [told / had for had, told in (self.sessions_ns, self.wall_ns) if had >= least_ns]
        return min(shares) if shares else None

    @property
    def can_continue(self) -> bool:
        """Return True if these sums may be continued with later blocks."""
        return self.shortest_ns >= SLICE_LEAST_NS

    def problem(self, least_ns: int = LEAST_NS) -> str | None:
        """Return why the reported times are not believed, or None if they are."""
        share = self.share(least_ns)
        if share is None or share >= LEAST_SHARE:
            return None
        return (
            f"reports operations for {share:.0%} of the time of its sessions (expected: at least {LEAST_SHARE:.0%}): "
            f"its times are too short, or it does other work between transactions"
        )


def busy_ns(records: Records, began_ns: int, sessions: int) -> int:
    """Return the sum over sessions of the end of the last transaction minus the slice's start, in ns."""
    ends = np.zeros(sessions, np.int64)
    np.maximum.at(ends, records["session"], records["started_ns"] + records["elapsed_ns"])
    return int((ends[ends > 0] - began_ns).sum())


def _book(sums: list[int], had_ns: int, told_ns: int) -> None:
    sums[0] += had_ns
    sums[1] += told_ns


def _held_ns(records: Records, end_ns: int) -> NDArray[np.int64]:
    """Return how long each transaction occupied its session, in ns; a failed one occupies it until the next begins.

    Rows must be sorted by session.
    """
    after = np.append(records["started_ns"][1:], end_ns)
    last = np.append(records["session"][1:] != records["session"][:-1], np.True_)[: len(records)]
    until = np.where(last, end_ns, after[: len(records)])
    kept = np.maximum(until - records["started_ns"], records["elapsed_ns"])
    held: NDArray[np.int64] = np.where(records["code"] != b"", kept, records["elapsed_ns"])
    return held


def _covered_ns(started: NDArray[np.int64], held: NDArray[np.int64]) -> tuple[int, bool]:
    """Return for how many ns at least one operation ran, and whether operations ever overlapped."""
    if not len(started):
        return 0, False
    order = np.argsort(started, kind="stable")
    begins, ends = started[order], np.maximum.accumulate((started + held)[order])
    before = np.append(begins[0], ends[:-1])
    covered = np.maximum(0, ends - np.maximum(begins, before))
    return int(covered.sum()), bool((begins[1:] < ends[:-1]).any())
