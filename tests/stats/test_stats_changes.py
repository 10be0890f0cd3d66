"""Changes in a series: planted changes are found, false ones are rare, and intervals cover the planted change."""

from __future__ import annotations

import numpy as np
import pytest

from dbdyno.base.errors import StatsError
from dbdyno.stats.changes import Change, detectable_step, level_changes
from soaked import first


def series(levels, *, spread=0.02, seed=1):
    rng = np.random.default_rng(seed)
    return np.asarray(levels) * np.exp(rng.normal(0, spread, len(levels)))


def steps(levels, *, seed=1) -> list[Change]:
    """Return the changes found in a series, and the step that explains it as well as a drift."""
    moves = level_changes(series(levels, seed=seed), level=0.95)
    return [*moves.changes, *([moves.drift.step] if moves.drift and moves.drift.step else [])]


def test_a_step_is_found_where_it_is_with_its_size():
    (found,) = level_changes(series([100.0] * 14 + [88.0] * 10), level=0.99).changes
    assert found.at == 14
    assert found.low < 0.88 < found.high
    assert found.p <= 0.01


@pytest.mark.parametrize(("step", "widest", "least"), first((0.94, 4, 70), (0.97, 12, 30)))
def test_where_a_change_began_is_held_by_its_interval(step: float, widest: int, least: int):
    """100 series of 24 runs, steps of one and a half and of three times the noise: the larger has a narrow interval."""
    every = [steps([100.0] * 14 + [100.0 * step] * 10, seed=seed) for seed in range(100)]
    found = [one[0] for one in every if len(one) == 1]
    held = sum(one.first <= 14 <= one.last for one in found)
    assert len(found) > least and held >= 0.95 * len(found) - 2.6 * np.sqrt(len(found) * 0.95 * 0.05)
    assert np.median([one.last - one.first for one in found]) <= widest


@pytest.mark.parametrize(("side", "around"), first((9, 1), (24, 0)))
def test_a_step_far_larger_than_the_noise_began_where_it_is(side: int, around: int):
    """Of n runs on a side the last is the odd one by chance once in n: only from some twenty on that is ruled out."""
    (found,) = level_changes(series([100.0] * side + [150.0] * side), level=0.95).changes
    assert (found.first, found.at, found.last) == (side - around, side, side + around)


def test_the_intervals_of_two_changes_lie_apart():
    one, two = level_changes(series([100.0] * 8 + [108.0] * 8 + [100.0] * 8), level=0.95).changes
    assert one.first <= 8 <= one.last < two.first <= 16 <= two.last


def test_two_steps_are_two_changes():
    found = level_changes(series([100.0] * 8 + [120.0] * 8 + [100.0] * 8), level=0.95).changes
    assert [change.at for change in found] == [8, 16]
    assert found[0].ratio > 1 > found[1].ratio


@pytest.mark.parametrize("count", first(50, 200))
def test_a_level_series_has_none_in_19_of_20(count: int):
    """So many series of 20 values that differ by noise alone."""
    false = sum(bool(level_changes(series([100.0] * 20, seed=seed), level=0.95).changes) for seed in range(count))
    assert false <= 0.05 * count + 3 * np.sqrt(count * 0.05 * 0.95)


@pytest.mark.parametrize("count", first(30, 100))
def test_steps_of_three_times_the_noise_are_found(count: int):
    """With ten runs on a side three of four, since neighbours may be alike; half are told from a drift."""
    found = [steps([100.0] * 10 + [94.0] * 10, seed=seed) for seed in range(count)]
    assert sum(any(abs(one.at - 10) <= 1 for one in every) for every in found) >= 0.65 * count


@pytest.mark.parametrize("n", first(12, 24))
def test_a_step_that_would_be_found_four_times_out_of_five_is(n: int):
    least = float(np.median([detectable_step(series([100.0] * n, seed=seed), level=0.95) for seed in range(3)]))
    levels = [100.0] * (n // 2) + [100.0 * least] * (n - n // 2)
    found = sum(bool(level_changes(series(levels, seed=seed), level=0.95).changes) for seed in range(50))
    assert 25 <= found <= 49


def test_eight_values_show_only_a_step_far_beyond_the_noise():
    assert detectable_step(series([100.0] * 8), level=0.99) > 1 + 6 * 0.02
    assert detectable_step([5.0] * 12, level=0.95) == 1.0


def test_equal_values_and_one_outlier_are_no_change():
    assert level_changes([5.0] * 12, level=0.95).changes == []
    values = series([100.0] * 20)
    values[9] *= 3
    assert level_changes(values, level=0.95).changes == []


@pytest.mark.parametrize("values", [[1.0] * 7, [1.0] * 7 + [0.0], [1.0] * 7 + [float("nan")]])
def test_too_few_or_wrong_values_are_refused(values):
    with pytest.raises(StatsError):
        level_changes(values, level=0.95)
