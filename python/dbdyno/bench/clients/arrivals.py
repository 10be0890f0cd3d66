"""Due times of a slice's transactions in an open loop: a Poisson process.

They are drawn here from the run's seed, so a client only has to begin transactions at the given times.

A transaction that begins late has waited since it was due, and its response time counts from then, whatever delayed it:
the server, the driver, or the client's timer. Transactions that a client has not begun ten slice lengths (at least a
second) after the slice's end are cancelled and counted as skipped, as in dbdyno's own load.
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
"""Time before the slice begins, for the client to read its due times [ns]."""
AHEAD_EACH_NS = 2_000
NOT_DUE = "before they were due in the open loop"
GRACE = 10
GRACE_LEAST_NS = 1_000_000_000


@dataclass(frozen=True)
class Arrivals:
    """Due times on CLOCK_MONOTONIC in ns, ascending; transactions not begun by `give_up_ns` are skipped."""

    due_ns: Sequence[int]
    give_up_ns: int

    def intended(self, records: Records) -> NDArray[np.int64]:
        """Return the due time in ns of each transaction of a slice, and -1 for each statement.

        The n-th transaction that began has the n-th due time.

        Raises:
            StreamError: A transaction began before it was due, or transactions are missing although the time limit had
                not passed.
        """
        found = np.full(len(records), -1, np.int64)
        whole = np.flatnonzero(records["kind"] == TRANSACTION)
        order = whole[np.argsort(records["started_ns"][whole], kind="stable")]
        if len(order) > len(self.due_ns):
            raise StreamError(f"the slice has {len(order):,} transactions, but {len(self.due_ns):,} were due")
        due = np.array(self.due_ns[: len(order)], np.int64)
        if early := int((records["started_ns"][order] < due).sum()):
            raise StreamError(f"{early:,} of {len(order):,} transactions began {NOT_DUE}")
        if len(order) < len(self.due_ns) and time.monotonic_ns() < self.give_up_ns:
            raise StreamError(f"the slice has {len(order):,} transactions, but {len(self.due_ns):,} were due")
        found[order] = due
        return found


def draw_arrivals(
    rate_per_s: float, seed: Sequence[int], length_ns: int | None, transactions: int | None, start_ns: int
) -> Arrivals:
    """Draw the arrivals of a slice that begins soon after `start_ns`.

    Args:
        rate_per_s: Mean number of transactions per second.
        seed: Seed of the random numbers.
        length_ns: Length of the slice in ns; used if `transactions` is None.
        transactions: Number of transactions, or None.
        start_ns: Time now on CLOCK_MONOTONIC, in ns.
    """
    rng = np.random.default_rng(seed)
    gap_ns = 1e9 / rate_per_s
    if transactions is not None:
        offsets = np.cumsum(rng.exponential(gap_ns, transactions))
        length = transactions * gap_ns
    else:
        length = float(length_ns or 0)
        # Within a given length, the times of a Poisson process are sorted uniform times.
        offsets = np.sort(rng.uniform(0.0, length, rng.poisson(length / gap_ns)))
    start = start_ns + AHEAD_NS + AHEAD_EACH_NS * len(offsets)
    give_up = start + length + max(GRACE * length, GRACE_LEAST_NS)
    return Arrivals([start + int(offset) for offset in offsets], int(give_up))
