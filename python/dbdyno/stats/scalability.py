"""The Universal Scalability Law: throughput as a function of load, with contention and coherency.

    X(N) = gamma N / (1 + alpha (N - 1) + beta N (N - 1))

(Gunther, Guerrilla Capacity Planning, 2007.) `gamma` is the throughput at a load of 1, `alpha` the serial share
(contention), `beta` the cost of keeping shared data consistent (coherency). With beta above 0 the throughput has a peak
at N* = sqrt((1 - alpha) / beta). The law is fitted by least squares with alpha, beta >= 0. Intervals come from the
linear approximation at the fit, and assume independent rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dbdyno.base.errors import StatsError
from dbdyno.stats.arrays import Floats, complete_rows
from dbdyno.stats.distributions import t_quantile

NOTE = "assumes independent rows"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter with its standard error and interval (NaN without degrees of freedom)."""

    name: str
    estimate: float
    error: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, eq=False)
class UslFit:
    """A fitted law.

    `peak` is N* (infinite if beta is 0) with its interval, and `peak_throughput` the throughput there. `limit` is the
    throughput that contention alone would allow, gamma / alpha.
    """

    alpha: Parameter
    beta: Parameter
    gamma: Parameter
    peak: Parameter
    peak_throughput: float
    limit: float
    residual_error: float
    r2: float
    n: int
    residuals: Floats
    level: float
    note: str = NOTE

    def predict(self, load: Any) -> Floats:
        """Return X(N) at these loads."""
        at = np.asarray(load, dtype=np.float64)
        parameters = (self.alpha.estimate, self.beta.estimate, self.gamma.estimate)
        return _model(np.array(parameters), at)


def _model(parameters: Floats, n: Floats) -> Floats:
    alpha, beta, gamma = parameters
    throughput: Floats = gamma * n / (1 + alpha * (n - 1) + beta * n * (n - 1))
    return throughput


def _jacobian(parameters: Floats, n: Floats) -> Floats:
    alpha, beta, gamma = parameters
    below = 1 + alpha * (n - 1) + beta * n * (n - 1)
    slope = -gamma * n / below**2
    return np.column_stack([slope * (n - 1), slope * n * (n - 1), n / below])


def _start(n: Floats, x: Floats) -> Floats:
    """Return start values from the linearised law N / X = (1 + alpha (N - 1) + beta N (N - 1)) / gamma."""
    design = np.column_stack([np.ones_like(n), n - 1, n * (n - 1)])
    q, r = np.linalg.qr(design * (x / n)[:, None])
    first, second, third = np.linalg.solve(r, q.T @ np.ones_like(n))
    if not first > 0:
        return np.array([0.01, 1e-6, float((x / n).max())])
    return np.array([max(second / first, 1e-9), max(third / first, 1e-12), 1 / first])


def usl(load: Any, throughput: Any, *, level: float = 0.95) -> UslFit:
    """Fit the law to loads (processors, sessions; > 0) and their throughputs (> 0).

    Raises:
        StatsError: There are fewer than four rows or three different loads, or values are not above 0.
    """
    from scipy import optimize

    n, x = complete_rows(load, throughput)
    if n.size < 4 or np.unique(n).size < 3:
        raise StatsError(
            f"the scalability law has three parameters; {n.size} rows at {np.unique(n).size} loads are too few",
            next_step="measure at least four rows at three loads or more",
        )
    if min(n.min(), x.min()) <= 0:
        raise StatsError("loads and throughputs must be above 0", next_step="exclude the other rows with --where")
    found = optimize.least_squares(
        lambda p: _model(p, n) - x,
        _start(n, x),
        jac=lambda p: _jacobian(p, n),
        bounds=([0, 0, 0], [np.inf, np.inf, np.inf]),
        x_scale="jac",
        ftol=1e-15,
        xtol=1e-15,
        gtol=1e-15,
        max_nfev=10_000,
    )
    at: Floats = _polish(found.x, n, x)
    residuals = x - _model(at, n)
    df = n.size - 3
    rss = float(residuals @ residuals)
    error = math.sqrt(rss / df) if df > 0 else math.nan
    reach = t_quantile(df, 0.5 + level / 2) if df > 0 else math.nan
    covariance = _covariance(at, n) * error**2
    parameters = [
        _parameter(name, float(value), math.sqrt(variance), reach)
        for name, value, variance in zip(("alpha", "beta", "gamma"), at, np.diag(covariance), strict=True)
    ]
    alpha, beta, gamma = (float(v) for v in at)
    peak = _peak(alpha, beta, covariance, reach)
    best = float(_model(at, np.array([peak.estimate]))[0]) if beta > 0 else math.nan
    first, second, third = parameters
    return UslFit(
        alpha=first,
        beta=second,
        gamma=third,
        peak=peak,
        peak_throughput=best,
        limit=gamma / alpha if alpha > 0 else math.inf,
        residual_error=error,
        r2=1 - rss / float(((x - x.mean()) ** 2).sum()) if np.ptp(x) > 0 else math.nan,
        n=n.size,
        residuals=residuals,
        level=level,
    )


def _polish(at: Floats, n: Floats, x: Floats) -> Floats:
    """Refine the fit by Gauss-Newton steps.

    A parameter that the search left slightly above its bound is first set to the bound, unless that fits worse.
    """
    best, tiny = at.copy(), np.array([1e-9, 1e-9, 0.0])

    def squares(p: Floats) -> float:
        return float(((_model(p, n) - x) ** 2).sum())

    on_bound = best < tiny
    if on_bound.any():
        candidate = np.where(on_bound, 0.0, best)
        if squares(candidate) <= squares(best) * (1 + 1e-9):
            best = candidate
    free: NDArray[np.bool_] = best > 0
    for _ in range(20):
        q, r = np.linalg.qr(_jacobian(best, n)[:, free])
        step = np.zeros(3)
        step[free] = np.linalg.solve(r, q.T @ (x - _model(best, n)))
        if not squares(best + step) < squares(best) or (best + step < 0).any():
            break
        best = best + step
    return best


def _covariance(at: Floats, n: Floats) -> Floats:
    _, r = np.linalg.qr(_jacobian(at, n))
    inverse = np.linalg.inv(r)
    covariance: Floats = inverse @ inverse.T
    return covariance


def _parameter(name: str, value: float, error: float, reach: float) -> Parameter:
    return Parameter(name, value, error, value - reach * error, value + reach * error)


def _peak(alpha: float, beta: float, covariance: Floats, reach: float) -> Parameter:
    """Return N* = sqrt((1 - alpha) / beta) with its interval on the log scale, by the delta method."""
    if beta <= 0 or alpha >= 1:
        return Parameter("peak", math.inf if alpha < 1 else 1.0, math.nan, math.nan, math.nan)
    value = math.sqrt((1 - alpha) / beta)
    slope = np.array([-0.5 / (1 - alpha), -0.5 / beta, 0.0])
    error = math.sqrt(float(slope @ covariance @ slope))
    ends = (value * math.exp(-reach * error), value * math.exp(reach * error))
    return Parameter("peak", value, value * error, *ends)
