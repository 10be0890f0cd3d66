"""Statistics compared with R: numbers from its help pages and documented output (the numbers, not the files)."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dbdyno.stats import Moments, kolmogorov_smirnov, mann_whitney, quantile, welch
from dbdyno.stats.distributions import kolmogorov_log10_p, normal_log10_p, t_log10_p

#: Miles per gallon of R's data set mtcars, by transmission.
AUTOMATIC = np.array(
    [
        *(21.4, 18.7, 18.1, 14.3, 24.4, 22.8, 19.2, 17.8, 16.4, 17.3),
        *(15.2, 10.4, 10.4, 14.7, 21.5, 15.5, 15.2, 13.3, 19.2),
    ]
)
MANUAL = np.array([21.0, 21.0, 22.8, 32.4, 30.4, 33.9, 27.3, 26.0, 30.4, 15.8, 19.7, 15.0, 21.4])


def test_welch_of_mtcars_mpg_by_am() -> None:
    """t.test(mpg ~ am): t = -3.7671, df = 18.332, p = 0.001374, interval -11.280194 to
    -3.209684."""
    found = welch(MANUAL, AUTOMATIC)
    assert found.statistic == pytest.approx(-3.7671, abs=5e-5)
    assert found.df == pytest.approx(18.332, abs=5e-4)
    assert found.p == pytest.approx(0.001374, abs=5e-7)
    assert (found.low, found.high) == pytest.approx((-11.280194, -3.209684), abs=5e-7)
    assert found.note == "assumes independent waits"


def test_welch_of_the_help_page() -> None:
    """t.test(1:10, y = 7:20): t = -5.4349, df = 21.982, p = 1.855e-05."""
    found = welch(np.arange(7, 21), np.arange(1, 11))
    assert found.statistic == pytest.approx(-5.4349, abs=5e-5)
    assert found.df == pytest.approx(21.982, abs=5e-4)
    assert found.p == pytest.approx(1.855e-05, rel=5e-4)


def test_welch_of_the_flash_log_post_does_not_print_zero() -> None:
    """Published: means 542.3583 and 508.6763, t = 263.2139, df = 7977922, interval 33.43124 to
    33.93285 with 4,000,000 waits each; these imply the deviations. R printed p < 2.2e-16."""
    found = welch(Moments(4_000_000, 508.6763, 176.145), Moments(4_000_000, 542.3583, 185.668))
    assert found.statistic == pytest.approx(263.2139, abs=5e-4)
    assert found.df == pytest.approx(7_977_922, rel=1e-6)
    assert (found.low, found.high) == pytest.approx((33.43124, 33.93285), abs=5e-5)
    # Leading terms of the two tails, worked by hand: the normal's is e^(-t^2/2), Student's is
    # (1 + t^2/df)^(-(df+1)/2), which at these degrees of freedom are 65 powers of ten apart.
    t, df = found.statistic, found.df or math.nan
    normal = (-t * t / 2 + math.log(2 / (t * math.sqrt(2 * math.pi)))) / math.log(10)
    assert normal_log10_p(t) == pytest.approx(normal, abs=0.001)
    assert normal == pytest.approx(-15046.8, abs=0.1)
    student = -(df + 1) / 2 * math.log1p(t * t / df)
    student += math.log(2 / (t * math.sqrt(2 * math.pi))) + math.log1p(t * t / df)
    assert found.log10_p == pytest.approx(student / math.log(10), abs=0.01)
    assert found.p == 0.0


def test_wilcoxon_of_the_help_page() -> None:
    """wilcox.test(x, y): W = 35, exact p = 0.1272 one-sided; normal without correction 0.1103."""
    x = np.sort([80, 83, 189, 104, 145, 138, 191, 164, 73, 146])
    y = np.sort([115, 88, 90, 74, 121])
    found = mann_whitney(y, x)
    assert found.statistic == 35
    assert found.p / 2 == pytest.approx(0.1272, abs=5e-5)
    # U has mean 25 and, without ties, variance 10 * 5 * 16 / 12.
    z = (35 - 25) / math.sqrt(10 * 5 * 16 / 12)
    assert 10 ** normal_log10_p(z) / 2 == pytest.approx(0.1103, abs=5e-5)


def test_kolmogorov_smirnov_with_ties_of_the_help_page() -> None:
    """ks.test(c(1,2,2,3,3), c(1,2,3,3,4,5,6)): D = 3/7, exact p = 8/33."""
    found = kolmogorov_smirnov(np.array([1, 2, 2, 3, 3]), np.array([1, 2, 3, 3, 4, 5, 6]))
    assert found.statistic == pytest.approx(3 / 7)
    assert found.p == pytest.approx(8 / 33, rel=1e-12)


def test_quantile_type_7() -> None:
    """quantile(c(1, 2, 3, 4), 0.25) is 1.75."""
    assert quantile(np.array([1, 2, 3, 4]), 0.25) == 1.75


@pytest.mark.parametrize(("df", "t"), [(3.0, 1e80), (18.3, 1e16), (500.0, 55.0), (4e6, 37.0)])
def test_the_far_tail_of_t_joins_the_near_one(df: float, t: float) -> None:
    """Beyond the underflow the expansion takes over: log p goes on without a step. Its slope in
    log t is -t times the hazard, between -df and -(t^2), and the second difference is that of a
    smooth function."""
    logs = [t_log10_p(t * factor, df) for factor in (0.98, 0.99, 1.0, 1.01, 1.02, 1.03)]
    steps = np.diff(logs)
    assert (steps < 0).all()
    assert np.abs(np.diff(steps, 2)).max() < 0.02 * abs(steps[0])


def test_the_tails_where_they_are_known() -> None:
    assert t_log10_p(0.0, 5.0) == 0.0
    assert 10 ** t_log10_p(12.706204736, 1.0) == pytest.approx(0.05)
    # df = 2 has a closed form: p = 1 - t / sqrt(2 + t^2), far out 1 / t^2.
    assert t_log10_p(1e150, 2.0) == pytest.approx(-300.0, abs=1e-6)
    assert t_log10_p(math.inf, 5.0) == -math.inf
    assert math.isnan(t_log10_p(math.nan, 5.0))
    assert 10 ** normal_log10_p(-1.959963985) == pytest.approx(0.05)
    # Kolmogorov's limit distribution: 1.3581 is its 95 % point.
    assert 10 ** kolmogorov_log10_p(1.3581 / math.sqrt(5e5), 1e6, 1e6) == pytest.approx(0.05, rel=1e-3)
    assert kolmogorov_log10_p(0.5, 1e6, 1e6) == pytest.approx(-250_000 / math.log(10), rel=1e-5)
