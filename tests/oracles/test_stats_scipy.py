"""Statistics compared with scipy and numpy: the same values and p-values, with ties included."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from dbdyno.stats import (
    benjamini_hochberg,
    counts_of,
    kolmogorov_smirnov,
    mann_whitney,
    moments,
    power_of,
    quantile,
    quantile_interval,
    welch,
)

Integers = NDArray[np.int64]
SIZES = [(5, 7), (40, 30), (60, 1000), (5000, 4000)]


def samples(n: int, m: int, *, ties: bool) -> tuple[Integers, Integers]:
    rng = np.random.default_rng(n)
    scale = 3 if ties else 1e12
    a = np.sort(rng.gamma(2, scale, n).astype(np.int64))
    return a, np.sort((rng.gamma(2, scale, m) * 1.1).astype(np.int64))


@pytest.mark.parametrize(("n", "m"), SIZES)
@pytest.mark.parametrize("ties", [True, False])
def test_welch_equals_ttest_ind(n: int, m: int, ties: bool) -> None:
    a, b = samples(n, m, ties=ties)
    expected = stats.ttest_ind(b, a, equal_var=False)
    interval = expected.confidence_interval(0.95)
    for found in (welch(a, b), welch(moments(a), moments(b))):
        assert found.statistic == pytest.approx(expected.statistic, rel=1e-10)
        assert found.df == pytest.approx(expected.df, rel=1e-10)
        assert found.p == pytest.approx(expected.pvalue, rel=1e-8)
        assert (found.low, found.high) == pytest.approx((interval.low, interval.high), rel=1e-8)


@pytest.mark.parametrize(("n", "m"), SIZES)
@pytest.mark.parametrize("ties", [True, False])
def test_mann_whitney_equals_mannwhitneyu(n: int, m: int, ties: bool) -> None:
    a, b = samples(n, m, ties=ties)
    exact = not ties and max(n, m) < 50
    expected = stats.mannwhitneyu(b, a, method="exact" if exact else "asymptotic")
    for found in (mann_whitney(a, b), mann_whitney(counts_of(a), counts_of(b))):
        assert found.statistic == expected.statistic
        assert found.p == pytest.approx(expected.pvalue, rel=1e-9)
        assert found.effect_value == pytest.approx(expected.statistic / n / m)


@pytest.mark.parametrize(("n", "m"), SIZES)
def test_kolmogorov_smirnov_equals_ks_2samp(n: int, m: int) -> None:
    a, b = samples(n, m, ties=False)
    method = "exact" if n * m <= 10_000 else "asymp"
    expected = stats.ks_2samp(b, a, method=method)
    for found in (kolmogorov_smirnov(a, b), kolmogorov_smirnov(counts_of(a), counts_of(b))):
        assert found.statistic == pytest.approx(expected.statistic, rel=1e-12)
        # scipy's "asymp" is a finite-size series; ours is Kolmogorov's limit, a little larger.
        tolerance = 1e-9 if method == "exact" else 0.2
        assert found.p == pytest.approx(expected.pvalue, rel=tolerance)


@pytest.mark.parametrize(("n", "m"), SIZES)
def test_the_distance_with_ties_equals_that_of_ks_2samp(n: int, m: int) -> None:
    a, b = samples(n, m, ties=True)
    assert kolmogorov_smirnov(a, b).statistic == pytest.approx(stats.ks_2samp(a, b).statistic)


def test_exact_p_of_well_separated_samples_keeps_its_digits() -> None:
    """Two of the C(200, 100) orders are that extreme; 1 - (1 - p) would print 0."""
    a, b = np.arange(100), np.arange(100, 200)
    assert kolmogorov_smirnov(a, b).p == pytest.approx(2.2087606931995054e-59, rel=1e-9)


@pytest.mark.parametrize("q", [0.0, 0.1, 0.5, 0.9, 0.999, 1.0])
def test_quantiles_equal_those_of_numpy(q: float) -> None:
    a, _ = samples(5000, 5, ties=True)
    assert quantile(a, q) == pytest.approx(float(np.quantile(a, q)))


def test_the_quantile_interval_equals_that_of_quantile_test() -> None:
    """scipy's quantile_test gives the same order statistics."""
    a, _ = samples(5000, 5, ties=False)
    for q in (0.5, 0.9, 0.99):
        expected = stats.quantile_test(a, q=0, p=q).confidence_interval(0.95)
        found = quantile_interval(a, q)
        ranks = np.searchsorted(a, [found.low, found.high])
        theirs = np.searchsorted(a, [expected.low, expected.high])
        assert np.abs(ranks - theirs).max() <= 1


def test_q_values_equal_false_discovery_control() -> None:
    p = np.random.default_rng(1).uniform(0, 1, 30) ** 3
    expected = stats.false_discovery_control(p, method="bh")
    assert benjamini_hochberg(list(p)) == pytest.approx(list(expected), rel=1e-12)


@pytest.mark.parametrize("blocks", [4, 10, 50, 1000])
def test_power_equals_the_noncentral_t(blocks: int) -> None:
    df = blocks - 1
    for away in (0.5, 2.0, 3.0):
        spread = 0.05
        effect = np.expm1(away * spread / np.sqrt(blocks))
        critical = stats.t.ppf(0.975, df)
        expected = stats.nct.sf(critical, df, away) + stats.nct.cdf(-critical, df, away)
        assert power_of(blocks, spread, effect) == pytest.approx(expected, abs=1e-8)
