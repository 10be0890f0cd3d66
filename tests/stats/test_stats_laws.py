"""The law of a curve: a planted law is found, with intervals that cover its parameters."""

from __future__ import annotations

import numpy as np
import pytest

from dbdyno.stats.laws import fit_law

LOADS = np.array([1.0, 2, 4, 8, 16, 32])


def planted(y, *, blocks=20, spread=0.01, seed=3):
    rng = np.random.default_rng(seed)
    return np.asarray(y) * np.exp(rng.normal(0, 0.1, (blocks, 1)) + rng.normal(0, spread, (blocks, len(y))))


@pytest.mark.parametrize(
    ("law", "y"),
    [
        ("constant", np.full(6, 500.0)),
        ("linear", 20 + 30 * LOADS),
        ("saturating", 900 * LOADS / (LOADS + 6)),
    ],
)
def test_the_planted_law_is_found(law, y):
    assert fit_law(LOADS, planted(y), is_load=False, level=0.95).law == law


def test_the_parameters_lie_in_their_intervals():
    found = fit_law(LOADS, planted(900 * LOADS / (LOADS + 6), spread=0.02), is_load=False, level=0.99)
    assert found.holds
    half = found.parameters["h"]
    assert half.low < 6 < half.high
    assert half.high - half.low < 3


def test_sessions_that_get_in_each_other_s_way_follow_the_scalability_law():
    g, s, k = 1000.0, 0.05, 0.002
    y = g * LOADS / (1 + s * (LOADS - 1) + k * LOADS * (LOADS - 1))
    found = fit_law(LOADS, planted(y, spread=0.005), is_load=True, level=0.99)
    assert found.law == "usl"
    for name, true in (("s", s), ("k", k), ("peak", np.sqrt((1 - s) / k))):
        one = found.parameters[name]
        assert one.low < true < one.high, name
    exact = fit_law(LOADS, planted(y, spread=0, blocks=3), is_load=True, level=0.95)
    assert np.isclose(exact.parameters["k"].value, k)


@pytest.mark.parametrize("draws", [40, pytest.param(200, marks=pytest.mark.soak)])
def test_the_intervals_hold_the_truth_as_often_as_said(draws: int):
    """Draws at 90 %: the half of a saturating curve."""
    hits, seed = 0, 40
    for at in range(draws):
        values = planted(900 * LOADS / (LOADS + 6), blocks=10, spread=0.02, seed=seed + at)
        found = fit_law(LOADS, values, is_load=False, level=0.9)
        half = found.parameters.get("h") if found.law == "saturating" else None
        hits += half is None or half.low < 6 < half.high
    assert hits >= 0.9 * draws - 3 * np.sqrt(draws * 0.09), f"seed {seed}"


@pytest.mark.parametrize("draws", [15, pytest.param(60, marks=pytest.mark.soak)])
def test_contention_that_is_found_to_be_none_may_be_some(draws: int):
    """It was "contention 0 % (0 to 0 %)": on its bound the jackknife moves nothing."""
    y = 100 * LOADS / (1 + 0.001 * (LOADS - 1) + 0.005 * LOADS * (LOADS - 1))
    found = [fit_law(LOADS, planted(y, spread=0.05, seed=seed), is_load=True, level=0.95) for seed in range(draws)]
    contention = [own.parameters["s"] for own in found if own.law == "usl"]
    none = [one for one in contention if one.value == 0]
    assert len(none) > draws / 6 and all(one.low == 0 for one in none)
    assert sum(one.high > 0 for one in none) > 0.8 * len(none)
    assert sum(one.low <= 0.001 <= one.high for one in contention) >= 0.88 * len(contention)


def test_a_level_that_is_hardly_known_refuses_no_law():
    """On a busy machine one level of six lay 13 % off, its own interval reached 45 %, and it was "no simple law"."""
    y = 1000 * LOADS / (1 + 0.1 * (LOADS - 1) + 0.001 * LOADS * (LOADS - 1))
    off = y * [1, 1, 0.82, 1, 1, 1]
    known, hardly = planted(off, blocks=8, spread=0.001), planted(off, blocks=8, spread=0.001)
    hardly[:, 2] *= np.exp(np.random.default_rng(2).normal(0, 0.3, 8))
    sure, unsure = (fit_law(LOADS, values, is_load=True, level=0.95) for values in (known, hardly))
    assert sure.farthest > 0.1 and unsure.farthest > 0.1
    assert not sure.holds and unsure.holds
    assert not fit_law(LOADS, planted(off, blocks=8, spread=1.5), is_load=True, level=0.95).holds, (
        "that is no knowledge"
    )


def test_what_follows_no_law_is_told_as_none():
    found = fit_law(LOADS, planted([100.0, 5.0, 300.0, 2.0, 80.0, 900.0]), is_load=False, level=0.95)
    assert not found.holds


def test_too_few_levels_or_blocks_have_no_law():
    assert fit_law([1, 2, 3], np.ones((5, 3)), is_load=False, level=0.95) is None
    assert fit_law([1, 2, 3, 4], np.ones((1, 4)), is_load=False, level=0.95) is None
    assert fit_law([0, 2, 3, 4], np.ones((5, 4)), is_load=False, level=0.95) is None
    assert fit_law([1, 2, 3, 4], np.ones((5, 4)), is_load=True, level=0.95).law == "constant"
