"""Comparison of the levels of a factor: best level, knee with its interval, trend, and interaction of two factors."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats as oracle

from dbdyno.base.errors import StatsError
from dbdyno.stats.levels import compare_levels, interaction
from soaked import first

RANDOM = np.random.default_rng


def drawn(true, *, blocks=20, spread=0.01, seed=1):
    """Return blocks of levels with these true values, a common drift of the machine, and separate noise for each."""
    rng = RANDOM(seed)
    machine = rng.normal(0, 0.2, (blocks, 1))
    return np.asarray(true) * np.exp(machine + rng.normal(0, spread, (blocks, len(true))))


def found(true, *, threshold=0.02, level=0.95, **how):
    return compare_levels(drawn(true, **how), threshold=threshold, level=level)


def test_the_intervals_of_pairs_are_student_s_at_the_shared_level():
    values = drawn([1.0, 1.5, 1.6])
    own = compare_levels(values, threshold=0.02, level=0.95)
    for j, k in itertools.combinations(range(3), 2):
        apart = np.log(values[:, k] / values[:, j])
        low, high = oracle.t.interval(1 - 0.05 / 3, 19, apart.mean(), oracle.sem(apart))
        assert np.allclose((own.low[k, j], own.high[k, j]), (low, high))
        assert np.allclose((own.low[j, k], own.high[j, k]), (-high, -low))


def test_saturation_has_its_knee_where_the_rest_brings_less_than_the_threshold():
    own = found([1.0, 1.9, 3.4, 5.0, 5.03, 5.05], blocks=40, spread=0.005)
    assert (own.knee, own.knee_low, own.knee_high) == (3, 3, 3)
    assert own.course == "rises"
    assert 0.97 < own.share(3) <= 1.0


def test_the_knee_has_an_interval_where_the_blocks_do_not_tell():
    own = found([1.0, 1.9, 3.4, 4.9, 5.0, 5.05], blocks=5, spread=0.03)
    assert own.knee_low <= 3 <= own.knee_high
    assert own.knee_low < own.knee_high


@pytest.mark.parametrize("true", [1.06, 1.15])
def test_as_many_blocks_as_it_says_tell_a_level_from_another_four_times_out_of_five(true: float):
    """What it says of a few blocks, in the median, holds for as many: 300 times each."""
    said = [found([1.0, true], blocks=10, spread=0.05, seed=seed).blocks_to_tell(1, 0) for seed in range(60)]
    needed = round(np.median([one for one in said if one is not None]))
    told = sum(
        found([1.0, true], blocks=needed, spread=0.05, seed=seed).low[1, 0] > math.log(1.02) for seed in range(300)
    )
    assert 0.7 <= told / 300 <= 0.92
    assert found([1.0, 1.01], blocks=200, spread=0.001).blocks_to_tell(1, 0) is None, "nearer than the threshold"


def test_a_peak_in_the_middle_is_no_rise():
    own = found([1.0, 1.8, 2.2, 1.9, 1.2])
    assert (own.course, own.best, own.knee_low, own.knee_high) == ("peak", 2, 2, 2)
    assert found([2.0, 1.5, 2.1]).course == "dip"


def test_levels_that_are_alike_are_flat_and_their_knee_is_the_first():
    own = found([3.0] * 5, blocks=40, spread=0.005)
    assert (own.course, own.knee, own.knee_high) == ("flat", 0, 0)


def test_growth_up_to_the_last_level_has_its_knee_there():
    own = found([1.0, 1.2, 1.4, 1.6])
    assert (own.knee_low, own.knee_high, own.course) == (3, 3, "rises")
    assert found([1.6, 1.4, 1.2]).course == "falls"


def test_a_block_without_a_level_counts_for_the_others():
    values = drawn([1.0, 2.0, 3.0])
    values[0, 1] = np.nan
    own = compare_levels(values, threshold=0.02, level=0.95)
    assert own.blocks == 19
    assert math.isclose(own.ratio_to(2, 0)[0], 3.0, rel_tol=0.02)


@pytest.mark.parametrize("values", [np.ones((4, 1)), np.ones((1, 3)), np.ones(5)])
def test_too_little_is_refused(values):
    with pytest.raises(StatsError):
        compare_levels(values, threshold=0.02, level=0.95)


def test_the_true_knee_lies_in_its_interval_as_often_as_said():
    """Levels close to the threshold on purpose; over 400 draws at 80 %, so that a miss can be seen at all."""
    true = np.array([1.0, 1.5, 1.9, 1.985, 2.0, 2.01])
    knee, seed = 3, 11
    hits = sum(
        own.knee_low <= knee <= own.knee_high
        for own in (found(true, level=0.8, blocks=8, spread=0.02, seed=seed + at) for at in range(400))
    )
    assert hits >= 0.8 * 400 - 3 * math.sqrt(400 * 0.16), f"seed {seed}"


def test_levels_that_are_alike_are_seldom_called_different():
    """An A/A of a whole sweep: five equal levels, 400 draws; any certain difference at all is a false one."""
    false = sum(bool((found([1.0] * 5, blocks=6, seed=at).low > 0).any()) for at in range(400))
    assert false <= 0.05 * 400 + 3 * math.sqrt(400 * 0.05 * 0.95)


class TestBaseThatDrifted:
    """Intervals that contain those of the fitted line at both ends of the run."""

    AT = np.arange(12.0)

    def test_they_hold_those_of_the_line_at_both_ends(self):
        logs = np.random.default_rng(1).normal(0.3, 0.05, 12)
        values = np.column_stack([np.ones(12), np.exp(logs)])
        plain, own = (compare_levels(values, threshold=0.02, level=0.95, at_s=at) for at in (None, self.AT))
        line = oracle.linregress(self.AT, logs)
        error = math.sqrt(float(((logs - line.intercept - line.slope * self.AT) ** 2).sum()) / 10)
        at_end = error * math.sqrt(1 / 12 + 5.5**2 / 143)
        reach = oracle.t.ppf(0.975, 10) * at_end + abs(line.slope) * 5.5
        assert own.low[1, 0] == pytest.approx(logs.mean() - reach)
        assert own.high[1, 0] == pytest.approx(logs.mean() + reach)
        assert own.low[1, 0] < plain.low[1, 0] < plain.high[1, 0] < own.high[1, 0]

    def test_a_difference_that_went_away_is_none_though_its_mean_is_certain(self):
        logs = np.linspace(0.4, 0.0, 12) + np.random.default_rng(2).normal(0, 0.02, 12)
        values = np.column_stack([np.ones(12), np.exp(logs)])
        assert compare_levels(values, threshold=0.02, level=0.95).low[1, 0] > 0
        assert compare_levels(values, threshold=0.02, level=0.95, at_s=self.AT).low[1, 0] < 0

    def test_five_blocks_in_common_are_the_least(self):
        with pytest.raises(StatsError, match="fewer than five blocks"):
            compare_levels(drawn([1.0, 2.0], blocks=4), threshold=0.02, level=0.95, at_s=np.arange(4.0))

    @pytest.mark.parametrize("seed", first(1, 2))
    def test_equal_levels_are_seldom_called_different_whatever_the_base_does(self, seed: int):
        """An A/A of a sweep whose base becomes twice as slow: five levels, 200 draws, at the stated level."""
        drift = np.exp(np.linspace(0, math.log(2), 12))[:, None]
        false = 0
        for at in range(200):
            values = drawn([1.0] * 5, blocks=12, spread=0.05, seed=1000 * seed + at) / drift
            false += bool((compare_levels(values, threshold=0.02, level=0.95, at_s=self.AT).low > 0).any())
        assert false <= 0.05 * 200 + 2 * math.sqrt(200 * 0.05 * 0.95)


class TestInteraction:
    def test_factors_that_multiply_do_not_interact(self):
        values = drawn([1, 2, 3, 2, 4, 6], blocks=30, spread=0.005).reshape(30, 2, 3)
        own = interaction(values, threshold=0.02, level=0.95)
        assert own.is_none
        assert np.allclose(own.effects, 3.0, rtol=0.02)

    def test_memory_that_helps_many_sessions_only_is_named_with_its_size(self):
        values = drawn([1.0, 1.0, 4.0, 7.6], blocks=12).reshape(12, 2, 2)
        own = interaction(values, threshold=0.02, level=0.95)
        assert own.is_certain
        assert (own.least, own.most) == (0, 1)
        assert np.allclose(own.effects, (1.0, 1.9), rtol=0.03)
        assert own.low < 1.9 < own.high

    def test_few_blocks_say_neither(self):
        values = drawn([1.0, 1.02, 1.0, 1.05], blocks=3, spread=0.05).reshape(3, 2, 2)
        own = interaction(values, threshold=0.02, level=0.95)
        assert not own.is_certain
        assert not own.is_none
