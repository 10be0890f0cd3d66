"""Blocked time and failed transactions of two periods: what users wait for besides the execution time of statements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dbdyno.snapshot.reading.active_rates import ActiveRates

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

NO_DATABASE_TIME = ("idle", "network")
"""Wait classes that are not database time: sleeps, background loops, and waits for the client."""
LOCK, COMMIT = "lock", "commit"
"""Wait classes whose time is not part of statement time.

A session waits for a table lock before a statement starts, and commits end after the last statement.
"""
CERTAIN, BEYOND, LEAST_FAILED = 0.05, 3.0, 0.01
"""Maximum p of a certain rise; multiple of the first period's highest sub-interval above which mean blocked time is a
certain rise without a test; smallest rise in the share of failed transactions that is reported."""


@dataclass(frozen=True, slots=True)
class BlockedTime:
    """Average number of sessions that waited for a lock or in a commit, in each period (seconds of waiting per second).

    Attributes:
        before: Waiting sessions in the first period.
        after: Waiting sessions in the second period.
        active: Average number of active sessions in each period, including the waiting ones.
        certain: True if chance does not explain the rise.
    """

    before: float
    after: float
    active: tuple[float, float]
    certain: bool

    @property
    def growth(self) -> float:
        """Return by how many sessions the average number of waiting sessions grew."""
        return self.after - self.before

    @property
    def share(self) -> float:
        """Return the share of the additional database time that is blocked time, at most 1; 1 if no time was added."""
        more = self.active[1] - self.active[0]
        return min(self.growth / more, 1.0) if more > 0 else 1.0


@dataclass(frozen=True, slots=True)
class FailedTransactions:
    """Share of transactions rolled back in each period; `certain` is True if chance does not explain the rise."""

    before: float
    after: float
    certain: bool


def blocked_time_of(looked: Sequence[ActiveRates | None], kind: str = LOCK) -> BlockedTime | None:
    """Return the time that sessions spent in waits of one class in two periods; None if a period was not sampled."""
    old, new = looked
    if old is None or new is None:
        return None
    waits = [side.values("class", [kind])[0] for side in (old, new)]
    active = (_in_database(old), _in_database(new))
    means = [float(one.mean()) for one in waits]
    return BlockedTime(means[0], means[1], active, _has_more(waits[0], waits[1]))


def _in_database(looked: ActiveRates) -> float:
    return sum(value for name, value in looked.means("class").items() if name not in NO_DATABASE_TIME)


def _has_more(old: Floats, new: Floats) -> bool:
    """Return True if waits increased from the first period to the second by more than chance explains."""
    if new.mean() > BEYOND * max(float(old.max(initial=0.0)), 1e-9) and old.size >= 2:
        return True
    if min(old.size, new.size) < 2:
        return False
    from dbdyno.stats.two_stretches import difference

    found = difference(old, new)
    return found.value > 0 and found.p < CERTAIN


def failed_transactions(values: Sequence[Mapping[str, Sequence[float | None]]]) -> FailedTransactions | None:
    """Return the failed transactions of two periods from the metrics `tps` and `rollbacks`.

    The result is None if a period lacks these metrics or has fewer than two sub-intervals with transactions.
    """
    import numpy as np

    from dbdyno.stats.two_stretches import difference

    shares = []
    for side in values:
        if "tps" not in side or "rollbacks" not in side:
            return None
        pairs = [(c, r) for c, r in zip(side["tps"], side["rollbacks"], strict=True) if c is not None and r is not None]
        shares.append(np.array([r / (c + r) for c, r in pairs if c + r > 0]))
    if min(one.size for one in shares) < 2:
        return None
    found = difference(shares[0], shares[1])
    before, after = (float(one.mean()) for one in shares)
    return FailedTransactions(before, after, found.p < CERTAIN and found.value >= LEAST_FAILED)
