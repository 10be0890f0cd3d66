"""Evidence that a series is explained by a steady level, a linear drift, one step, or two steps.

Each explanation has normal noise that may be autocorrelated (an AR(1) process). Its evidence is the likelihood,
integrated over level and scale, and averaged over positions of steps and coefficients of the noise. A steady level or a
drift may have noise of any coefficient, all equally likely a priori. A step has noise that is nearly independent, since
a step in noise that wanders by itself is no finding. A steady series may also jump between two modes and stay in each
for a while. The required size of the evidence is taken from simulated series (`level_chances`), so these priors decide
what is found, and not how often something is found in a series without a change.

Rows are cleaned first: a value more than three scales away from the median of the five values around it is moved to
that distance, so that one outlier cannot make a step. A lasting step is unchanged from its third value on.

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
"""Smallest number of values on either side of a step."""
PAIR_PLACES_MOST = 20
"""Approximate number of positions that are searched in pairs; the best pair is then moved to where it explains most."""
WINDOW, OFF_MOST = 5, 3.0
RHOS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98)
STEP_RHO = 0.15
"""Prior of the noise of a step: the probability of a coefficient falls e-fold with each 0.15."""
PAIR_RHOS = (0.0, 0.1, 0.2, 0.4)
STEP_SHARE, DRIFT_SHARE, TWO_SHARE = 0.87, 0.09, 0.04
"""Prior probability of each kind of movement."""
MODES_ODDS, MODES_AT, MODES_ODDS_MOST = 13.0, 40, 99.0
"""Prior odds that a steady series of 40 values jumps between two modes, that number of values, and the largest odds.

The odds grow with the cube of the number of values: modes of a few values cannot be distinguished from steps.
"""
STAYS = (0.5, 0.6, 0.7, 0.8, 0.9)
"""Probabilities that the next value is in the same mode; above 0.9, such jumps cannot be distinguished from a step."""
JUMPS_LEAST = 4
"""Smallest number of jumps between modes; a level that rises, falls and rises again has three."""
Places = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Evidence:
    """Evidence for each explanation of each row.

    Attributes:
        steady: Log evidence of a steady level.
        drift: Log evidence of a drift.
        step: Log evidence of one step.
        two: Log evidence of two steps.
        at: Likeliest position of one step.
        pair: Likeliest positions of two steps.
        drift_size: Size of the drift in units of the noise that it leaves.
        step_size: Size of the step in units of the noise that it leaves.
    """

    steady: Floats
    drift: Floats
    step: Floats
    two: Floats
    at: Places
    pair: Places
    drift_size: Floats
    step_size: Floats

    @property
    def movement(self) -> Floats:
        """Return the log of how much better any movement explains each row than a steady level does."""
        moving = np.stack([self.step, self.drift, self.two]) + np.log([[STEP_SHARE], [DRIFT_SHARE], [TWO_SHARE]])
        return np.asarray(_log_sum(moving, 0) - self.steady, dtype=np.float64)


@dataclass(frozen=True, slots=True)
class _Noise:
    """Rows with the AR(1) noise of one coefficient removed.

    Attributes:
        rho: The AR(1) coefficient.
        rest: Sum of squares about the level, by row.
        drift: Part of that sum that a drift explains, by row.
        along: Projection of each row on a step at each position.
        lengths: Length of the step vector at each position, without its part along the level.
        level: Part of the step vector at each position that is along the level.
        factor: Log of the factor in front of the likelihood.
    """

    rho: float
    rest: Floats
    drift: Floats
    along: Floats
    lengths: Floats
    level: Floats
    factor: float

    @property
    def steps(self) -> Floats:
        """Return the part of the sum of squares that a step at each position explains."""
        explained: Floats = (self.along / self.lengths) ** 2
        return explained

    def pairs(self, rows: Places, first: Places, second: Places) -> Floats:
        """Return the part of the sum of squares that two steps explain together; the arguments are indexes."""
        after = self.lengths.size - 1 + SIDE_LEAST - 1 - second
        shared = (1 - self.rho) + (1 - self.rho) ** 2 * after - self.level[first] * self.level[second]
        shared = shared / (self.lengths[first] * self.lengths[second])
        a, b = self.along[rows, first] / self.lengths[first], self.along[rows, second] / self.lengths[second]
        explained: Floats = (a**2 + b**2 - 2 * shared * a * b) / (1 - shared**2)
        return explained


def clip_outliers(rows: Floats) -> Floats:
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
    """Return the evidence of each row, after cleaning."""
    centred = clip_outliers(rows)
    centred = centred - centred.mean(axis=1, keepdims=True)
    centred /= np.sqrt(np.maximum((centred**2).mean(axis=1), 1e-30))[:, None]
    n, df = rows.shape[1], rows.shape[1] - 1
    noises = [_noise_without_steps(centred, rho) for rho in RHOS]
    steady = np.stack([one.factor - df / 2 * np.log(one.rest) for one in noises])
    drift = np.stack([one.factor - (df - 1) / 2 * _log_left(one.rest, one.drift) for one in noises])
    steps = np.stack([_log_factor(one) - (df - 1) / 2 * _log_left(one.rest[:, None], one.steps) for one in noises])
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


def _log_factor(noise: _Noise) -> float:
    """Return the log factor in front of the likelihood of a step, including the prior of its noise."""
    return noise.factor - noise.rho / STEP_RHO - math.log(sum(math.exp(-rho / STEP_RHO) for rho in RHOS))


def _noise_without_steps(rows: Floats, rho: float) -> _Noise:
    n = rows.shape[1]
    white = rows.copy()
    white[:, 1:] -= rho * rows[:, :-1]
    white[:, 0] *= math.sqrt(1 - rho**2)
    ones = np.full(n, 1 - rho)
    ones[0] = math.sqrt(1 - rho**2)
    length = float(np.linalg.norm(ones))
    ones /= length
    # The rows have no part along the level any more, so only the step vectors need theirs subtracted.
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
    """Return the log evidence of two modes.

    The values are divided in two where that leaves the least sum of squares; the evidence also uses how often they
    change sides.
    """
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
    """Return the log evidence of two steps and their positions: the pair that explains most with independent noise."""
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
            _log_factor(of) - (n - 3) / 2 * _log_left(of.rest, of.pairs(rows, one, other))
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
    """Return the size of a movement in units of the noise that it leaves, for rows whose sum of squares is n."""
    size: Floats = np.sqrt(n * explained / np.maximum(n - explained, 1e-9 * n))
    return size


def _log_sum(logs: Floats, axis: int) -> Floats:
    top = logs.max(axis=axis, keepdims=True)
    total: Floats = (top + np.log(np.exp(logs - top).sum(axis=axis, keepdims=True))).squeeze(axis)
    return total
