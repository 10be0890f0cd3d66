"""When the transactions of a slice are due in an open loop: a Poisson process, drawn here from the run's seed, so that
a client only has to keep the times.

A transaction that begins late has waited since it was due, and its response time counts from then, whatever kept it:
the server, the driver, or the client's own timer. What a client has not begun ten slices after the slice's end, a
second at least, is given up and counted as skipped, as in our own load.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dbdyno.bench.clients.reader import StreamError
from dbdyno.bench.clients.stream import TRANSACTION

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dbdyno.bench.clients.reader import Records

AHEAD_NS = 5_000_000
"""Before the slice begins: the client reads its times meanwhile."""
AHEAD_EACH_NS = 2_000
NOT_DUE = "before they were due in the open loop"
GRACE = 10
GRACE_LEAST_NS = 1_000_000_000


@dataclass(frozen=True)
class Arrivals:
    """Due times on CLOCK_MONOTONIC [ns], ascending; what has not begun at `give_up_ns` never does."""

    due_ns: Sequence[int]
    give_up_ns: int

    def intended(self, records: Records) -> NDArray[np.int64]:
        """When each transaction of a slice was due, -1 for statements. Transactions take the times in their order.
        Raises `StreamError` where one began before it was due, or where some are missing without need."""
        found = np.full(len(records), -1, np.int64)
        whole = np.flatnonzero(records["kind"] == TRANSACTION)
        order = whole[np.argsort(records["started_ns"][whole], kind="stable")]
        if len(order) > len(self.due_ns):
            raise StreamError(f"has {len(order):,} transactions where {len(self.due_ns):,} were due")
        due = np.array(self.due_ns[: len(order)], np.int64)
        if early := int((records["started_ns"][order] < due).sum()):
            raise StreamError(f"began {early:,} of {len(order):,} transactions {NOT_DUE}")
        if len(order) < len(self.due_ns) and time.monotonic_ns() < self.give_up_ns:
            raise StreamError(f"has {len(order):,} transactions where {len(self.due_ns):,} were due")
        found[order] = due
        return found


def drawn(
    rate_per_s: float, seed: Sequence[int], length_ns: int | None, transactions: int | None, start_ns: int
) -> Arrivals:
    """The arrivals of a slice that begins soon after `start_ns`: those within its length, or so many."""
    rng = np.random.default_rng(seed)
    gap_ns = 1e9 / rate_per_s
    if transactions is not None:
        offsets = np.cumsum(rng.exponential(gap_ns, transactions))
        length = transactions * gap_ns
    else:
        length = float(length_ns or 0)
        # The times of a Poisson process within a length are so many uniform ones, in order.
        offsets = np.sort(rng.uniform(0.0, length, rng.poisson(length / gap_ns)))
    start = start_ns + AHEAD_NS + AHEAD_EACH_NS * len(offsets)
    give_up = start + length + max(GRACE * length, GRACE_LEAST_NS)
    return Arrivals([start + int(offset) for offset in offsets], int(give_up))
