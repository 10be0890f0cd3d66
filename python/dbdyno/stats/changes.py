"""Where a series changed its level: candidates by PELT, each tested by permutation.

Killick, Fearnhead and Eckley's PELT (JASA 107, 2012; the library `ruptures`) proposes where the mean of the logs
changes, with a penalty of 3 log(n) times the variance of neighbours' differences. A proposed place is a change only if,
among the values from the change before to the one after, the largest |t| of all splits is larger than in all but a
share of (1 - level) / candidates of 999 random orders of them: the search for the best place is part of what is tested.

Where it began is known within an interval: the places at which a permutation test does not refuse a change. If a change
is at a place, the values before it are exchangeable among themselves, and so are those after it; their orders say how
much clearer than that place the clearest split is by chance alone. So the places that are not refused hold the true one
with the level, whatever the distribution, as far as each side is level and its values do not depend on each other. Of
n values on a side the last is the odd one by chance once in n, so the neighbours of a place are ruled out only by some
twenty or more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dbdyno.errors import StatsError
from dbdyno.stats.arrays import Floats

LEAST = 8
"""Fewer values than this have no trend."""
SIDE_LEAST = 3
ORDERS = 999
TRIALS = 199
"""Orders in a simulation of what would be found."""


@dataclass(frozen=True, slots=True)
class Change:
    """From value `at` on the level is `ratio` times what it was before, with the ends of its interval (Welch); it began
    with one of the values `first` to `last`."""

    at: int
    ratio: float
    low: float
    high: float
    p: float
    first: int
    last: int


def change_points(values: ArrayLike, *, level: float, seed: int = 0) -> list[Change]:
    """The changes of a series of numbers above 0, in its order.

    Raises `StatsError` below `LEAST` values, for values not above 0, or where `ruptures` is not installed.
    """
    given = np.asarray(values, dtype=np.float64)
    if given.size < LEAST:
        raise StatsError(
            f"{given.size} {'value is' if given.size == 1 else 'values are'} too few for a trend; {LEAST} are needed"
        )
    if not (np.isfinite(given) & (given > 0)).all():
        raise StatsError("a trend needs numbers above 0")
    logs = np.log(given)
    spread = float(np.median(np.abs(np.diff(logs)))) * 1.4826 / math.sqrt(2)
    if spread == 0:
        spread = float(np.diff(logs).std()) or 1e-9
    places = _proposed(logs / spread)
    rng, share = np.random.default_rng(seed), (1 - level) / max(len(places), 1)
    # The weakest goes until all that are left hold among their neighbours.
    while places:
        chances = [_p_of(logs, places, at, rng) for at in places]
        if max(chances) <= share:
            break
        del places[int(np.argmax(chances))]
    borders = [0, *places, logs.size]
    return [
        _change(logs, before, at, after, level, p, _begun(logs, before, at, after, level, rng))
        for before, at, after, p in zip(borders, borders[1:], borders[2:], chances if places else [], strict=False)
    ]


def detectable_step(values: ArrayLike, *, level: float, power: float = 0.8, seed: int = 0) -> float:
    """The ratio of a lasting step in the middle of a series that scatters like this one, which holds none, from which
    on `change_points` would find it with this chance: 1.05 for 5 %; infinite where it would find none of any size.

    By simulation: the step is added to random orders of the series, and tested as `change_points` tests. How the
    series scatters is taken from its own values, so the answer is rough for few of them. Raises as `change_points`.
    """
    given = np.asarray(values, dtype=np.float64)
    if given.size < LEAST or not (np.isfinite(given) & (given > 0)).all():
        raise StatsError(f"a trend needs {LEAST} numbers above 0")
    rng, logs = np.random.default_rng(seed), np.log(given)
    spread = float(logs.std(ddof=1))
    if spread == 0:
        return 1.0
    orders = rng.permuted(np.tile(logs, (TRIALS, 1)), axis=1)
    later = np.arange(logs.size) >= logs.size // 2

    def chance(step: float) -> float:
        return float(np.mean([_has_step(row + step * later, level, rng) for row in orders]))

    low, high = 0.0, 16 * spread
    if chance(high) < power:
        return math.inf
    while high - low > 0.1 * spread:
        middle = (low + high) / 2
        low, high = (low, middle) if chance(middle) >= power else (middle, high)
    return math.exp(high)


def _has_step(row: Floats, level: float, rng: np.random.Generator) -> bool:
    """Whether the clearest split of a row is clearer than in all but a share of its random orders."""
    orders = _largest_t(rng.permuted(np.tile(row, (TRIALS, 1)), axis=1))
    return bool((1 + (orders >= _largest_t(row[None, :])[0]).sum()) / (TRIALS + 1) <= 1 - level)


def _proposed(scaled: Floats) -> list[int]:
    try:
        import ruptures
    except ImportError as error:
        raise StatsError("a trend needs the package ruptures", next_step="pip install 'dbdyno[trend]'") from error
    search = ruptures.Pelt(model="l2", min_size=SIDE_LEAST, jump=1).fit(scaled.reshape(-1, 1))
    return [int(at) for at in search.predict(pen=3 * math.log(scaled.size)) if at < scaled.size]


def _p_of(logs: Floats, places: list[int], at: int, rng: np.random.Generator) -> float:
    """The chance of a split as clear as the best one around `at`, where the order means nothing."""
    before = max((place for place in places if place < at), default=0)
    after = min((place for place in places if place > at), default=logs.size)
    part = logs[before:after]
    orders = rng.permuted(np.tile(part, (ORDERS, 1)), axis=1)
    found = _largest_t(part[None, :])[0]
    return float((1 + int((_largest_t(orders) >= found).sum())) / (ORDERS + 1))


def _largest_t(rows: Floats) -> Floats:
    """The largest |t| over all splits of each row that leave `SIDE_LEAST` on either side."""
    n = rows.shape[1]
    sizes = np.arange(SIDE_LEAST, n - SIDE_LEAST + 1)
    sums, squares = np.cumsum(rows, axis=1), np.cumsum(rows**2, axis=1)
    left, left_squares = sums[:, sizes - 1], squares[:, sizes - 1]
    right, right_squares = sums[:, -1:] - left, squares[:, -1:] - left_squares
    within = left_squares - left**2 / sizes + right_squares - right**2 / (n - sizes)
    variance = np.maximum(within / (n - 2), 1e-18)
    apart = np.abs(left / sizes - right / (n - sizes))
    largest: Floats = (apart / np.sqrt(variance * (1 / sizes + 1 / (n - sizes)))).max(axis=1)
    return largest


def _begun(logs: Floats, before: int, at: int, after: int, level: float, rng: np.random.Generator) -> tuple[int, int]:
    """The first and the last place at which a change may have begun, of all between its neighbours."""
    part, here = logs[before:after], [at]
    found = _largest_t(part[None, :])[0] * (1 - 1e-9)
    for place in range(SIDE_LEAST, part.size - SIDE_LEAST + 1):
        sides = [np.tile(side, (TRIALS, 1)) for side in (part[:place], part[place:])]
        orders = np.hstack([rng.permuted(side, axis=1) for side in sides])
        if (1 + (_largest_t(orders) >= found).sum()) / (TRIALS + 1) > 1 - level:
            here.append(before + place)
    return min(here), max(here)


def _change(logs: Floats, before: int, at: int, after: int, level: float, p: float, begun: tuple[int, int]) -> Change:
    from scipy import special

    one, two = logs[before:at], logs[at:after]
    mean = float(two.mean() - one.mean())
    a, b = float(one.var(ddof=1)) / one.size, float(two.var(ddof=1)) / two.size
    error = math.sqrt(a + b)
    df = (a + b) ** 2 / (a**2 / (one.size - 1) + b**2 / (two.size - 1)) if a + b > 0 else 1.0
    half = float(special.stdtrit(df, 0.5 + level / 2)) * error
    return Change(at, math.exp(mean), math.exp(mean - half), math.exp(mean + half), p, *begun)
