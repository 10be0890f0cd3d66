"""Linear regression with the table that R's summary(lm) prints.

The core computes the fit by Householder's QR, for small data with twice the digits of a double, so that near-collinear
columns (NIST's Filip, Longley, Wampler) keep the digits that the data carry. Errors, t and p assume independent rows
with normal errors of one spread; the note says so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dbdyno import _core
from dbdyno.base.json_types import JsonObject
from dbdyno.stats.arrays import Floats, complete_rows
from dbdyno.stats.distributions import f_log10_p, t_log10_p, t_quantile
from dbdyno.stats.scalability import NOTE, Parameter

INTERCEPT = "(Intercept)"


@dataclass(frozen=True, slots=True)
class Coefficient(Parameter):
    """One line of the table: a parameter with its t and the log10 of its two-sided p."""

    t: float
    log10_p: float

    @property
    def p(self) -> float:
        """Return the two-sided p; it is 0.0 below about 1e-308."""
        return float(10.0**self.log10_p)


@dataclass(frozen=True, slots=True, eq=False)
class LinearFit:
    """A fit over `n` rows with `df` residual degrees of freedom.

    `residual_error` is the residual standard deviation; `f` with `f_df` and `f_log10_p` tests all coefficients except
    the intercept; `residual_quartiles` are minimum, Q1, median, Q3, maximum. Without an intercept R2 and F refer to
    zero instead of the mean, as in R.
    """

    coefficients: tuple[Coefficient, ...]
    n: int
    df: int
    residual_error: float
    r2: float
    adjusted_r2: float
    f: float
    f_df: tuple[int, int]
    f_log10_p: float
    residual_quartiles: tuple[float, float, float, float, float]
    residuals: Floats
    residual_squares: float
    explained_squares: float
    level: float
    note: str = NOTE

    def __getitem__(self, name: str) -> Coefficient:
        return next(c for c in self.coefficients if c.name == name)


def lm(
    y: Any,
    *xs: Any,
    names: Sequence[str] | None = None,
    intercept: bool = True,
    degree: int = 1,
    level: float = 0.95,
) -> LinearFit:
    """Fit `y` by least squares on one or several columns, or on the powers of one column up to `degree`.

    Rows in which a column has no value are left out.

    Args:
        y: Dependent column.
        xs: Independent columns.
        names: Names of the columns in the table; x1, x2 ... if None.
        intercept: True to fit an intercept.
        degree: Highest power of a single column.
        level: Confidence level of the intervals.

    Raises:
        StatsError: There are fewer rows than coefficients, or a column is a linear combination of others.
    """
    target, *columns = complete_rows(y, *xs)
    found, residual_bytes = _core.stats_fit(target, columns, intercept, degree)
    given = list(names or [f"x{at + 1}" for at in range(len(columns))])
    if degree > 1:
        given = [given[0] if power == 1 else f"{given[0]}^{power}" for power in range(1, degree + 1)]
    if intercept:
        given.insert(0, INTERCEPT)
    n, p = int(found["n"]), len(given)
    df = n - p
    reach = t_quantile(df, 0.5 + level / 2) if df > 0 else math.nan
    coefficients = tuple(
        _coefficient(name, estimate, math.nan if error is None else error, df, reach)
        for name, estimate, error in zip(given, found["coefficients"], found["errors"], strict=True)
    )
    residuals: Floats = np.frombuffer(residual_bytes, dtype="<f8")
    rss, explained = found["residual_squares"], found["explained_squares"]
    return LinearFit(
        coefficients=coefficients,
        n=n,
        df=df,
        residual_error=math.sqrt(rss / df) if df > 0 else math.nan,
        residual_quartiles=tuple(np.quantile(residuals, [0, 0.25, 0.5, 0.75, 1]).tolist()),
        residuals=residuals,
        residual_squares=rss,
        explained_squares=explained,
        level=level,
        **_whole(rss, explained, df, p - intercept, n - intercept),
    )


def _coefficient(name: str, estimate: float, error: float, df: int, reach: float) -> Coefficient:
    t = estimate / error if error > 0 else math.copysign(math.inf, estimate)
    if math.isnan(error):
        t = math.nan
    half = reach * error
    return Coefficient(name, estimate, error, estimate - half, estimate + half, t, t_log10_p(t, df))


def _whole(rss: float, explained: float, df: int, terms: int, total: int) -> JsonObject:
    """Return R2, adjusted R2 and the F test of the whole fit, as fields of `LinearFit`."""
    all_squares = rss + explained
    r2 = explained / all_squares if all_squares > 0 else math.nan
    adjusted, f = math.nan, math.nan
    if df > 0:
        adjusted = 1 - (rss / df) / (all_squares / total) if all_squares > 0 else math.nan
        if terms > 0:
            f = (explained / terms) / (rss / df) if rss > 0 else math.inf
    return {
        "r2": r2,
        "adjusted_r2": adjusted,
        "f": f,
        "f_df": (terms, df),
        "f_log10_p": f_log10_p(f, terms, df) if terms > 0 and df > 0 else math.nan,
    }
