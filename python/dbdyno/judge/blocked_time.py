"""Blocked time and failed work of two periods: what users wait for beside the time of statements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dbdyno.snapshot.reading.active_rates import ActiveRates
from dbdyno.stats.two_stretches import difference

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

NO_DATABASE_TIME = ("idle", "network")
"""Classes of waits that are no database time: sleeps, background loops, and the client whose turn it is."""
LOCK, COMMIT = "lock", "commit"
"""Classes of waits beside the time of statements: a lock of a table is waited for before a statement begins, a commit
ends after the last one."""
CERTAIN = 0.05
BEYOND = 3.0
"""Blocked time of so many times the worst sub-interval of the first period is certain without a test."""
LEAST_FAILED = 0.01
"""A share of failed transactions that rises by less is not told."""


@dataclass(frozen=True, slots=True)
class Blocked:
    """Sessions that wait for a lock, or in a commit, on average, in both periods: seconds of waiting a second.
    `active`: sessions that are in the database, those that wait so included. `certain`: more than chance gives."""

    before: float
    after: float
    active: tuple[float, float]
    certain: bool

    @property
    def grown(self) -> float:
        """How many more sessions wait, on average."""
        return self.after - self.before

    @property
    def share(self) -> float:
        """The part of the additional database time that is blocked time, at most all of it."""
        more = self.active[1] - self.active[0]
        return min(self.grown / more, 1.0) if more > 0 else 1.0


@dataclass(frozen=True, slots=True)
class Failed:
    """The share of transactions that were rolled back, in both periods. `certain`: more than chance gives."""

    before: float
    after: float
    certain: bool


def blocked(looked: Sequence[ActiveRates | None], kind: str = LOCK) -> Blocked | None:
    """Return the time of two periods in waits of a class; None where sessions were not sampled in both."""
    old, new = looked
    if old is None or new is None:
        return None
    waits = [side.values("class", [kind])[0] for side in (old, new)]
    active = (_in_database(old), _in_database(new))
    means = [float(one.mean()) for one in waits]
    return Blocked(means[0], means[1], active, _more(waits[0], waits[1]))


def _in_database(looked: ActiveRates) -> float:
    return sum(value for name, value in looked.means("class").items() if name not in NO_DATABASE_TIME)


def _more(old: Floats, new: Floats) -> bool:
    """Whether waits in the second period are more than those of the first by more than chance."""
    if new.mean() > BEYOND * max(float(old.max(initial=0.0)), 1e-9) and old.size >= 2:
        return True
    if min(old.size, new.size) < 2:
        return False
    found = difference(old, new)
    return found.value > 0 and found.p < CERTAIN


def failed(values: Sequence[Mapping[str, Sequence[float | None]]]) -> Failed | None:
    """Return the failed work of two periods from their metrics `tps` and `rollbacks`; None without these."""
    import numpy as np

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
    return Failed(before, after, found.p < CERTAIN and found.value >= LEAST_FAILED)
