"""Totals of many kinds of parts: the error comes from the parts, and a kind measured only once is reported."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from dbdyno.stats.stratified import Stratum, compare_totals, single_part
from soaked import first


def cut(values: np.ndarray, batches: int = 20) -> Stratum:
    """Return the parts in order, in batches of about equal size."""
    parts = np.array_split(np.asarray(values, dtype=float), min(batches, len(values)))
    return Stratum(np.array([p.sum() for p in parts]), np.array([float(p.size) for p in parts]))


def test_one_stratum_of_single_parts_is_welch_on_the_totals():
    dice = np.random.default_rng(3)
    a, b = dice.normal(100, 4, 20), dice.normal(110, 6, 20)
    found = compare_totals([cut(a)], [cut(b)])
    assert found.ratio == pytest.approx(b.sum() / a.sum())
    assert found.value == pytest.approx(b.sum())
    errors = [v.std(ddof=1) / v.mean() / math.sqrt(v.size) for v in (a, b)]
    plain = math.hypot(*errors)
    assert found.standard_error == pytest.approx(plain, rel=0.6), "but for autocorrelation"
    assert found.standard_error >= plain * (1 - 1e-9)


def test_naming_the_other_total_first_mirrors_the_answer():
    dice = np.random.default_rng(9)
    a, b = [cut(dice.normal(10, 2, 40))], [cut(dice.normal(12, 3, 60))]
    one, two = compare_totals(a, b), compare_totals(b, a)
    assert (one.low, one.high) == pytest.approx((1 / two.high, 1 / two.low))
    assert one.p == pytest.approx(two.p)


def test_one_long_part_among_sixty_short_ones_proves_nothing():
    """On logarithms it was "slower": eight times the total, with an error as large as itself."""
    dice = np.random.default_rng(10)
    good, bad = dice.normal(1, 0.1, 60), dice.normal(1, 0.1, 60)
    bad[30] = 450
    found = compare_totals([cut(good)], [cut(bad)])
    assert found.ratio > 8
    assert found.decision == "unclear"
    assert found.low < 1 < found.high


def test_errors_of_strata_add_up_and_do_not_average():
    dice = np.random.default_rng(4)
    small, large = dice.normal(1, 0.1, 40), dice.normal(1000, 10, 40)
    both = compare_totals([cut(small), cut(large)], [cut(small), cut(large)])
    alone = compare_totals([cut(large)], [cut(large)])
    assert both.standard_error == pytest.approx(alone.standard_error, rel=0.01)


def test_a_scale_moves_the_ratio_and_not_its_error():
    dice = np.random.default_rng(5)
    a, b = cut(dice.normal(10, 1, 100)), cut(dice.normal(10, 1, 200))
    plain, scaled = compare_totals([a], [b]), compare_totals([a], [b], scales=(1 / 100, 1 / 200))
    assert scaled.ratio == pytest.approx(plain.ratio / 2)
    assert scaled.standard_error == pytest.approx(plain.standard_error)


def test_what_was_done_once_is_in_the_total_and_not_in_its_error():
    one = Stratum(np.array([500.0]), np.array([1.0]))
    many = cut(np.random.default_rng(6).normal(10, 1, 50))
    assert single_part([one, many]) == 500
    found = compare_totals([one, many], [many])
    assert found.base_value == pytest.approx(500 + many.sums.sum())
    nothing = compare_totals([one], [many])
    assert (nothing.decision, nothing.blocks) == ("unclear", 0)
    assert math.isnan(nothing.low)


@pytest.mark.parametrize("memory", first(0.5, 0.0))
def test_false_alarms_stay_near_the_level(memory: float):
    """Two runs of the same program: three statements, skewed times that follow each other."""
    seed = 12
    print("seed", seed)
    dice = np.random.default_rng(seed)

    def run() -> list[Stratum]:
        strata = []
        for count, scale, spread in ((200, 1.0, 0.8), (60, 5.0, 0.4), (1000, 0.2, 0.3)):
            noise = dice.normal(size=count)
            for at in range(1, count):
                noise[at] = memory * noise[at - 1] + math.sqrt(1 - memory**2) * noise[at]
            strata.append(cut(scale * np.exp(spread * noise)))
        return strata

    runs = 300
    alarms = sum(compare_totals(run(), run()).p < 0.05 for _ in range(runs))
    print("alarms", alarms / runs)
    assert stats.binomtest(alarms, runs, 0.05, "greater").pvalue > 0.001


def test_a_difference_of_a_tenth_is_seen_in_two_hundred_parts():
    dice = np.random.default_rng(8)
    a, b = np.exp(dice.normal(0, 0.2, 200)), 1.2 * np.exp(dice.normal(0, 0.2, 200))
    assert compare_totals([cut(a)], [cut(b)]).decision == "slower"
