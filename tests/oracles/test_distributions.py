"""Tails and quantiles of the core against scipy, on parameters from one to millions."""

from __future__ import annotations

import math
import random
import secrets

import pytest
from scipy import special, stats

from dbdyno.stats import distributions as ours

SEED = secrets.randbelow(10**9)
DRAWS = 400


@pytest.fixture
def dice() -> random.Random:
    print(f"seed {SEED}")
    return random.Random(SEED)


def between(dice: random.Random, low: float, high: float) -> float:
    """Draw a number whose logarithm is uniformly distributed."""
    return math.exp(dice.uniform(math.log(low), math.log(high)))


def test_student(dice: random.Random) -> None:
    for _ in range(DRAWS):
        df, t, p = between(dice, 0.5, 1e7), dice.choice((-1, 1)) * between(dice, 1e-6, 30), dice.uniform(1e-6, 1 - 1e-6)
        assert ours.t_cdf(df, t) == pytest.approx(float(special.stdtr(df, t)), rel=2e-11), (df, t)
        assert ours.t_quantile(df, p) == pytest.approx(float(special.stdtrit(df, p)), rel=1e-9, abs=1e-12), (df, p)


def test_student_at_the_levels_of_intervals() -> None:
    for df in (1, 2, 3, 4, 7, 11, 30, 99, 1e4, 4e6):
        for p in (0.9, 0.95, 0.975, 0.995, 0.9995):
            assert ours.t_quantile(df, p) == pytest.approx(float(stats.t.ppf(p, df)), rel=1e-11)


def test_quantiles_of_chi_squared(dice: random.Random) -> None:
    for _ in range(DRAWS):
        df, p = between(dice, 0.5, 1e6), dice.uniform(1e-6, 1 - 1e-6)
        assert ours.chi2_quantile(df, p) == pytest.approx(float(stats.chi2.ppf(p, df)), rel=1e-9), (df, p)


def test_the_power_of_a_t_test_is_a_tail_of_the_noncentral_t(dice: random.Random) -> None:
    for _ in range(DRAWS):
        df, away, p = between(dice, 1, 1e4), dice.uniform(-6, 6), dice.uniform(0.8, 0.9995)
        critical = float(stats.t.ppf(p, df))
        expected = stats.nct.sf(critical, df, away) + stats.nct.cdf(-critical, df, away)
        assert ours.t_power(df, away, critical) == pytest.approx(expected, abs=1e-7), (df, away, p)


def test_arrays_of_student() -> None:
    df, t = [1.0, 5.0, 5.0], [-1.0, 0.0, 2.0]
    assert ours.t_cdfs(df, t) == pytest.approx(special.stdtr(df, t), rel=1e-12)
    assert ours.t_quantiles(df, 0.975) == pytest.approx(special.stdtrit(df, 0.975), rel=1e-12)


def test_binomial_up_to_millions(dice: random.Random) -> None:
    for _ in range(DRAWS):
        n = round(between(dice, 1, 8e6))
        q = dice.choice((0.5, 0.9, 0.99, 0.999, 0.9999, dice.random()))
        k = min(max(round(n * q + dice.gauss(0, 2) * math.sqrt(n * q * (1 - q))), 0), n)
        given = (k, n, q)
        assert ours.binomial_cdf(*given) == pytest.approx(float(stats.binom.cdf(*given)), rel=1e-8, abs=1e-15), given
        assert ours.binomial_sf(*given) == pytest.approx(float(stats.binom.sf(*given)), rel=1e-8, abs=1e-15), given


def test_normal(dice: random.Random) -> None:
    for _ in range(DRAWS):
        z, p = dice.uniform(-37, 37), dice.choice((between(dice, 1e-300, 0.5), dice.random()))
        assert ours.normal_cdf(z) == pytest.approx(float(special.ndtr(z)), rel=1e-12), z
        assert ours.normal_quantile(p) == pytest.approx(float(special.ndtri(p)), rel=1e-11, abs=1e-14), p
        far = 100 * z
        expected = min((math.log(2) + float(special.log_ndtr(-abs(far)))) / math.log(10), 0)
        assert ours.normal_log10_p(far) == pytest.approx(expected, rel=1e-12), far


def test_upper_tails(dice: random.Random) -> None:
    for _ in range(DRAWS):
        one, other, x = between(dice, 1, 1e3), between(dice, 1, 1e6), between(dice, 1e-3, 10)
        chi2, f = float(stats.chi2.sf(x * one, one)), float(stats.f.sf(x, one, other))
        if min(chi2, f) > 1e-290:
            assert 10 ** ours.chi2_log10_p(x * one, one) == pytest.approx(chi2, rel=1e-9), (x, one)
            assert 10 ** ours.f_log10_p(x, one, other) == pytest.approx(f, rel=1e-8), (x, one, other)


def test_kolmogorov(dice: random.Random) -> None:
    for _ in range(DRAWS):
        scaled = dice.uniform(0.05, 12)
        expected = float(special.kolmogorov(scaled))
        assert 10 ** ours.kolmogorov_log10_p(scaled, 2, 2) == pytest.approx(expected, rel=1e-9), scaled


def test_what_defines_no_distribution_is_nan() -> None:
    found = [
        ours.t_cdf(0, 1),
        ours.t_cdf(3, math.nan),
        ours.t_quantile(-1, 0.9),
        ours.t_quantile(3, 1.5),
        ours.t_log10_p(1, math.nan),
        ours.f_log10_p(1, 0, 5),
        ours.chi2_log10_p(1, 0),
        ours.chi2_quantile(0, 0.5),
        ours.t_power(3, 1, 0),
        ours.binomial_cdf(3, 2, 0.5),
        ours.binomial_sf(1, 2, 1.5),
        ours.normal_quantile(-0.1),
    ]
    assert all(math.isnan(one) for one in found), found
    assert ours.t_log10_p(math.inf, 3) == ours.f_log10_p(math.inf, 2, 3) == -math.inf
    assert ours.f_log10_p(-1, 2, 3) == 0
