"""Selection of the simple law that a curve follows: constant, linear, saturating, or the Universal Scalability Law.

    constant     y = c
    linear       y = a + b x
    saturating   y = m x / (x + h)       half of the maximum, m, is reached at h (Michaelis and Menten, 1913)
    USL          y = g x / (1 + s (x - 1) + k x (x - 1))       if x counts sessions, processes or threads

The laws are fitted to the geometric means of the levels by least squares of relative residuals. The selected law has
the least Akaike information criterion, corrected for few points (Hurvich and Tsai, 1989), with the scatter of the
blocks as the known variance. `farthest` is the largest relative deviation from a level. A law that deviates by more
than 10 % is rejected, unless the mean of that level is itself not known that well; then up to 25 % is accepted.

Intervals come from the jackknife over blocks (Tukey, 1958): each block is left out once, Student's t with n - 1 degrees
of freedom. If contention or coherence is estimated as 0, it is at its bound, where leaving out a block changes nothing:
its interval is then that of the fit without bounds, cut at 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dbdyno.base.errors import StatsError
from dbdyno.stats.arrays import Floats
from dbdyno.stats.distributions import t_quantile
from dbdyno.stats.means import Estimate
from dbdyno.stats.scalability import usl

LEVELS_LEAST = 4
FARTHEST = 0.1
"""Largest relative deviation from a level, beyond the uncertainty of that level, at which a law is accepted."""
FARTHEST_UNSURE = 0.25
"""Largest relative deviation from a level at which a law is accepted, however uncertain that level is."""


@dataclass(frozen=True, slots=True)
class Law:
    """A fitted law.

    Attributes:
        law: Name of the law: "constant", "linear", "saturating" or "usl".
        parameters: The parameters (see the module docstring). For USL also `peak`, the load with the greatest
            throughput, and `most`, the throughput there.
        farthest: Largest relative deviation from a level.
        surely: The largest deviation that remains after the uncertainty of each level's mean is subtracted.
    """

    law: str
    parameters: dict[str, Estimate]
    farthest: float
    surely: float

    @property
    def holds(self) -> bool:
        """Return True if the law describes every level well enough."""
        return self.surely <= FARTHEST and self.farthest <= FARTHEST_UNSURE

    def values_at(self, x: ArrayLike) -> Floats:
        """Return the values of the law at `x`."""
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


def _fit_saturation(x: Floats, y: Floats) -> dict[str, float]:
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
    """Fit contention and coherence by the linearised law x / y = (1 + s (x - 1) + k x (x - 1)) / g; may be below 0."""
    design = np.column_stack([np.ones_like(x), x - 1, x * (x - 1)])
    (one, two, three), *_ = np.linalg.lstsq(design * (y / x)[:, None], np.ones_like(y), rcond=None)
    return {"s": float(two / one), "k": float(three / one)}


_LAWS: tuple[tuple[str, int, _Fit], ...] = (
    ("constant", 1, _constant),
    ("linear", 2, _linear),
    ("saturating", 2, _fit_saturation),
    ("usl", 3, _usl),
)


def fit_law(x: ArrayLike, values: ArrayLike, *, is_load: bool, level: float) -> Law | None:
    """Fit each law and return the best one, or None if there are fewer than four levels or two blocks.

    A law of two parameters through three points says nothing. Blocks with a gap are left out. The result is also None
    if levels repeat or are not above 0, or if no law can be fitted.

    Args:
        x: The levels.
        values: Array of (blocks, levels) of numbers above 0.
        is_load: True if `x` counts concurrent sessions, processes or threads, so that USL applies.
        level: Confidence level of the intervals.
    """
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


def _jackknife(fit: _Fit, x: Floats, logs: Floats, reach: float) -> dict[str, Estimate]:
    """Return the parameters of a fit, with intervals of `reach` standard errors."""
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
    n = logs.shape[0]
    reach = t_quantile(n - 1, 0.5 + level / 2)
    parameters = _jackknife(fit, x, logs, reach)
    on_bound = [name for name in ("s", "k") if law == "usl" and parameters[name].value == 0]
    if on_bound:
        free = _jackknife(_usl_without_bounds, x, logs, reach)
        parameters |= {name: Estimate(0.0, 0.0, max(free[name].high, 0.0)) for name in on_bound}
    found = {name: one.value for name, one in parameters.items()}
    at = _AT[law](found, x)
    off = np.abs(at / np.exp(logs.mean(axis=0)) - 1)
    own = logs - logs.mean(axis=1, keepdims=True)
    unsure = reach * own.std(axis=0, ddof=1) / math.sqrt(n)
    return Law(law, parameters, float(off.max()), float((off - unsure).max()))
