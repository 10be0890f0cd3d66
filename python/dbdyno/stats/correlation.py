"""Pearson's, Spearman's and Kendall's correlation of two columns, with the p values of R's cor.test.

All of them assume independent pairs; each result says so. `prob_r` computes the significance from r and n alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from dbdyno import _core
from dbdyno.base.errors import StatsError
from dbdyno.stats.arrays import complete_rows
from dbdyno.stats.distributions import normal_cdf, normal_log10_p, normal_quantile

NOTE = "assumes independent pairs"
#: R's limits on the number of pairs: exact p of Spearman; Edgeworth series for Spearman; exact p of Kendall.
_ORDERS_UP_TO = 9
_EDGEWORTH_UP_TO = 1290
_KENDALL_EXACT_BELOW = 50


@dataclass(frozen=True, slots=True)
class Correlation:
    """One correlation coefficient with its test.

    Attributes:
        method: Name of the coefficient.
        value: The coefficient, -1 to 1.
        n: Number of pairs.
        statistic_name: Name of the test statistic.
        statistic: Value of the test statistic.
        df: Degrees of freedom; None if the test has none.
        log10_p: log10 of the two-sided p.
        how: How p was computed.
        low: Lower end of the interval of `value`; NaN if there is none.
        high: Upper end of the interval of `value`; NaN if there is none.
        level: Confidence level of the interval.
        note: Assumption of the test, to be shown with the result.
    """

    method: str
    value: float
    n: int
    statistic_name: str
    statistic: float
    df: float | None
    log10_p: float
    how: str
    low: float = math.nan
    high: float = math.nan
    level: float = 0.95
    note: str = NOTE

    @property
    def p(self) -> float:
        """Return the two-sided p; it is 0.0 below about 1e-308."""
        return float(10.0**self.log10_p)


def prob_r(r: float, n: int) -> float:
    """Return the two-sided p of a correlation `r` over `n` pairs.

    It is Student's t at r sqrt((n-2)/(1-r^2)) with n - 2 degrees of freedom.

    Raises:
        StatsError: There are fewer than three pairs, or `r` is outside -1..1.
    """
    return float(10.0 ** prob_r_log10(r, n))


def prob_r_log10(r: float, n: int) -> float:
    """Return log10 of `prob_r`, which itself underflows for many pairs.

    Raises:
        StatsError: `n` is below 3 or not below 2^63, or `r` is outside -1..1.
    """
    found = _core.prob_r_log10(r, n) if 0 <= n < 2**63 else None
    if found is None:
        raise StatsError(
            f"the significance of r = {r} over n = {n} pairs is not defined",
            next_step="give r within -1..1 and n of at least 3, below 2^63",
        )
    return found


def fisher_interval(r: float, n: int, level: float = 0.95) -> tuple[float, float]:
    """Return Fisher's interval of a correlation `r` over `n` pairs; NaN below four pairs.

    The interval is tanh of atanh r +- z / sqrt(n - 3) (Fisher 1921).
    """
    if n <= 3:
        return math.nan, math.nan
    if abs(r) == 1.0:
        return r, r
    half = normal_quantile(0.5 + level / 2) / math.sqrt(n - 3)
    return math.tanh(math.atanh(r) - half), math.tanh(math.atanh(r) + half)


def correlate(x: Any, y: Any, *, level: float = 0.95, tau: bool = False) -> tuple[Correlation, ...]:
    """Return Pearson's and Spearman's correlation of two columns, and Kendall's if `tau` is set.

    Rows in which a column has no value are left out.

    Raises:
        StatsError: There are fewer than three pairs, a column does not vary, or the columns differ in length.
    """
    a, b = complete_rows(x, y)
    found = _core.stats_pairs(a, b, tau)
    n = int(found["n"])
    if n < 3:
        raise StatsError(f"{n} pairs are too few for a correlation", next_step="give at least three pairs")
    if found["r"] is None or found["rho"] is None:
        raise StatsError(
            "a correlation needs two columns that vary, and one does not", next_step="choose another column"
        )
    results = [_pearson(found["r"], n, level), _spearman(found, n, level)]
    if tau:
        results.append(_kendall(found["tau"], n, level))
    return tuple(results)


def pearson(x: Any, y: Any, *, level: float = 0.95) -> Correlation:
    """Return Pearson's r with Fisher's interval.

    Raises:
        StatsError: As in `correlate`.
    """
    return correlate(x, y, level=level)[0]


def spearman(x: Any, y: Any) -> Correlation:
    """Return Spearman's rho with p computed as in R.

    Without ties p is exact up to 9 pairs and comes from the Edgeworth series up to 1290; otherwise from Student's t.

    Raises:
        StatsError: As in `correlate`.
    """
    return correlate(x, y)[1]


def kendall(x: Any, y: Any) -> Correlation:
    """Return Kendall's tau-b with p as in R: exact below 50 pairs without ties, else by the normal approximation.

    Raises:
        StatsError: As in `correlate`.
    """
    return correlate(x, y, tau=True)[2]


def _pearson(r: float, n: int, level: float) -> Correlation:
    low, high = fisher_interval(r, n, level)
    rest = (1 - abs(r)) * (1 + abs(r))
    t = r * math.sqrt((n - 2) / rest) if rest > 0 else math.copysign(math.inf, r)
    return Correlation("Pearson r", r, n, "t", t, float(n - 2), prob_r_log10(r, n), "Student's t", low, high, level)


def _spearman(found: Mapping[str, Any], n: int, level: float) -> Correlation:
    rho = max(-1.0, min(1.0, float(found["rho"])))
    if found["ties"] or n > _EDGEWORTH_UP_TO:
        s = (n**3 - n) * (1 - rho) / 6 if found["ties"] else float(found["s"])
        how, log10_p = "Student's t", prob_r_log10(rho, n)
    else:
        s = float(found["s"])
        p = _spearman_exact(round(s), n) if n <= _ORDERS_UP_TO else _spearman_edgeworth(s, n)
        how = "exact" if n <= _ORDERS_UP_TO else "Edgeworth series"
        log10_p = math.log10(p) if p > 0 else -math.inf
    return Correlation("Spearman rho", rho, n, "S", s, None, log10_p, how, level=level)


@cache
def _orders(n: int) -> tuple[int, ...]:
    return tuple(_core.spearman_orders(n))


def _spearman_exact(s: int, n: int) -> float:
    """Return the two-sided p over all n! orders: twice the smaller tail, which includes S itself."""
    orders = _orders(n)
    low = sum(orders[: s // 2 + 1])
    high = sum(orders[s // 2 :])
    return min(2 * min(low, high) / math.factorial(n), 1.0)


def _spearman_edgeworth(s: float, n: int) -> float:
    """Return the two-sided p by Best and Roberts' series (1975, algorithm AS 89).

    As in R, the lower tail is P(S < s + 2) and the upper P(S >= s), because S is even.
    """
    upper = s > (n**3 - n) / 6
    at = s if upper else s + 2
    b = 1.0 / n
    x = (6 * (at - 1) * b / (n * n - 1) - 1) * math.sqrt(n - 1)
    y = x * x
    inner = 0.0879 + 0.0151 * b - y * (0.0072 - 0.0831 * b + y * b * (0.0131 - 4.6e-4 * y))
    middle = -0.0758 + b * (0.1033 + 0.3932 * b) - y * b * inner
    series = x * b * (0.2274 + b * (0.2531 + 0.1745 * b) + y * middle) * math.exp(-y / 2)
    tail = normal_cdf(-x) + series if upper else normal_cdf(x) - series
    return min(2 * min(max(tail, 0.0), 1.0), 1.0)


def _kendall(found: Mapping[str, Any], n: int, level: float) -> Correlation:
    tau, score = float(found["tau"]), int(found["score"])
    ties_x, ties_y = found["ties_x"], found["ties_y"]
    if n < _KENDALL_EXACT_BELOW and not ties_x and not ties_y:
        concordant = (n * (n - 1) // 2 + score) // 2
        log10_p = _kendall_exact(concordant, n)
        return Correlation("Kendall tau", tau, n, "T", float(concordant), None, log10_p, "exact", level=level)
    z = score / math.sqrt(_kendall_variance(n, ties_x, ties_y))
    return Correlation("Kendall tau", tau, n, "z", z, None, normal_log10_p(z), "normal", level=level)


def _kendall_exact(concordant: int, n: int) -> float:
    """Return log10 of the exact two-sided p: twice the smaller tail over all orders.

    The numbers of orders with k inversions are the coefficients of the product of (1 + x + ... + x^(i-1)) for i = 1..n
    (Kendall 1938).
    """
    ways = [1]
    for i in range(2, n + 1):
        longer = [0] * (len(ways) + i - 1)
        running = 0
        for k in range(len(longer)):
            running += ways[k] if k < len(ways) else 0
            running -= ways[k - i] if k >= i and k - i < len(ways) else 0
            longer[k] = running
        ways = longer
    smaller = min(concordant, n * (n - 1) // 2 - concordant)
    tail = 2 * sum(ways[: smaller + 1])
    return min(math.log10(tail) - math.log10(math.factorial(n)), 0.0)


def _kendall_variance(n: int, ties_x: list[int], ties_y: list[int]) -> float:
    """Return the variance of the score with ties on both sides (Kendall, Rank Correlation Methods, 1970)."""

    def total(ties: list[int], of: Any) -> float:
        return float(sum(of(t) for t in ties))

    def pairs(t: int) -> int:
        return t * (t - 1)

    def triples(t: int) -> int:
        return t * (t - 1) * (t - 2)

    def plain(t: int) -> int:
        return t * (t - 1) * (2 * t + 5)

    spread = (plain(n) - total(ties_x, plain) - total(ties_y, plain)) / 18
    twos = total(ties_x, pairs) * total(ties_y, pairs) / (2 * n * (n - 1))
    threes = total(ties_x, triples) * total(ties_y, triples) / (9 * n * (n - 1) * (n - 2))
    return spread + twos + threes
