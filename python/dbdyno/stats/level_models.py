"""How well a series is explained by a steady level, a drift along a straight line, one step, or two steps.

Each explanation has normal noise in which neighbours may be alike (an AR(1) process). Its evidence is the likelihood,
integrated over level and scale, and averaged over places of steps and coefficients of the noise. A steady level or a
drift may have noise of any coefficient, all equally likely beforehand; a step has noise that is nearly independent,
since a step in noise that wanders by itself is no finding. A steady series may also jump between two modes and stay in
each for a while. How large the evidence has to be is taken from simulated series (`level_chances`), so these choices
decide what is found, and not how often something is found where nothing is.

Rows are cleaned first: a value more than three scales off the median of the five around it is moved to that distance,
so that one outlier cannot make a step; a lasting step stays as it is, from its third value on.

    >>> import numpy as np
    >>> row = np.r_[np.zeros(12), np.ones(12)] + np.resize([0.1, -0.1, 0.05, -0.05, 0], 24)
    >>> found = evidence(row[None, :])
    >>> int(found.at[0]), bool(found.step[0] > found.drift[0] > found.steady[0])
    (12, True)
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dbdyno.stats.arrays import Floats

SIDE_LEAST = 3
"""The fewest values on either side of a step."""
PAIR_PLACES_MOST = 20
"""About as many places are looked at in pairs; the best pair is then moved to where it explains most."""
WINDOW, OFF_MOST = 5, 3.0
RHOS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98)
STEP_RHO = 0.15
"""Before the series is seen, the chance of a coefficient of the noise beside a step falls e-fold with each 0.15."""
PAIR_RHOS = (0.0, 0.1, 0.2, 0.4)
STEP_SHARE, DRIFT_SHARE, TWO_SHARE = 0.87, 0.09, 0.04
"""How likely each kind of movement is beforehand."""
MODES_ODDS, MODES_AT, MODES_ODDS_MOST = 13.0, 40, 99.0
"""The odds beforehand that a steady series of 40 values jumps between two modes. They grow with the cube of the number:
modes of a few values cannot be told from steps."""
STAYS = (0.5, 0.6, 0.7, 0.8, 0.9)
"""How likely the next value is of the same mode; above 0.9 a jump between modes and a step are the same."""
JUMPS_LEAST = 4
"""Fewer jumps are no modes: a level that rises, falls and rises again has three."""
Places = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Evidence:
    """By row the logs of the evidence, the likeliest place or places of steps, and how large the drift and the step
    are in units of the noise that each leaves."""

    steady: Floats
    drift: Floats
    step: Floats
    two: Floats
    at: Places
    pair: Places
    drift_size: Floats
    step_size: Floats

    @property
    def moved(self) -> Floats:
        """The log of how much better any movement explains a row than a steady level does."""
        moving = np.stack([self.step, self.drift, self.two]) + np.log([[STEP_SHARE], [DRIFT_SHARE], [TWO_SHARE]])
        return np.asarray(_log_sum(moving, 0) - self.steady, dtype=np.float64)


@dataclass(frozen=True, slots=True)
class _Noise:
    """Rows freed of noise of one coefficient: by row the sum of squares about the level, and the parts of it that a
    drift and a step at each place explain; the length of the step at each place along its own direction, the level's
    share of it, and the log of the factor before the likelihood."""

    rho: float
    rest: Floats
    drift: Floats
    along: Floats
    lengths: Floats
    level: Floats
    factor: float

    @property
    def steps(self) -> Floats:
        """The parts of the sum of squares that a step at each place explains."""
        explained: Floats = (self.along / self.lengths) ** 2
        return explained

    def pairs(self, rows: Places, one: Places, other: Places) -> Floats:
        """The parts that steps at two places explain together, by indices of rows and places."""
        after = self.lengths.size - 1 + SIDE_LEAST - 1 - other
        shared = (1 - self.rho) + (1 - self.rho) ** 2 * after - self.level[one] * self.level[other]
        shared = shared / (self.lengths[one] * self.lengths[other])
        a, b = self.along[rows, one] / self.lengths[one], self.along[rows, other] / self.lengths[other]
        explained: Floats = (a**2 + b**2 - 2 * shared * a * b) / (1 - shared**2)
        return explained


def clean(rows: Floats) -> Floats:
    """Return the rows with each outlier moved to three scales from the median of the five values around it."""
    n = rows.shape[1]
    width = min(WINDOW, n)
    begin = np.clip(np.arange(n) - width // 2, 0, n - width)
    middle = np.median(rows[:, begin[:, None] + np.arange(width)], axis=2)
    off = rows - middle
    scale = 1.4826 * np.median(np.abs(off), axis=1, keepdims=True)
    scale = np.where(scale > 0, scale, 1.2533 * np.abs(off).mean(axis=1, keepdims=True))
    return np.asarray(middle + np.clip(off, -OFF_MOST * scale, OFF_MOST * scale), dtype=np.float64)


def evidence(rows: Floats) -> Evidence:
    """Return the evidence of each row, cleaned."""
    centred = clean(rows)
    centred = centred - centred.mean(axis=1, keepdims=True)
    centred /= np.sqrt(np.maximum((centred**2).mean(axis=1), 1e-30))[:, None]
    n, df = rows.shape[1], rows.shape[1] - 1
    noises = [_without(centred, rho) for rho in RHOS]
    steady = np.stack([one.factor - df / 2 * np.log(one.rest) for one in noises])
    drift = np.stack([one.factor - (df - 1) / 2 * _log_left(one.rest, one.drift) for one in noises])
    steps = np.stack([_likely(one) - (df - 1) / 2 * _log_left(one.rest[:, None], one.steps) for one in noises])
    two, pair = _two(noises, n)
    odds = min(MODES_ODDS * (n / MODES_AT) ** 3, MODES_ODDS_MOST)
    modes = _modes(centred) + np.log(odds / (1 + odds))
    return Evidence(
        np.logaddexp(_log_sum(steady, 0) - np.log((1 + odds) * len(RHOS)), modes),
        _log_sum(drift, 0) - np.log(len(RHOS)),
        _log_sum(_log_sum(steps, 2), 0) - np.log(steps.shape[2]),
        two,
        SIDE_LEAST + steps.max(axis=0).argmax(axis=1),
        pair,
        _size(noises[0].drift, n),
        _size(noises[0].steps.max(axis=1), n),
    )


def _likely(noise: _Noise) -> float:
    """The factor before the likelihood of a step, with how likely its noise is beforehand."""
    return noise.factor - noise.rho / STEP_RHO - math.log(sum(math.exp(-rho / STEP_RHO) for rho in RHOS))


def _without(rows: Floats, rho: float) -> _Noise:
    n = rows.shape[1]
    white = rows.copy()
    white[:, 1:] -= rho * rows[:, :-1]
    white[:, 0] *= math.sqrt(1 - rho**2)
    ones = np.full(n, 1 - rho)
    ones[0] = math.sqrt(1 - rho**2)
    length = float(np.linalg.norm(ones))
    ones /= length
    # What is centred and freed of its level has no part along it; so no direction but the steps' own needs its share.
    white -= (white @ ones)[:, None] * ones
    line = np.arange(n) - (n - 1) / 2
    drift = np.append(math.sqrt(1 - rho**2) * line[0], line[1:] - rho * line[:-1])
    drift -= (drift @ ones) * ones
    places = np.arange(SIDE_LEAST, n - SIDE_LEAST + 1)
    after = n - 1 - places
    tails = np.cumsum(white[:, ::-1], axis=1)[:, ::-1]
    along = white[:, places] + (1 - rho) * (tails[:, places] - white[:, places])
    level = ((1 - rho) + (1 - rho) ** 2 * after) / length
    lengths = np.sqrt(1 + (1 - rho) ** 2 * after - level**2)
    rest = np.maximum((white**2).sum(axis=1), 1e-18)
    factor = 0.5 * math.log(1 - rho**2) - math.log(length)
    return _Noise(rho, rest, (white @ drift) ** 2 / float(drift @ drift), along, lengths, level, factor)


def _modes(rows: Floats) -> Floats:
    """The evidence of two modes: the values divided in two where that leaves least, and how often they change sides."""
    n, ordered = rows.shape[1], np.sort(rows, axis=1)
    count = np.arange(2, n - 1)
    gain = np.cumsum(ordered, axis=1)[:, 1:-2] ** 2 * n / (count * (n - count))
    cut = gain.argmax(axis=1) + 1
    upper = rows > ordered[np.arange(rows.shape[0]), cut][:, None]
    jumps = (upper[:, 1:] != upper[:, :-1]).sum(axis=1)
    path = np.stack([jumps * np.log(1 - stay) + (n - 1 - jumps) * np.log(stay) for stay in STAYS]).max(axis=0)
    left = _log_left(np.full(cut.size, float(n)), gain.max(axis=1))
    logs = path - np.log(2 * len(STAYS)) - 0.5 * np.log(n) - (n - 2) / 2 * left
    return np.where(jumps >= JUMPS_LEAST, logs, -np.inf)


def _two(noises: list[_Noise], n: int) -> tuple[Floats, Places]:
    """The evidence of two steps at the pair of places that explains most with independent noise, and these places."""
    count, most = noises[0].rest.size, n - 2 * SIDE_LEAST
    stride = max(1, -(-most // PAIR_PLACES_MOST))
    coarse = np.arange(0, most + 1, stride)
    one, other = (coarse[index] for index in np.triu_indices(coarse.size, 1))
    one, other = one[other - one >= SIDE_LEAST], other[other - one >= SIDE_LEAST]
    if not one.size:
        return np.full(count, -np.inf), np.zeros((count, 2), dtype=np.int64)
    rows = np.arange(count)
    best = noises[0].pairs(rows[:, None], one[None, :], other[None, :]).argmax(axis=1)
    one, other = one[best], other[best]
    while stride > 1:
        stride = -(-stride // 2)
        moved = np.array([(a, b) for a in (-stride, 0, stride) for b in (-stride, 0, stride)])
        ones = np.clip(one[:, None] + moved[:, 0], 0, most - SIDE_LEAST)
        others = np.clip(other[:, None] + moved[:, 1], ones + SIDE_LEAST, most)
        best = noises[0].pairs(rows[:, None], ones, others).argmax(axis=1)
        one, other = ones[rows, best], others[rows, best]
    logs = np.stack(
        [
            _likely(of) - (n - 3) / 2 * _log_left(of.rest, of.pairs(rows, one, other))
            for of in noises
            if of.rho in PAIR_RHOS
        ]
    )
    pair = np.stack([one, other], axis=1) + SIDE_LEAST
    return _log_sum(logs, 0) - 2 * np.log(most), pair


def _log_left(rest: Floats, explained: Floats) -> Floats:
    left: Floats = np.log(np.maximum(rest - explained, 1e-9 * rest))
    return left


def _size(explained: Floats, n: int) -> Floats:
    """How long a movement is, in units of the noise that it leaves, of rows with n for their sum of squares."""
    size: Floats = np.sqrt(n * explained / np.maximum(n - explained, 1e-9 * n))
    return size


def _log_sum(logs: Floats, axis: int) -> Floats:
    top = logs.max(axis=axis, keepdims=True)
    total: Floats = (top + np.log(np.exp(logs - top).sum(axis=axis, keepdims=True))).squeeze(axis)
    return total
