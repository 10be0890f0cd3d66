"""Correlation of two columns: Pearson, Spearman, Kendall, each with its p as R's cor.test gives it.

All of them take the pairs as independent; each result says so. `prob_r` gives the significance from
r and n alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any

from dbdyno import _core
from dbdyno.base.errors import StatsError
from dbdyno.stats import tails
from dbdyno.stats.arrays import complete

NOTE = "assumes independent pairs"
#: R's limits: Spearman's p by the exact orders, by the Edgeworth series; Kendall's exact p.
_ORDERS_UP_TO = 9
_EDGEWORTH_UP_TO = 1290
_KENDALL_EXACT_BELOW = 50


@dataclass(frozen=True, slots=True)
class Correlation:
    """One correlation: `value` in -1..1 over `n` pairs, the test's `statistic` with its name and
    `df` (None where it has none), `log10_p` two-sided and how it was found, the interval
    `low`..`high` at `level` (NaN where there is none), and the `note` to be shown with it."""

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
        """The two-sided p; 0.0 below about 1e-308."""
        return float(10.0**self.log10_p)


def prob_r(r: float, n: int) -> float:
    """Two-sided p of a correlation `r` over `n` pairs: Student's t at r sqrt((n-2)/(1-r^2)) with
    n - 2 degrees of freedom. Raises `StatsError` below three pairs or outside -1..1."""
    return float(10.0 ** prob_r_log10(r, n))


def prob_r_log10(r: float, n: int) -> float:
    """log10 of `prob_r`, which underflows for many pairs."""
    found = _core.prob_r_log10(r, n) if 0 <= n < 2**63 else None
    if found is None:
        raise StatsError(
            f"the significance of r = {r} over n = {n} pairs is not defined",
            next_step="give r within -1..1 and n of at least 3, below 2^63",
        )
    return found


def fisher_interval(r: float, n: int, level: float = 0.95) -> tuple[float, float]:
    """Fisher's interval: atanh r +- z / sqrt(n - 3), back by tanh (Fisher 1921). NaN below four
    pairs."""
    from scipy import special

    if n <= 3:
        return math.nan, math.nan
    if abs(r) == 1.0:
        return r, r
    half = float(special.ndtri(0.5 + level / 2)) / math.sqrt(n - 3)
    return math.tanh(math.atanh(r) - half), math.tanh(math.atanh(r) + half)


def correlate(x: Any, y: Any, *, level: float = 0.95, tau: bool = False) -> tuple[Correlation, ...]:
    """Pearson and Spearman (and with `tau` Kendall) of two columns; rows in which one has no value
    are left out.

    Raises `StatsError` below three pairs, or when a column does not vary.
    """
    a, b = complete(x, y)
    found = _core.stats_pairs(a, b, tau)
    n = int(found["n"])
    if n < 3:
        raise StatsError(f"a correlation of {n} pairs", next_step="give at least three")
    if found["r"] is None or found["rho"] is None:
        raise StatsError("a correlation with a column that does not vary")
    results = [_pearson(found["r"], n, level), _spearman(found, n, level)]
    if tau:
        results.append(_kendall(found["tau"], n, level))
    return tuple(results)


def pearson(x: Any, y: Any, *, level: float = 0.95) -> Correlation:
    """Pearson's r with Fisher's interval."""
    return correlate(x, y, level=level)[0]


def spearman(x: Any, y: Any) -> Correlation:
    """Spearman's rho; without ties p is exact up to 9 pairs, by the Edgeworth series up to 1290,
    else by Student's t, as in R."""
    return correlate(x, y)[1]


def kendall(x: Any, y: Any) -> Correlation:
    """Kendall's tau-b; p exact below 50 pairs without ties, else by the normal, as in R."""
    return correlate(x, y, tau=True)[2]


def _pearson(r: float, n: int, level: float) -> Correlation:
    low, high = fisher_interval(r, n, level)
    rest = (1 - abs(r)) * (1 + abs(r))
    t = r * math.sqrt((n - 2) / rest) if rest > 0 else math.copysign(math.inf, r)
    return Correlation("Pearson r", r, n, "t", t, float(n - 2), prob_r_log10(r, n), "Student's t", low, high, level)


def _spearman(found: dict[str, Any], n: int, level: float) -> Correlation:
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
    """Two-sided p over all n! orders: twice the smaller tail, that of S or beyond."""
    orders = _orders(n)
    low = sum(orders[: s // 2 + 1])
    high = sum(orders[s // 2 :])
    return min(2 * min(low, high) / math.factorial(n), 1.0)


def _spearman_edgeworth(s: float, n: int) -> float:
    """Two-sided p by Best and Roberts' series (1975, algorithm AS 89). As R does it: the lower tail
    is P(S < s + 2), the upper P(S >= s), S being even."""
    from scipy import special

    upper = s > (n**3 - n) / 6
    at = s if upper else s + 2
    b = 1.0 / n
    x = (6 * (at - 1) * b / (n * n - 1) - 1) * math.sqrt(n - 1)
    y = x * x
    inner = 0.0879 + 0.0151 * b - y * (0.0072 - 0.0831 * b + y * b * (0.0131 - 4.6e-4 * y))
    middle = -0.0758 + b * (0.1033 + 0.3932 * b) - y * b * inner
    series = x * b * (0.2274 + b * (0.2531 + 0.1745 * b) + y * middle) * math.exp(-y / 2)
    tail = float(special.ndtr(-x)) + series if upper else float(special.ndtr(x)) - series
    return min(2 * min(max(tail, 0.0), 1.0), 1.0)


def _kendall(found: dict[str, Any], n: int, level: float) -> Correlation:
    tau, score = float(found["tau"]), int(found["score"])
    ties_x, ties_y = found["ties_x"], found["ties_y"]
    if n < _KENDALL_EXACT_BELOW and not ties_x and not ties_y:
        concordant = (n * (n - 1) // 2 + score) // 2
        log10_p = _kendall_exact(concordant, n)
        return Correlation("Kendall tau", tau, n, "T", float(concordant), None, log10_p, "exact", level=level)
    z = score / math.sqrt(_kendall_variance(n, ties_x, ties_y))
    return Correlation("Kendall tau", tau, n, "z", z, None, tails.normal_log10_p(z), "normal", level=level)


def _kendall_exact(concordant: int, n: int) -> float:
    """log10 of twice the smaller tail over all orders: those with k inversions are the
    coefficients of the product of (1 + x + ... + x^(i-1)) for i = 1..n (Kendall 1938)."""
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
    """Variance of the score with ties on both sides (Kendall, Rank Correlation Methods, 1970)."""

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
