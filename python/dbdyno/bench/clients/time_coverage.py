"""Whether the operations that a client tells fill the time that its sessions had.

In a closed loop a session begins a transaction when the one before it ended, so its transactions are all of its time. A
client that tells half of each latency leaves gaps, or seems to be done long before it says so; our own clock knows when
it was asked and when it was heard. What it does between transactions is in no latency either, so that is named, too.

Judged is a whole block, since a busy machine may hold any one slice up; blocks that are too short for that are judged
together, until they are enough, and a client that was doubted is judged by less. What follows a failed transaction
counts as used: the session rolls back or connects again. A client of one thread has its sessions take turns: where no
two operations are ever at once, any of them counts for all sessions. Open loops wait for due times and are not judged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dbdyno.bench.clients.stream import TRANSACTION

if TYPE_CHECKING:
    from dbdyno.bench.clients.reader import Asked, Records
    from dbdyno.bench.clients.stream import Record

LEAST_SHARE = 0.75
"""Of the time; below it a client is not believed. On a machine at load 8 the built-in clients told 94 to 100 %."""
ON_THE_WAY_NS = 1_000_000_000
"""What a slice may take on its way to the client and back, on a busy machine: R compiles its loop meanwhile,"""
ON_THE_WAY_EACH_NS = 5_000
"""and each of its records."""
LEAST_NS = 400_000_000
"""Below this there is too little to judge by: of a block of 60 ms on a machine at load 15 an honest client told half,
for its threads woke up when slices were over."""
SLICE_LEAST_NS = 50_000_000
"""Shorter slices say nothing of a block's neighbours: there the threads of an honest client wake up late each time."""
LEAST_AGAIN_NS = 100_000_000
"""The same of a client that was doubted: it is by now that it has to tell all of its time."""


class Accounted:
    """Sums over slices, by two measures: each session against the slice's length, and what any session was at against
    the time from asking for the slice to hearing of its end."""

    def __init__(self) -> None:
        self.sessions_ns = [0, 0]
        self.wall_ns = [0, 0]
        self.shortest_ns = SLICE_LEAST_NS

    def add(self, records: Records, end: Record, asked: Asked, length_ns: int | None) -> None:
        """A slice of a closed loop."""
        whole = records[records["kind"] == TRANSACTION]
        whole = whole[np.argsort(whole["session"], kind="stable")]
        held = _held_ns(whole, end.started_ns + end.elapsed_ns)
        any_ns, at_once = _covered_ns(whole["started_ns"], held)
        if length_ns is not None:
            self.shortest_ns = min(self.shortest_ns, length_ns)
            each = np.bincount(whole["session"], held, asked.sessions) if at_once else np.full(asked.sessions, any_ns)
            _book(self.sessions_ns, length_ns * asked.sessions, int(np.minimum(each, length_ns).sum()))
        way_ns = ON_THE_WAY_NS + ON_THE_WAY_EACH_NS * len(records)
        wall_ns = max(0, asked.heard_ns - asked.sent_ns - way_ns)
        _book(self.wall_ns, wall_ns, min(any_ns, wall_ns))

    def share(self, least_ns: int = LEAST_NS) -> float | None:
        """The smaller share of the two; None where less than `least_ns` was seen."""
        shares = [told / had for had, told in (self.sessions_ns, self.wall_ns) if had >= least_ns]
        return min(shares) if shares else None

    @property
    def lasts(self) -> bool:
        """Whether it says something of the blocks that follow, too."""
        return self.shortest_ns >= SLICE_LEAST_NS

    def doubt(self, least_ns: int = LEAST_NS) -> str | None:
        """Why the times are not believed; None where they are."""
        share = self.share(least_ns)
        if share is None or share >= LEAST_SHARE:
            return None
        return (
            f"tells operations for {share:.0%} of the time that its sessions had (at least {LEAST_SHARE:.0%} are"
            " expected): its times are too short, or it does other things between transactions"
        )


def busy_ns(whole: Records, began_ns: int, sessions: int) -> int:
    """Sum over sessions: end of its last transaction minus the slice's start."""
    ends = np.zeros(sessions, np.int64)
    np.maximum.at(ends, whole["session"], whole["started_ns"] + whole["elapsed_ns"])
    return int((ends[ends > 0] - began_ns).sum())


def _book(sums: list[int], had_ns: int, told_ns: int) -> None:
    sums[0] += had_ns
    sums[1] += told_ns


def _held_ns(whole: Records, end_ns: int) -> NDArray[np.int64]:
    """How long each transaction held its session: until the next one where it failed. Rows are in order of session."""
    after = np.append(whole["started_ns"][1:], end_ns)
    last = np.append(whole["session"][1:] != whole["session"][:-1], np.True_)[: len(whole)]
    until = np.where(last, end_ns, after[: len(whole)])
    kept = np.maximum(until - whole["started_ns"], whole["elapsed_ns"])
    held: NDArray[np.int64] = np.where(whole["code"] != b"", kept, whole["elapsed_ns"])
    return held


def _covered_ns(started: NDArray[np.int64], held: NDArray[np.int64]) -> tuple[int, bool]:
    """For how long at least one of them ran, and whether two ever ran at once."""
    if not len(started):
        return 0, False
    order = np.argsort(started, kind="stable")
    begins, ends = started[order], np.maximum.accumulate((started + held)[order])
    before = np.append(begins[0], ends[:-1])
    covered = np.maximum(0, ends - np.maximum(begins, before))
    return int(covered.sum()), bool((begins[1:] < ends[:-1]).any())
