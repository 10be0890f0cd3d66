"""The scalability law compared with the published results of the R package usl 3.0.3 for its three data sets.

The coefficients are those in its manual, vignette and tests. Both programs fit by non-linear least squares, so they
agree to all printed digits. Its columns "2.5 %" and "97.5 %" are the estimate less and plus the standard error times
the 95 % point of Student's t with n - 1 degrees of freedom: narrower than the interval of 95 % with the n - 3 that
three parameters leave, which is ours. So the standard errors are compared.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from dbdyno.stats.laws import fit_law
from dbdyno.stats.scalability import UslFit, usl

SPECSDM91 = ([1, 18, 36, 72, 108, 144, 216], [64.9, 995.9, 1652.4, 1853.2, 1828.9, 1775.0, 1702.2])
RAYTRACER = (
    [1, 4, 8, 12, 16, 20, 24, 28, 32, 48, 64],
    [20, 78, 130, 170, 190, 200, 210, 230, 260, 280, 310],
)


def oracledb() -> tuple[list[float], list[float]]:
    lines = Path(__file__).with_name("usl_oracledb.tsv").read_text().splitlines()
    rows = [line.split("\t") for line in lines if line[0].isdigit()]
    assert len(rows) == 360
    return [float(row[0]) for row in rows], [float(row[1]) for row in rows]


def estimates(fit: UslFit) -> tuple[float, float, float]:
    return fit.alpha.estimate, fit.beta.estimate, fit.gamma.estimate


def published_ends(fit: UslFit) -> list[tuple[float, float]]:
    """Return the interval ends that the package would compute from our estimates and errors."""
    reach = float(stats.t.ppf(0.95, fit.n - 1))
    parameters = (fit.alpha, fit.beta, fit.gamma)
    return [(one.estimate - reach * one.error, one.estimate + reach * one.error) for one in parameters]


def test_specsdm91_contention_coherence_capacity_and_peak():
    fit = usl(*SPECSDM91)
    assert estimates(fit) == pytest.approx((2.773e-2, 1.044e-4, 90.00), rel=5e-4)
    errors = (fit.alpha.error, fit.beta.error, fit.gamma.error)
    assert errors == pytest.approx((9.122e-3, 1.988e-5, 14.21), rel=4e-4)
    assert fit.residual_error == pytest.approx(82.85, abs=5e-3)
    assert (fit.peak.estimate, fit.peak_throughput) == pytest.approx((96.51956, 1884), rel=3e-4)
    assert fit.limit == pytest.approx(3245.589, rel=1e-4)


def test_the_first_six_of_raytracer_have_an_inner_optimum():
    fit = usl(RAYTRACER[0][:6], RAYTRACER[1][:6])
    assert estimates(fit) == pytest.approx((0.02444, 0.00163, 20.85605), abs=5e-6)
    ends = published_ends(fit)
    assert ends[0] == pytest.approx((0.00754, 0.04135), abs=5e-6)
    assert ends[1] == pytest.approx((0.00110, 0.00215), abs=6e-6)
    assert ends[2] == pytest.approx((19.26717, 22.44492), abs=6e-6)


def test_oracledb_a_law_through_360_intervals_of_a_live_database():
    fit = usl(*oracledb())
    assert estimates(fit) == pytest.approx((0.4414, 0.0453, 3.3861), abs=5e-5)
    assert fit.peak.estimate == pytest.approx(3.512, abs=5e-4)
    ends = published_ends(fit)
    assert ends[0] == pytest.approx((0.36429, 0.51845), abs=6e-6)
    assert ends[1] == pytest.approx((0.01861, 0.07199), abs=6e-6)
    assert ends[2] == pytest.approx((3.28529, 3.48687), abs=6e-6)


@pytest.mark.parametrize(
    ("data", "published"),
    [
        (SPECSDM91, {"s": 2.773e-2, "k": 1.044e-4, "g": 90.00, "peak": 96.51956, "most": 1884}),
        ((RAYTRACER[0][:6], RAYTRACER[1][:6]), {"s": 0.02444, "k": 0.00163, "g": 20.85605}),
    ],
)
def test_the_law_of_a_curve_is_that_of_the_package(data, published):
    """Blocks that differ by a factor each have the curve's own means, so the fit is the published one."""
    loads, throughput = (np.array(values, dtype=float) for values in data)
    blocks = throughput * np.exp(np.array([[-0.1], [0.1]]))
    found = fit_law(loads, blocks, is_load=True, level=0.95)
    assert found is not None
    assert found.law == "usl"
    told = {name: found.parameters[name].value for name in published}
    assert told == pytest.approx(published, rel=3e-3)


def test_a_curve_without_coherence_cost_needs_no_third_parameter():
    """Of raytracer the package prints beta 0 and alpha 0.0578: the law is then saturating, with half of the most at
    (1 - alpha) / alpha and the most at gamma / alpha. A curve's law is fitted by relative differences, the package's
    by absolute ones: 5 % are allowed."""
    loads, throughput = (np.array(values, dtype=float) for values in RAYTRACER)
    fit = usl(loads, throughput)
    assert estimates(fit) == pytest.approx((0.0578, 0, 21.8488), abs=5e-5)
    found = fit_law(loads, throughput * np.exp(np.array([[-0.1], [0.1]])), is_load=True, level=0.95)
    assert found is not None
    alpha, _, gamma = estimates(fit)
    assert found.law == "saturating"
    assert found.parameters["h"].value == pytest.approx((1 - alpha) / alpha, rel=0.05)
    assert found.parameters["m"].value == pytest.approx(gamma / alpha, rel=0.05)
