"""Which simple law a curve follows: constant, linear, saturating, or the Universal Scalability Law.

    constant     y = c
    linear       y = a + b x
    saturating   y = m x / (x + h)       half of the most, m, is reached at h (Michaelis and Menten, 1913)
    USL          y = g x / (1 + s (x - 1) + k x (x - 1))       where x counts sessions, processes or threads

Fitted to the geometric means of the levels by least squares of relative residuals. The law is the one with the least
Akaike information criterion, corrected for few points (Hurvich and Tsai, 1989), with the scatter of the blocks as
the known variance; `farthest` says how far it misses a level, and a law that misses by more than a tenth is none,
unless that level's mean is itself not known so well: then up to a quarter is let pass.
Intervals by the jackknife over blocks (Tukey, 1958): each block is left out once, Student's t with n - 1 degrees.
Contention or coherence that is found to be 0 lies on its bound, where leaving out a block moves nothing: its interval
is that of the fit without bounds, as far as it is not below 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dbdyno.base.errors import StatsError
from dbdyno.stats.arrays import Floats
from dbdyno.stats.scalability import usl

LEVELS_LEAST = 4
FARTHEST = 0.1
"""A law that surely misses a level by more than this is not told as one."""
FARTHEST_UNSURE = 0.25
"""Nor is one that misses a level by more than this, however little is known of that level."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A parameter with the ends of its interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Law:
    """A law: its name, its parameters (see the module), and how far it is from the level that it misses most, as a
    share; `surely` is by how much it misses one at least, as the level's own mean is only known within an interval.
    `peak` of USL is where the throughput is greatest and `most` how large it is there."""

    law: str
    parameters: dict[str, Estimate]
    farthest: float
    surely: float

    @property
    def holds(self) -> bool:
        """Whether it describes every level."""
        return self.surely <= FARTHEST and self.farthest <= FARTHEST_UNSURE

    def at(self, x: ArrayLike) -> Floats:
        """What it says of these places."""
        plain = {name: one.value for name, one in self.parameters.items()}
        return np.asarray(_AT[self.law](plain, np.asarray(x, dtype=np.float64)))


_Fit = Callable[[Floats, Floats], dict[str, float]]
_AT: dict[str, Callable[[dict[str, float], Floats], Floats]] = {
    "constant": lambda p, x: np.full(x.size, p["c"]),
    "linear": lambda p, x: p["a"] + p["b"] * x,
    "saturating": lambda p, x: p["m"] * x / (x + p["h"]),
    "usl": lambda p, x: p["g"] * x / (1 + p["s"] * (x - 1) + p["k"] * x * (x - 1)),
}


def _constant(x: Floats, y: Floats) -> dict[str, float]:
    return {"c": float((1 / y).sum() / (1 / y**2).sum())}


def _linear(x: Floats, y: Floats) -> dict[str, float]:
    design = np.column_stack([1 / y, x / y])
    (a, b), *_ = np.linalg.lstsq(design, np.ones_like(y), rcond=None)
    return {"a": float(a), "b": float(b)}


def _saturating(x: Floats, y: Floats) -> dict[str, float]:
    from scipy import optimize

    m, h = float(y.max()) * 1.1, float(x[np.argmin(np.abs(y - y.max() / 2))])

    def off(logs: Floats) -> Floats:
        most, half = np.exp(np.clip(logs, -300, 300))
        return np.asarray(most * x / (x + half) / y - 1)

    found = optimize.least_squares(off, np.log([m, h]), max_nfev=500)
    most, half = np.exp(np.clip(found.x, -300, 300))
    return {"m": float(most), "h": float(half)}


def _usl(x: Floats, y: Floats) -> dict[str, float]:
    found = usl(x, y)
    g, s, k = found.gamma.estimate, found.alpha.estimate, found.beta.estimate
    return {"g": g, "s": s, "k": k, "peak": found.peak.estimate, "most": found.peak_throughput}


def _usl_without_bounds(x: Floats, y: Floats) -> dict[str, float]:
    """Contention and coherence from the law made linear, x / y = (1 + s (x - 1) + k x (x - 1)) / g; may be below 0."""
    design = np.column_stack([np.ones_like(x), x - 1, x * (x - 1)])
    (one, two, three), *_ = np.linalg.lstsq(design * (y / x)[:, None], np.ones_like(y), rcond=None)
    return {"s": float(two / one), "k": float(three / one)}


_LAWS: tuple[tuple[str, int, _Fit], ...] = (
    ("constant", 1, _constant),
    ("linear", 2, _linear),
    ("saturating", 2, _saturating),
    ("usl", 3, _usl),
)


def fit_law(x: ArrayLike, values: ArrayLike, *, is_load: bool, level: float) -> Law | None:
    """The law of `values`, an array of (blocks, levels) of numbers above 0, over the levels' `x`; `is_load` where
    `x` counts what works at once. Blocks with a gap are left out. None below four levels or two blocks: a law of two
    parameters through three points says nothing."""
    at, given = np.asarray(x, dtype=np.float64), np.asarray(values, dtype=np.float64)
    given = given[(np.isfinite(given) & (given > 0)).all(axis=1)]
    if at.size < LEVELS_LEAST or given.shape[0] < 2 or np.unique(at).size < at.size or (at <= 0).any():
        return None
    logs = np.log(given)
    means = np.exp(logs.mean(axis=0))
    own = logs - logs.mean(axis=0) - logs.mean(axis=1, keepdims=True) + logs.mean()
    freedom = (given.shape[0] - 1) * (at.size - 1)
    variance = max(float((own**2).sum()) / freedom / given.shape[0], 1e-12)
    best: tuple[float, str, _Fit] | None = None
    for law, count, fit in _LAWS:
        if at.size < count + 2 or (law == "usl" and not is_load):
            continue
        try:
            off = np.log(np.maximum(_AT[law](fit(at, means), at), 1e-300) / means)
        except (StatsError, np.linalg.LinAlgError):
            continue
        score = float((off**2).sum()) / variance + 2 * count * at.size / (at.size - count - 1)
        best = (score, law, fit) if best is None or score < best[0] else best
    if best is None:
        return None
    _, law, fit = best
    return _law_of_fit(law, fit, at, logs, level)


def _jackknifed(fit: _Fit, x: Floats, logs: Floats, reach: float) -> dict[str, Estimate]:
    """The parameters of a fit, with intervals of `reach` standard errors."""
    n, without = logs.shape[0], []
    for block in range(n):
        try:
            without.append(fit(x, np.exp(np.delete(logs, block, axis=0).mean(axis=0))))
        except (StatsError, np.linalg.LinAlgError):
            continue
    parameters = {}
    for name, value in fit(x, np.exp(logs.mean(axis=0))).items():
        others = np.array([one[name] for one in without])
        error = math.nan
        if len(without) == n and np.isfinite(others).all() and math.isfinite(value):
            error = math.sqrt((n - 1) / n * float(((others - others.mean()) ** 2).sum()))
        parameters[name] = Estimate(value, value - reach * error, value + reach * error)
    return parameters


def _law_of_fit(law: str, fit: _Fit, x: Floats, logs: Floats, level: float) -> Law:
    from scipy import special

    n = logs.shape[0]
    reach = float(special.stdtrit(n - 1, 0.5 + level / 2))
    parameters = _jackknifed(fit, x, logs, reach)
    on_bound = [name for name in ("s", "k") if law == "usl" and parameters[name].value == 0]
    if on_bound:
        free = _jackknifed(_usl_without_bounds, x, logs, reach)
        parameters |= {name: Estimate(0.0, 0.0, max(free[name].high, 0.0)) for name in on_bound}
    found = {name: one.value for name, one in parameters.items()}
    at = _AT[law](found, x)
    off = np.abs(at / np.exp(logs.mean(axis=0)) - 1)
    own = logs - logs.mean(axis=1, keepdims=True)
    unsure = reach * own.std(axis=0, ddof=1) / math.sqrt(n)
    return Law(law, parameters, float(off.max()), float((off - unsure).max()))
