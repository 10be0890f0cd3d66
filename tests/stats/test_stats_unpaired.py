"""Two independent sets of blocks: scipy's Welch test on the logarithms, and the promised level."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from dbdyno.base.errors import StatsError
from dbdyno.stats.unpaired import compare_unpaired
from soaked import first


def test_it_is_welch_on_the_logarithms():
    dice = np.random.default_rng(4)
    a, b = np.exp(dice.normal(0, 0.1, 12)), np.exp(dice.normal(0.1, 0.3, 31))
    found = compare_unpaired(a, b, higher_is_better=False)
    there = stats.ttest_ind(np.log(b), np.log(a), equal_var=False)
    ends = np.exp(there.confidence_interval(0.95))
    assert found.p == pytest.approx(there.pvalue, rel=1e-9)
    assert (found.low, found.high) == pytest.approx(tuple(ends), rel=1e-9)
    assert found.effective_blocks == pytest.approx(there.df + 1)
    assert found.ratio == pytest.approx(found.value / found.base_value)


def test_naming_the_other_set_first_mirrors_the_answer():
    dice = np.random.default_rng(5)
    a, b = np.exp(dice.normal(0, 0.02, 9)), np.exp(dice.normal(0.1, 0.02, 14))
    one = compare_unpaired(a, b, higher_is_better=False)
    two = compare_unpaired(b, a, higher_is_better=False)
    assert (one.decision, two.decision) == ("slower", "faster")
    assert one.low == pytest.approx(1 / two.high)


@pytest.mark.parametrize(("one", "other"), first((6, 40), (5, 5)))
def test_false_alarms_are_as_many_as_stated(one: int, other: int):
    seed = 11
    print("seed", seed)
    dice = np.random.default_rng(seed)
    runs = 600
    alarms = sum(
        compare_unpaired(
            np.exp(dice.normal(0, 0.05, one)),
            np.exp(dice.normal(0, 0.2, other)),
            higher_is_better=False,
        ).p
        < 0.05
        for _ in range(runs)
    )
    assert alarms / runs < 0.05 + 3 * math.sqrt(0.05 * 0.95 / runs)


def test_slices_that_repeat_themselves_give_a_wider_interval():
    dice = np.random.default_rng(6)
    a, b = (np.exp(np.cumsum(dice.normal(0, 0.02, 30))) for _ in range(2))
    plain = compare_unpaired(a, b, higher_is_better=False)
    ordered = compare_unpaired(a, b, higher_is_better=False, in_order=True)
    assert ordered.high / ordered.low > plain.high / plain.low
    assert ordered.inflation > 1


@pytest.mark.parametrize(("a", "b"), [([], []), ([1.0], [1.0, 2.0]), ([math.nan, 1.0], [0.0, 2.0])])
def test_too_few_blocks_cannot_tell(a: list[float], b: list[float]):
    found = compare_unpaired(a, b, higher_is_better=False)
    assert found.decision == "unclear"
    assert math.isnan(found.p)
    assert found.words.startswith("cannot tell")


def test_sets_without_any_spread_are_the_same_or_not():
    same = compare_unpaired([5.0] * 4, [5.0] * 6, higher_is_better=False)
    other = compare_unpaired([5.0] * 4, [6.0] * 6, higher_is_better=False)
    assert (same.decision, same.p) == ("same", 1.0)
    assert other.decision == "slower"
    assert other.p < 1e-50


def test_values_known_by_a_grain_do_not_make_a_difference_certain():
    sure = compare_unpaired([10.0] * 20, [10.05] * 20, higher_is_better=False, threshold=0.001)
    coarse = compare_unpaired([10.0] * 20, [10.05] * 20, higher_is_better=False, threshold=0.001, sd_least=0.05)
    assert (sure.decision, coarse.decision) == ("slower", "unclear")


def test_a_level_that_makes_no_sense_is_refused():
    with pytest.raises(StatsError):
        compare_unpaired([1.0, 2.0], [1.0, 2.0], higher_is_better=False, level=1.5)
    with pytest.raises(StatsError):
        compare_unpaired([[1.0, 2.0]], [1.0, 2.0], higher_is_better=False)
