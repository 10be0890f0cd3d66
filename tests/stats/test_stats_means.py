"""The mean with Student's interval, which reports, claims and races use."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats as oracle

from dbdyno.stats.gates_in_time import trend
from dbdyno.stats.means import mean_interval


@pytest.mark.parametrize("n", [2, 3, 12, 400])
@pytest.mark.parametrize("level", [0.8, 0.95, 0.999])
def test_mean_and_interval_are_those_of_scipy(n, level):
    values = np.random.default_rng(n).lognormal(size=n)
    mean, low, high = mean_interval(values, level)
    assert math.isclose(mean, values.mean(), rel_tol=1e-12)
    assert np.allclose((low, high), oracle.t.interval(level, n - 1, values.mean(), oracle.sem(values)), rtol=1e-9)


def test_one_value_has_no_interval_and_none_has_no_mean():
    mean, low, high = mean_interval([3.0, math.nan, math.inf], 0.95)
    assert mean == 3.0
    assert math.isnan(low)
    assert math.isnan(high)
    assert all(math.isnan(one) for one in mean_interval([], 0.95))


def test_equal_values_have_an_interval_of_no_width():
    assert mean_interval([2.0, 2.0, 2.0], 0.95) == (2.0, 2.0, 2.0)


def test_the_line_through_the_blocks_is_that_of_scipy():
    rng = np.random.default_rng(5)
    at, logs = np.sort(rng.uniform(0, 60, 30)), rng.normal(2, 0.1, 30)
    found, line = trend(logs, at), oracle.linregress(at, logs)
    assert math.isclose(found.change, line.slope * np.ptp(at), rel_tol=1e-9)
    reach = oracle.t.ppf(0.995, 28) + oracle.t.ppf(0.8, 28)
    assert math.isclose(found.visible, reach * line.stderr * np.ptp(at), rel_tol=1e-9)


def test_a_straight_line_without_scatter_is_certain_and_a_level_one_is_not():
    at = np.arange(8.0)
    assert trend(0.1 * at, at).certain
    assert not trend(np.full(8, 1.5), at).certain
