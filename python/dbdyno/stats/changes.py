"""Level changes and drift of a series, reported only if neither chance nor an unsteady machine explains them.

Runs of one plan on one machine are not independent: neighbours are alike, single runs are far off, some machines jump
between two modes. A change is reported only if three explanations without one are rejected. Each is tested by
simulation (`level_chances`), so the level holds for the worst of them:

1. a steady level with noise that is autocorrelated to any degree (AR(1)), or that jumps between two modes;
2. a drift along a straight line over the whole series, as strong as the one estimated from the series;
3. for two changes at once (up and down again), also a single step.

If the first is rejected and the second is not, the level moved, but the runs cannot show whether it moved at once: this
is a `Drift`, with the step that may explain it as well. The parts between changes are searched again, each separately.

The start of a change is known as an interval: all positions that a permutation test does not reject. If a change is at
a position, the values before it are exchangeable among themselves, and so are those after it, once the autocorrelation
is removed. Permuting them shows how much clearer than that position the clearest split is by chance alone. Of n values
on a side, the last one is the most extreme by chance once in n, so the neighbours of a position are ruled out only with
about twenty values or more.

    >>> row = [10.1, 9.9, 10.0, 10.2, 9.8, 10.0, 9.9, 10.1, 12.1, 11.9, 12.0, 12.2, 11.8, 12.0, 11.9, 12.1]
    >>> moves = level_changes(row, level=0.95)
    >>> [(one.at, round(one.ratio, 2)) for one in moves.changes], moves.drift
    ([(8, 1.2)], None)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from dbdyno.base.errors import StatsError
from dbdyno.stats.arrays import Floats
from dbdyno.stats.distributions import t_quantile
from dbdyno.stats.level_chances import chances_steady, classify
from dbdyno.stats.level_models import SIDE_LEAST, clip_outliers, evidence
from dbdyno.stats.means import RatioEstimate

LEAST = 8
"""Smallest number of values in which a change or a drift is searched for."""
TRIALS = 199
"""Number of random orders in each simulation of this module."""
RHO_MOST, OFF_MOST = 0.9, 5.0


@dataclass(frozen=True)
class Change(RatioEstimate):
    """A lasting change of level, with the ratio of the levels (Welch) and the p of a series without this change.

    Attributes:
        at: Index of the first value on the new level.
        first: Index of the first value at which the change may have begun.
        last: Index of the last value at which the change may have begun.
    """

    at: int
    first: int
    last: int


@dataclass(frozen=True)
class Drift(RatioEstimate):
    """A change of level along a straight line, which may have been gradual, with the p of a steady level.

    `step` is a single step that explains the series as well, or None if a step is rejected.
    """

    step: Change | None


@dataclass(frozen=True, slots=True)
class LevelChanges:
    """The changes of a series in time order, or its drift."""

    changes: list[Change]
    drift: Drift | None


def level_changes(values: ArrayLike, *, level: float, seed: int = 0) -> LevelChanges:
    """Return the changes and the drift of a series of numbers above 0.

    Raises:
        StatsError: There are fewer than `LEAST` values, or one is not above 0.
    """
    logs = _logs(values)
    if float(np.ptp(logs)) == 0:
        return LevelChanges([], None)
    found, slow = _search(logs, 0, logs.size, 1 - level)
    places = _settle_positions(logs, sorted(found))
    borders = [0, *places, logs.size]
    sides = _clean_sides(logs, borders)
    rho, rng = _likeness(sides, borders), np.random.default_rng(seed)
    chances = [found[key] for key in sorted(found)]
    changes = [
        _change(sides, (before, at, after), level, p, rho, rng)
        for before, at, after, p in zip(borders, borders[1:], borders[2:], chances, strict=False)
    ]
    if slow is None:
        return LevelChanges(changes, None)
    at, p, may_step = slow
    return LevelChanges(changes, _drift(logs, at if may_step else None, level, p, rng))


def detectable_step(values: ArrayLike, *, level: float, power: float = 0.8, seed: int = 0) -> float:
    """Return the smallest lasting step that `level_changes` finds with probability `power`, as a ratio (1.05: 5 %).

    The step is in the middle of a series that scatters like this one, which must hold no change. The result is infinite
    if no step of any size would be found, and 1 if the values do not vary.

    It is estimated by simulation: the step is added to random orders of the series (of its innovations, if neighbours
    are alike), which are tested as `level_changes` does. The scatter is estimated from the series itself, so the result
    is rough for few values.

    Raises:
        StatsError: As in `level_changes`.
    """
    rng, logs = np.random.default_rng(seed), _logs(values)
    spread = float(logs.std(ddof=1))
    if spread == 0:
        return 1.0
    orders = _orders(logs, _likeness(logs, [0, logs.size]), TRIALS, rng)
    later = np.arange(logs.size) >= logs.size // 2

    def chance(step: float) -> float:
        return float((chances_steady(evidence(orders + step * later), logs.size) <= 1 - level).mean())

    low, high = 0.0, 16 * spread
    if chance(high) < power:
        return math.inf
    while high - low > 0.1 * spread:
        middle = (low + high) / 2
        low, high = (low, middle) if chance(middle) >= power else (middle, high)
    return math.exp(high)


def _logs(values: ArrayLike) -> Floats:
    given = np.asarray(values, dtype=np.float64)
    if given.size < LEAST:
        raise StatsError(
            f"{given.size} {'value is' if given.size == 1 else 'values are'} too few for a trend; {LEAST} are needed",
            next_step="give more values",
        )
    if not (np.isfinite(given) & (given > 0)).all():
        raise StatsError("a trend needs numbers above 0", next_step="leave the other values out")
    return np.asarray(np.log(given), dtype=np.float64)


def _search(
    logs: Floats, begin: int, end: int, share: float
) -> tuple[dict[int, float], tuple[int, float, bool] | None]:
    """Search the values between two borders for changes.

    Returns:
        The positions of changes with their p, and None. If the level moved but a drift is not rejected: no positions,
        and the likeliest position of a step, its p, and whether a step is not rejected either.
    """
    n = end - begin
    if n < LEAST or float(np.ptp(logs[begin:end])) == 0:
        return {}, None
    told = classify(logs[None, begin:end], level=1 - share)
    at, p = begin + int(told.seen.at[0]), float(told.p[0])
    if told.two[0]:
        found = {begin + int(place): p for place in told.seen.pair[0]}
    elif told.step[0]:
        found = {at: p}
    else:
        return {}, (at, p, bool(told.either[0])) if told.either[0] or told.drift[0] else None
    borders = [begin, *sorted(found), end]
    for one, other in pairwise(borders):
        found = {**found, **_search(logs, one, other, share / (len(borders) - 1))[0]}
    return found, None


def _settle_positions(logs: Floats, places: list[int]) -> list[int]:
    """Move each position to where the cleaned values between its neighbours are divided best."""
    cleaned, borders = clip_outliers(logs[None, :])[0], [0, *places, logs.size]
    for number in range(1, len(borders) - 1):
        before, after = borders[number - 1], borders[number + 1]
        borders[number] = before + SIDE_LEAST + int(_split_t(cleaned[None, before:after])[0].argmax())
    return borders[1:-1]


def _clean_sides(logs: Floats, borders: list[int]) -> Floats:
    """Return the values clipped to five scaled MADs from the median of the values between the same borders."""
    parts = []
    for one, other in pairwise(borders):
        part, middle = logs[one:other], float(np.median(logs[one:other]))
        scale = 1.4826 * float(np.median(np.abs(part - middle)))
        parts.append(np.clip(part, middle - OFF_MOST * scale, middle + OFF_MOST * scale) if scale > 0 else part)
    return np.concatenate(parts)


def _likeness(logs: Floats, borders: list[int]) -> float:
    """Return the lag-1 autocorrelation around the means between borders, with its bias removed, within 0..0.9.

    The bias is removed as by Marriott and Pope (1954).
    """
    rest = np.concatenate([logs[one:other] - logs[one:other].mean() for one, other in pairwise(borders)])
    squares, n = float(rest @ rest), logs.size
    r = float(rest[1:] @ rest[:-1]) / squares if squares > 0 else 0.0
    return min(max(r + (1 + 3 * r) / n, 0.0), RHO_MOST)


def _orders(part: Floats, rho: float, count: int, rng: np.random.Generator) -> Floats:
    """Return `count` AR(1) series, each rebuilt from the innovations of `part` in another random order."""
    rest = part - part.mean()
    added = np.concatenate([rest[:1] * math.sqrt(1 - rho**2), rest[1:] - rho * rest[:-1]])
    rows = rng.permuted(np.tile(added, (count, 1)), axis=1)
    rows[:, 0] /= math.sqrt(1 - rho**2)
    for at in range(1, part.size if rho > 0 else 0):
        rows[:, at] += rho * rows[:, at - 1]
    return np.asarray(rows + part.mean(), dtype=np.float64)


def _split_t(rows: Floats) -> Floats:
    """Return |t| at all splits of each row that leave at least `SIDE_LEAST` values on either side."""
    n = rows.shape[1]
    sizes = np.arange(SIDE_LEAST, n - SIDE_LEAST + 1)
    centred = rows - rows.mean(axis=1, keepdims=True)
    gain = np.cumsum(centred, axis=1)[:, sizes - 1] ** 2 * n / (sizes * (n - sizes))
    within = np.maximum((centred**2).sum(axis=1, keepdims=True) - gain, 1e-18)
    return np.asarray(np.sqrt(gain / within * (n - 2)), dtype=np.float64)


def _begin_range(part: Floats, at: int, level: float, rho: float, rng: np.random.Generator) -> tuple[int, int]:
    """Return the first and the last position within a part at which its change may have begun."""
    here, found = [at], float(_split_t(part[None, :]).max()) * (1 - 1e-9)
    for place in range(SIDE_LEAST, part.size - SIDE_LEAST + 1):
        orders = np.hstack([_orders(side, rho, TRIALS, rng) for side in (part[:place], part[place:])])
        if (1 + (_split_t(orders).max(axis=1) >= found).sum()) / (TRIALS + 1) > 1 - level:
            here.append(place)
    return min(here), max(here)


def _change(
    logs: Floats, borders: tuple[int, int, int], level: float, p: float, rho: float, rng: np.random.Generator
) -> Change:
    before, at, after = borders
    one, two, fewer = logs[before:at], logs[at:after], (1 + rho) / (1 - rho)
    mean = float(two.mean() - one.mean())
    a, b = (fewer * float(side.var(ddof=1)) / side.size for side in (one, two))
    df = (a + b) ** 2 / (a**2 / (one.size - 1) + b**2 / (two.size - 1)) if a + b > 0 else 1.0
    half = t_quantile(max(df / fewer, 1.0), 0.5 + level / 2) * math.sqrt(a + b)
    first, last = _begin_range(logs[before:after], at - before, level, rho, rng)
    ratio = math.exp(mean), math.exp(mean - half), math.exp(mean + half)
    return Change(*ratio, p, at, before + first, before + last)


def _drift(logs: Floats, at: int | None, level: float, p: float, rng: np.random.Generator) -> Drift:
    n, cleaned = logs.size, clip_outliers(logs[None, :])[0]
    line = np.arange(n) - (n - 1) / 2
    slope = float(cleaned @ line / (line @ line))
    rest = cleaned - cleaned.mean() - slope * line
    rho = _likeness(rest, [0, n])
    fewer = (1 + rho) / (1 - rho)
    error = math.sqrt(fewer * float(rest @ rest) / (n - 2) / float(line @ line))
    half = t_quantile(max((n - 2) / fewer, 1.0), 0.5 + level / 2) * error
    low, middle, high = (math.exp((slope + by) * (n - 1)) for by in (-half, 0.0, half))
    step = None
    if at is not None:
        sides = _clean_sides(logs, [0, at, n])
        step = _change(sides, (0, at, n), level, p, _likeness(sides, [0, at, n]), rng)
    return Drift(middle, low, high, p, step)
