"""Two modes of a session's round trips: client and server share one core, or each has its own.

A process that is woken either uses the core of its waker, which is about to sleep, or starts another core, which is
idle. On one core, the time of a round trip is only the CPU time of both processes. Over two cores it takes two to four
times as long, because each wake-up starts a core. So the times of a statement have two peaks with a gap between them,
and the first peak shows its CPU time.

Limits: only with one session, since with several a process also waits for a core.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dbdyno.study.prediction.observation import Observation

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

BINS = 25
"""Number of bins, of equal width on a logarithmic scale, in which a gap is searched for."""
BODY = (0.005, 0.8)
"""Quantiles of a statement's times between which a gap is searched for."""
GAP_RATIO = 4.0
"""Minimum ratio of the height of the lower peak to that of the gap."""
LEAST = 30
"""Minimum number of measured times in a peak."""
FASTEST = 0.05
"""Quantile of a statement's times that is used as the time of a round trip on one core if there is no gap."""


@dataclass(frozen=True)
class Modes:
    """Modes of the round trips of one statement.

    Attributes:
        one_core_us: Median time of round trips on one core [us].
        limit_us: Time that separates the modes [us].
        two_cores: Share of round trips over two cores.
    """

    one_core_us: float
    limit_us: float
    two_cores: float


def modes_of(times_us: Floats) -> Modes | None:
    """Return the modes of a statement's times, or None if the times have only one peak."""
    import numpy as np

    if len(times_us) < 10 * LEAST:
        return None
    low, high = (float(one) for one in np.quantile(times_us, BODY))
    if not 0 < low < high:
        return None
    counts, edges = np.histogram(times_us, np.geomspace(low, high, BINS + 1))
    before = np.maximum.accumulate(counts)[:-2]
    after = np.maximum.accumulate(counts[::-1])[::-1][2:]
    lower = np.minimum(before, after)
    depths = lower / (counts[1:-1] + 1)
    at = int(np.argmax(depths))
    if depths[at] < GAP_RATIO or lower[at] < LEAST:
        return None
    limit = float(np.sqrt(edges[at + 1] * edges[at + 2]))
    near = times_us[times_us < limit]
    return Modes(float(np.median(near)), limit, 1.0 - len(near) / len(times_us))


def statement_modes(observation: Observation, sized_us: dict[int, Floats]) -> list[Modes | None] | None:
    """Return the modes of each statement; None for a commit, or for a statement without usable times.

    Args:
        observation: Observation of the arm.
        sized_us: For statements that write log of different sizes, by number: their times without the time for the log
            [us].

    Returns:
        None instead of a list if the arm has several sessions, or if the modes of any other statement are unknown.
    """
    steps = observation.steps
    if observation.sessions != 1:
        return None
    found: list[Modes | None] = []
    for at, (statement, kind) in enumerate(zip(steps.statements, steps.kinds, strict=True)):
        times_us = sized_us.get(at, observation.elapsed_us(statement, kind))
        if kind == "commit" or (kind == "transaction" and steps.writes) or not len(times_us):
            found.append(None)
            continue
        own = modes_of(times_us)
        if own is None:
            return None
        found.append(own)
    return found if any(found) else None


def modes_by_share(observation: Observation, sized_us: dict[int, Floats], share: float) -> list[Modes | None] | None:
    """Return the modes of statements whose times have no gap, given the share of round trips over two cores.

    The fastest ones are assumed to be on one core. Slower ones may be, too: after a sleep, a process has to fetch its
    data into the cache again.

    Args:
        observation: Observation of the arm.
        sized_us: As for `statement_modes`.
        share: Share of round trips over two cores.
    """
    import numpy as np

    steps = observation.steps
    found: list[Modes | None] = []
    for at, (statement, kind) in enumerate(zip(steps.statements, steps.kinds, strict=True)):
        times_us = sized_us.get(at, observation.elapsed_us(statement, kind))
        if kind == "commit" or (kind == "transaction" and steps.writes) or len(times_us) < LEAST:
            found.append(None)
            continue
        one, limit = (float(us) for us in np.quantile(times_us, (FASTEST, 1 - share)))
        found.append(Modes(one, limit if share else math.inf, share))
    return found if any(found) else None


def one_core_us(modes: list[Modes | None]) -> list[float]:
    """Return the time of each statement on one core [us]; a commit is assumed to equal the fastest statement."""
    least = min(own.one_core_us for own in modes if own is not None)
    return [least if own is None else own.one_core_us for own in modes]


def two_core_share(modes: list[Modes | None], per_transaction: list[float]) -> float:
    """Return the share of round trips in which client and server process run on different cores.

    Commits are assumed to have the same share as the other statements.
    """
    known = [(own.two_cores, each) for own, each in zip(modes, per_transaction, strict=True) if own is not None]
    return math.fsum(share * each for share, each in known) / math.fsum(each for _, each in known)
