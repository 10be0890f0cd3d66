"""Group tests, regression tables and scalability compared with published figures (R, the sources) and scipy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from dbdyno.stats.description import describe
from dbdyno.stats.distributions import chi2_log10_p, f_log10_p, normal_log10_p
from dbdyno.stats.group_tests import compare_groups, welch_from_summary
from dbdyno.stats.regression import lm
from dbdyno.stats.scalability import usl

#: R's data set mtcars: miles per gallon, weight, horse power, cylinders, transmission.
MPG = [
    21,
    21,
    22.8,
    21.4,
    18.7,
    18.1,
    14.3,
    24.4,
    22.8,
    19.2,
    17.8,
    16.4,
    17.3,
    15.2,
    10.4,
    10.4,
    14.7,
    32.4,
    30.4,
    33.9,
    21.5,
    15.5,
    15.2,
    13.3,
    19.2,
    27.3,
    26,
    30.4,
    15.8,
    19.7,
    15,
    21.4,
]
WT = [
    2.62,
    2.875,
    2.32,
    3.215,
    3.44,
    3.46,
    3.57,
    3.19,
    3.15,
    3.44,
    3.44,
    4.07,
    3.73,
    3.78,
    5.25,
    5.424,
    5.345,
    2.2,
    1.615,
    1.835,
    2.465,
    3.52,
    3.435,
    3.84,
    3.845,
    1.935,
    2.14,
    1.513,
    3.17,
    2.77,
    3.57,
    2.78,
]
HP = [
    110,
    110,
    93,
    110,
    175,
    105,
    245,
    62,
    95,
    123,
    123,
    180,
    180,
    180,
    205,
    215,
    230,
    66,
    52,
    65,
    97,
    150,
    150,
    245,
    175,
    66,
    91,
    113,
    264,
    175,
    335,
    109,
]
AM = [1, 1, 1] + [0] * 14 + [1, 1, 1] + [0] * 5 + [1] * 7

#: The same post's summary: 4,000,000 waits for "log file sync" without and with the flash log.
FIRST, SECOND = (4_000_000, 508.6763, 176.145), (4_000_000, 542.3583, 185.668)


def test_welch_from_the_posts_own_summary() -> None:
    """Published: t = 263.2139, df = 7977922, interval 33.43124 to 33.93285. log10 p is -15046.8 for
    the normal; Student's tail at these degrees of freedom is 65 powers of ten longer."""
    found = welch_from_summary(FIRST, SECOND)
    assert found.statistic == pytest.approx(263.2139, abs=5e-4)
    assert found.df == pytest.approx(7_977_922, rel=1e-6)
    assert (found.low, found.high) == pytest.approx((33.43124, 33.93285), abs=5e-5)
    assert normal_log10_p(found.statistic) == pytest.approx(-15046.8, abs=0.05)
    assert found.log10_p == pytest.approx(-14981.8, abs=0.05)
    assert (found.p, found.note) == (0.0, "assumes independent values")


def test_welch_of_mtcars() -> None:
    """t.test(mpg ~ am): t = -3.7671, df = 18.332, p = 0.001374, -11.280194 to -3.209684."""
    welch = compare_groups(describe(MPG, AM))[0]
    assert -welch.statistic == pytest.approx(-3.7671, abs=5e-5)
    assert welch.df == pytest.approx(18.332, abs=5e-4)
    assert welch.p == pytest.approx(0.001374, abs=5e-7)
    assert (-welch.high, -welch.low) == pytest.approx((-11.280194, -3.209684), abs=5e-7)


def test_wilcoxon_and_kolmogorov_of_the_help_pages() -> None:
    """wilcox.test(x, y): W = 35, one-sided exact p = 0.1272. ks.test(ties): D = 3/7, p = 8/33."""
    x = [0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46]
    y = [1.15, 0.88, 0.90, 0.74, 1.21]
    u = compare_groups(describe(y + x, ["a"] * 5 + ["b"] * 10))[1]
    assert u.statistic == 35
    assert u.p / 2 == pytest.approx(0.1272, abs=5e-5)
    a, b = [1, 2, 2, 3, 3], [1, 2, 3, 3, 4, 5, 6]
    ks = compare_groups(describe(a + b, ["a"] * 5 + ["b"] * 7))[2]
    assert (ks.statistic, ks.p) == (pytest.approx(3 / 7), pytest.approx(8 / 33, rel=1e-12))


def test_kruskal_wallis_of_the_help_page() -> None:
    """kruskal.test(list(x, y, z)) of Hollander and Wolfe's mucociliary efficiency: chi squared =
    0.77143, df = 2, p = 0.68."""
    x, y, z = [2.9, 3.0, 2.5, 2.6, 3.2], [3.8, 2.7, 4.0, 2.4], [2.8, 3.4, 3.7, 2.2, 2.0]
    found = compare_groups(describe(x + y + z, [1] * 5 + [2] * 4 + [3] * 5))[-1]
    assert found.statistic == pytest.approx(0.77143, abs=5e-6)
    assert found.p == pytest.approx(0.68, abs=5e-4)


@pytest.mark.parametrize("integer", [True, False])
@pytest.mark.parametrize("sizes", [(40, 60, 25), (3000, 2000, 1000, 50)])
def test_several_groups_equal_scipy(sizes: tuple[int, ...], integer: bool) -> None:
    rng = np.random.default_rng(len(sizes))
    samples = [rng.gamma(2, 30 * (1 + 0.1 * at), size) for at, size in enumerate(sizes)]
    if integer:
        samples = [np.round(sample).astype(np.int64) for sample in samples]
    by = np.repeat(np.arange(len(sizes)), sizes)
    one_way, welch, kruskal = compare_groups(describe(np.concatenate(samples), by))
    for found, expected in (
        (one_way, stats.f_oneway(*samples)),
        (welch, stats.f_oneway(*samples, equal_var=False)),
        (kruskal, stats.kruskal(*samples)),
    ):
        assert found.statistic == pytest.approx(expected.statistic, rel=1e-9), found.test
        assert found.p == pytest.approx(expected.pvalue, rel=1e-8), found.test


@pytest.mark.parametrize("integer", [True, False])
def test_two_groups_equal_scipy(integer: bool) -> None:
    rng = np.random.default_rng(8)
    a, b = rng.lognormal(6, 0.5, 7000), rng.lognormal(6.01, 0.5, 5000)
    if integer:
        a, b = a.astype(np.int64), b.astype(np.int64)
    welch, u, ks = compare_groups(describe(np.concatenate([a, b]), [0] * a.size + [1] * b.size))
    expected = stats.ttest_ind(b, a, equal_var=False)
    assert (welch.statistic, welch.p) == pytest.approx((expected.statistic, expected.pvalue))
    expected = stats.mannwhitneyu(b, a, method="asymptotic")
    assert u.statistic == expected.statistic
    assert u.p == pytest.approx(expected.pvalue, rel=1e-9)
    assert ks.statistic == pytest.approx(stats.ks_2samp(b, a).statistic, rel=1e-12)


def test_lm_of_mtcars_as_r_prints_it() -> None:
    """summary(lm(mpg ~ wt + hp)): coefficients 37.22727, -3.87783, -0.03177; errors 1.59879,
    0.63273, 0.00903; residual error 2.593 on 29; R2 0.8268, adjusted 0.8148; F 69.21, p 9.109e-12;
    residuals -3.941, -1.600, -0.182, 1.050, 5.854."""
    fit = lm(MPG, WT, HP, names=["wt", "hp"])
    assert [c.estimate for c in fit.coefficients] == pytest.approx([37.22727, -3.87783, -0.03177], abs=5e-6)
    assert [c.error for c in fit.coefficients] == pytest.approx([1.59879, 0.63273, 0.00903], abs=5e-6)
    assert [c.t for c in fit.coefficients] == pytest.approx([23.285, -6.129, -3.519], abs=5e-4)
    assert fit["wt"].p == pytest.approx(1.12e-06, rel=5e-3)
    assert fit["hp"].p == pytest.approx(0.00145, abs=5e-6)
    assert (fit.residual_error, fit.df) == (pytest.approx(2.593, abs=5e-4), 29)
    assert (fit.r2, fit.adjusted_r2) == pytest.approx((0.8268, 0.8148), abs=5e-5)
    assert (fit.f, fit.f_df) == (pytest.approx(69.21, abs=5e-3), (2, 29))
    assert 10**fit.f_log10_p == pytest.approx(9.109e-12, rel=5e-4)
    assert fit.residual_quartiles == pytest.approx((-3.941, -1.600, -0.182, 1.050, 5.854), abs=5e-4)


def test_tails_of_f_and_chi_squared_join_beyond_the_underflow() -> None:
    """The expansion takes over without a step: second differences of log p stay those of a smooth
    function."""
    for tail, at in (
        (lambda x: f_log10_p(x, 3, 5e5), 435.0),
        (lambda x: chi2_log10_p(x, 7), 1330.0),
    ):
        logs = [tail(at * factor) for factor in np.linspace(0.94, 1.06, 13)]
        steps = np.diff(logs)
        assert min(logs) < -280 < max(logs)
        assert (steps < 0).all()
        assert np.abs(np.diff(steps, 2)).max() < 0.005 * abs(steps[0])
    assert 10 ** f_log10_p(4.0, 3, 20) == pytest.approx(float(stats.f.sf(4.0, 3, 20)))
    assert 10 ** chi2_log10_p(9.0, 2) == pytest.approx(float(np.exp(-4.5)))


def test_scalability_of_specsdm91_as_the_r_package_fits_it() -> None:
    """Gunther's SPEC SDM91 data (Guerrilla Capacity Planning, 2007). The R package usl prints the
    residuals -25.10 -81.66 111.09 3.05 -49.99 -46.60 56.00 and a peak at 97."""
    load = [1, 18, 36, 72, 108, 144, 216]
    throughput = [64.9, 995.9, 1652.4, 1853.2, 1828.9, 1775.0, 1702.2]
    fit = usl(load, throughput)
    assert fit.residuals == pytest.approx([-25.10, -81.66, 111.09, 3.05, -49.99, -46.60, 56.00], abs=6e-3)
    assert fit.peak.estimate == pytest.approx(97, abs=0.6)
    assert fit.peak.low < fit.peak.estimate < fit.peak.high
    assert fit.predict([fit.peak.estimate])[0] == pytest.approx(fit.peak_throughput)


def test_scalability_of_the_ray_tracer_on_its_bound() -> None:
    """The ray tracer's data of the same book. The R package prints alpha 0.0578, beta 0, gamma
    21.8488, and intervals 0.033677 to 0.081864, -0.000214 to 0.000214, 17.868380 to 25.829306:
    those are the standard errors found here times qt(0.95, 10) = 1.812461."""
    processors = [1, 4, 8, 12, 16, 20, 24, 28, 32, 48, 64]
    throughput = [20, 78, 130, 170, 190, 200, 210, 230, 260, 280, 310]
    fit = usl(processors, throughput)
    assert fit.alpha.estimate == pytest.approx(0.0578, abs=5e-5)
    assert fit.beta.estimate == 0.0
    assert fit.gamma.estimate == pytest.approx(21.8488, abs=5e-5)
    assert fit.alpha.error * 1.812461 == pytest.approx((0.081864 - 0.033677) / 2, abs=1e-6)
    assert fit.beta.error * 1.812461 == pytest.approx(0.000214, abs=5e-7)
    assert fit.gamma.error * 1.812461 == pytest.approx((25.829306 - 17.868380) / 2, abs=1e-5)
    assert fit.peak.estimate == np.inf


def test_scalability_of_exact_data_is_exact() -> None:
    n = np.array([1.0, 2, 4, 8, 16, 32, 64])
    x = 1000 * n / (1 + 0.03 * (n - 1) + 0.0002 * n * (n - 1))
    fit = usl(n, x)
    found = (fit.alpha.estimate, fit.beta.estimate, fit.gamma.estimate)
    assert found == pytest.approx((0.03, 0.0002, 1000), rel=1e-9)
    assert fit.peak.estimate == pytest.approx(np.sqrt(0.97 / 0.0002), rel=1e-9)
