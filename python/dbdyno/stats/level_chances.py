"""Simulated chances that a steady, drifting or stepping series looks like an observed series.

A series of n values is compared with thousands of simulated normal series of the same length, drawn once with a fixed
seed:

- Steady series with autocorrelation of any degree (AR(1) coefficients of 0 to 0.95). The chance of a movement as clear
  as the observed one is the largest over all coefficients, so the true coefficient need not be known.
- Series that drift along a straight line, by as much as the observed one seems to.
- Series with a step as large as the observed one seems to have.

    >>> import numpy as np
    >>> noise = np.resize([0.1, -0.2, 0.15, -0.1, 0.05, 0, -0.05], 24)
    >>> rows = np.stack([noise, noise + np.linspace(0, 2, 24), noise + np.r_[np.zeros(12), np.ones(12)]])
    >>> classify(rows, level=0.95).kinds()
    ['steady', 'drift', 'step']

Limits: drifting and stepping series are simulated with independent noise. A drift in strongly autocorrelated noise is
mistaken for a step more often than the level says, the more so the longer the series.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dbdyno.stats.arrays import Floats
from dbdyno.stats.level_models import SIDE_LEAST, Evidence, evidence

DEGREES = (0.0, 0.1, 0.2, 0.3, 0.45, 0.6, 0.75, 0.9, 0.95)
EACH, EACH_LEAST, EACH_VALUES = 1_999, 399, 100_000
"""Steady series per AR(1) coefficient: maximum and minimum number, and the total number of values aimed at."""
MOVING, MOVING_LEAST, MOVING_VALUES = 12_000, 4_000, 600_000
"""Drifting and stepping series: maximum and minimum number, and the total number of values aimed at."""
ALIKE = 12
"""A series is compared with 1 / `ALIKE` of the simulated series: those whose movement is most similar in size."""
SEED = 20_261_127
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Classification:
    """Classification of each row.

    Attributes:
        seen: Evidence of each row.
        p: Largest chance among the rejected explanations.
        two: True for two steps. At most one of the four flags of a row is set; none is set if the row may be steady.
        step: True for one step.
        drift: True for a drift.
        either: True for a step or a drift, if the two cannot be distinguished.
    """

    seen: Evidence
    p: Floats
    two: Flags
    step: Flags
    drift: Flags
    either: Flags

    def kinds(self) -> list[str]:
        """Return the class of each row: "two", "step", "drift", "either" or "steady"."""
        flags = {"two": self.two, "step": self.step, "drift": self.drift, "either": self.either}
        return [next((word for word, rows in flags.items() if rows[at]), "steady") for at in range(self.p.size)]


def classify(rows: Floats, *, level: float) -> Classification:
    """Classify rows of logarithms in time order as steady, drifting or stepping.

    Two steps, and a drift without a step, are additional tests on rows that moved; each gets half of 1 - `level`.
    """
    seen, n, share = evidence(rows), rows.shape[1], 1 - level
    steady = chances_steady(seen, n)
    moved = steady <= share
    if not moved.any():
        return Classification(seen, steady, moved, moved, moved, moved)
    not_two, drifting = 2 * chances_not_two(seen, n), chances_drifting(seen, n)
    two = moved & (not_two <= share)
    step = moved & ~two & (drifting <= share)
    drift = moved & ~two & ~step & (2 * chances_stepping(seen, n) <= share)
    p = np.where(two, np.maximum(steady, not_two), np.where(step, np.maximum(steady, drifting), steady))
    return Classification(seen, p, two, step, drift, moved & ~two & ~step & ~drift)


def correlated_noise(rng: np.random.Generator, rhos: Floats, n: int) -> Floats:
    """Return a row of n normal values of variance 1 for each AR(1) coefficient."""
    rows = rng.normal(size=(rhos.size, n))
    rows[:, 1:] *= np.sqrt(1 - rhos**2)[:, None]
    for at in range(1, n):
        rows[:, at] += rhos * rows[:, at - 1]
    return rows


def chances_steady(evidence: Evidence, n: int) -> Floats:
    """Return, for each row, the chance of a movement at least as clear in a steady series of `n` values."""
    largest: Floats = np.stack([_tail(table, evidence.movement) for table in _steady(n)]).max(axis=0)
    return largest


def chances_drifting(evidence: Evidence, n: int) -> Floats:
    """Return by row the chance that a drifting series looks at least as much like a step as the row does."""
    table = _drifting_series(n)
    return _share_of_similar(
        evidence.step - evidence.drift, evidence.drift_size, table.step - table.drift, table.drift_size
    )


def chances_stepping(evidence: Evidence, n: int) -> Floats:
    """Return by row the chance that a series with a step looks at least as much like a drift as the row does."""
    table = _stepping_series(n)
    return _share_of_similar(
        evidence.drift - evidence.step, evidence.step_size, table.drift - table.step, table.step_size
    )


def chances_not_two(evidence: Evidence, n: int) -> Floats:
    """Return by row the chance that a drift or one step looks at least as much like two steps as the row does."""
    clearer, drifting, stepping = _step_excess(evidence), _drifting_series(n), _stepping_series(n)
    one = _share_of_similar(clearer, evidence.drift_size, _step_excess(drifting), drifting.drift_size)
    other = _share_of_similar(clearer, evidence.step_size, _step_excess(stepping), stepping.step_size)
    return np.maximum(one, other)


def _step_excess(evidence: Evidence) -> Floats:
    return evidence.two - np.maximum(evidence.step, evidence.drift)


@lru_cache(maxsize=32)
def _steady(n: int) -> tuple[Floats, ...]:
    rng, each = np.random.default_rng(SEED), min(max(EACH_VALUES // n, EACH_LEAST), EACH)
    return tuple(np.sort(evidence(correlated_noise(rng, np.full(each, rho), n)).movement) for rho in DEGREES)


@lru_cache(maxsize=32)
def _drifting_series(n: int) -> Evidence:
    rng, line = np.random.default_rng(SEED + 1), np.arange(n) - (n - 1) / 2
    sizes = rng.uniform(0, 2.5 * np.sqrt(n), _series_count(n))
    return evidence(rng.normal(size=(sizes.size, n)) + sizes[:, None] * line / np.linalg.norm(line))


@lru_cache(maxsize=32)
def _stepping_series(n: int) -> Evidence:
    rng = np.random.default_rng(SEED + 2)
    begin = rng.integers(SIDE_LEAST, n - SIDE_LEAST + 1, _series_count(n))
    steps = (np.arange(n) >= begin[:, None]) - (n - begin[:, None]) / n
    sizes = rng.uniform(0, 2.5 * np.sqrt(n), begin.size)
    return evidence(
        rng.normal(size=(begin.size, n)) + sizes[:, None] * steps / np.linalg.norm(steps, axis=1, keepdims=True)
    )


def _series_count(n: int) -> int:
    return min(max(MOVING_VALUES // n, MOVING_LEAST), MOVING)


def _tail(table: Floats, values: Floats) -> Floats:
    """Return, for each value, the share of a sorted table that is at least as large, counting the value itself."""
    return (1 + table.size - np.searchsorted(table, values * (1 - 1e-12))) / (table.size + 1)


def _share_of_similar(values: Floats, sizes: Floats, table: Floats, of_size: Floats) -> Floats:
    """Return the p of each value: among simulated series of similar size, the share with a value as large or larger."""
    order, alike = np.argsort(of_size), table.size // ALIKE
    begin = np.clip(np.searchsorted(of_size[order], sizes) - alike // 2, 0, table.size - alike)
    rows = table[order][begin[:, None] + np.arange(alike)]
    shares: Floats = (1 + (rows >= values[:, None]).sum(axis=1)) / (alike + 1)
    return shares
