"""Correlations compared with R (numbers of its help pages), closed forms, all permutations, and scipy."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from dbdyno import _core
from dbdyno.stats.correlation import (
    _spearman_edgeworth,
    correlate,
    fisher_interval,
    kendall,
    pearson,
    prob_r,
    prob_r_log10,
    spearman,
)

#: Canned tuna: lightness and a panel's score (Hollander and Wolfe 1973; R, help page of cor.test).
X = [44.4, 45.9, 41.9, 53.3, 44.7, 44.1, 50.7, 45.2, 60.1]
Y = [2.6, 3.1, 2.5, 5.0, 3.6, 4.0, 5.2, 2.8, 3.8]


def test_tuna_as_r_prints_it() -> None:
    """cor.test(x, y, alternative = "greater"): t = 1.8411, df = 7, p = 0.05409, r = 0.5711816;
    Kendall T = 26, p = 0.05972, tau = 0.4444444; Spearman S = 48, p = 0.0484, rho = 0.6. R's
    one-sided p are half of these."""
    r, rho, tau = correlate(X, Y, tau=True)
    assert r.value == pytest.approx(0.5711816, abs=5e-8)
    assert (r.statistic, r.df) == (pytest.approx(1.8411, abs=5e-5), 7)
    assert r.p / 2 == pytest.approx(0.05409, abs=5e-6)
    assert (rho.statistic, rho.value, rho.how) == (48, pytest.approx(0.6), "exact")
    assert rho.p / 2 == pytest.approx(0.0484, abs=5e-5)
    assert (tau.statistic, tau.how) == (26, "exact")
    assert tau.value == pytest.approx(0.4444444, abs=5e-8)
    assert tau.p / 2 == pytest.approx(0.05972, abs=5e-6)
    assert all(c.note == "assumes independent pairs" for c in (r, rho, tau))


def test_where_scipy_differs_it_is_the_approximation() -> None:
    """scipy's spearmanr gives Student's t even for nine pairs: 0.0438 one-sided for R's 0.0484."""
    theirs = stats.spearmanr(X, Y, alternative="greater").pvalue
    assert theirs == pytest.approx(0.0438, abs=5e-5)
    assert spearman(X, Y).p / 2 > theirs


def test_the_exact_orders_equal_those_of_all_permutations() -> None:
    for n in (3, 5, 7):
        sums = [sum((i - rank) ** 2 for i, rank in enumerate(order)) for order in itertools.permutations(range(n))]
        expected = [sums.count(2 * half) for half in range(len(_core.spearman_orders(n)))]
        assert _core.spearman_orders(n) == expected


def test_the_edgeworth_series_joins_the_exact_orders() -> None:
    """At nine pairs, where both exist, the series of R's prho is within 0.002 of the truth
    on either side."""
    orders = _core.spearman_orders(9)
    for half in range(0, 121, 3):
        low, high = sum(orders[: half + 1]), sum(orders[half:])
        exact = min(2 * min(low, high) / math.factorial(9), 1.0)
        assert _spearman_edgeworth(2.0 * half, 9) == pytest.approx(exact, abs=2e-3)


@pytest.mark.parametrize("n", [30, 1290])
def test_the_edgeworth_series_is_near_a_permutation_test(n: int) -> None:
    rng = np.random.default_rng(n)
    x = rng.normal(size=n)
    y = x * 0.9 / math.sqrt(n) + rng.normal(size=n)
    found = spearman(x, y)
    assert found.how == "Edgeworth series"
    assert found.p == pytest.approx(stats.spearmanr(x, y).pvalue, abs=0.01)


def test_above_1290_pairs_or_with_ties_it_is_students_t() -> None:
    rng = np.random.default_rng(3)
    x = rng.normal(size=2000)
    y = x * 0.05 + rng.normal(size=2000)
    few = rng.integers(0, 5, 40)
    for a, b in ((x, y), (few, few + rng.integers(0, 9, 40))):
        expected = stats.spearmanr(a, b)
        found = spearman(a, b)
        assert found.how == "Student's t"
        assert found.value == pytest.approx(expected.statistic, rel=1e-12)
        assert found.p == pytest.approx(expected.pvalue, rel=1e-9)


@pytest.mark.parametrize("n", [4, 9, 49])
def test_kendall_exact_equals_scipy(n: int) -> None:
    rng = np.random.default_rng(n)
    x = rng.normal(size=n)
    y = x + rng.normal(size=n) * 2
    expected = stats.kendalltau(x, y, method="exact")
    found = kendall(x, y)
    assert found.value == pytest.approx(expected.statistic, rel=1e-12)
    assert found.p == pytest.approx(expected.pvalue, rel=1e-9)


def test_kendall_with_ties_equals_scipy() -> None:
    rng = np.random.default_rng(5)
    x = rng.integers(0, 12, 300)
    y = x + rng.integers(0, 40, 300)
    expected = stats.kendalltau(x, y, method="asymptotic")
    found = kendall(x, y)
    assert found.value == pytest.approx(expected.statistic, rel=1e-12)
    assert found.p == pytest.approx(expected.pvalue, rel=1e-9)


@pytest.mark.parametrize("n", [4, 10, 1000, 100_000])
def test_pearson_equals_scipy(n: int) -> None:
    rng = np.random.default_rng(n)
    x = rng.lognormal(size=n)
    y = x / 30 + rng.lognormal(size=n)
    expected = stats.pearsonr(x, y)
    interval = expected.confidence_interval(0.95)
    found = pearson(x, y)
    assert found.value == pytest.approx(expected.statistic, rel=1e-11)
    assert found.p == pytest.approx(expected.pvalue, rel=1e-9)
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high), rel=1e-9)


@pytest.mark.parametrize("r", [0.0, 1e-9, 0.05, 0.3, 0.577, 0.9, 0.999999])
def test_prob_r_of_few_pairs_is_exact(r: float) -> None:
    """Closed forms of Student's t with one to four degrees of freedom."""
    root = math.sqrt(1 - r * r)
    assert prob_r(r, 3) == pytest.approx(1 - 2 / math.pi * math.asin(r), abs=1e-14)
    assert prob_r(-r, 4) == pytest.approx(1 - r, abs=1e-14)
    expected = 1 - 2 / math.pi * (math.asin(r) + r * root)
    assert prob_r(r, 5) == pytest.approx(expected, abs=1e-14)
    assert prob_r(r, 6) == pytest.approx(1 - r * (3 - r * r) / 2, abs=1e-14)


@pytest.mark.parametrize("n", [7, 20, 599, 10_000, 4_000_000])
def test_prob_r_equals_students_t(n: int) -> None:
    for t in (1e-6, 0.1, 1.0, 1.96, 5.0, 20.0):
        r = t / math.sqrt(n - 2 + t * t)
        assert prob_r(r, n) == pytest.approx(2 * float(stats.t.sf(t, n - 2)), rel=1e-9)


def test_prob_r_beyond_the_underflow() -> None:
    """Far out log p of n pairs is (n - 2)/2 log(1 - r^2) less half a log of n, and goes on."""
    assert prob_r(0.5, 1_000_000) == 0.0
    leading = (1_000_000 - 2) / 2 * math.log10(0.75)
    rest = -0.5 * math.log10(math.pi * 500_000 * 0.25)
    assert prob_r_log10(0.5, 1_000_000) == pytest.approx(leading + rest, abs=0.05)


def test_the_interval_is_fishers() -> None:
    """R: cor.test(mtcars$mpg, mtcars$wt): r = -0.8676594, 32 pairs, -0.9338264 to -0.7440872."""
    found = fisher_interval(-0.8676594, 32)
    assert found == pytest.approx((-0.9338264, -0.7440872), abs=2e-7)
