"""Ratios of sums over rounds: exact where theory is exact, with false alarms at the nominal rate."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from dbdyno.base.errors import StatsError
from dbdyno.stats.ratios import ROUNDS_LEAST, compare_ratios, ratio_of


def dice() -> np.random.Generator:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    return np.random.default_rng(seed)


def test_a_ratio_is_that_of_the_sums_however_long_the_rounds_were():
    found = ratio_of([10, 60, 30], [1, 6, 3])
    assert found.value == 10
    assert (found.above, found.below, found.rounds, found.moved) == (100, 10, 3, 3)
    assert found.error == 0


def test_the_error_of_equal_rounds_is_that_of_a_mean():
    """With rounds of one length the ratio estimator is the mean, its error s / sqrt(n)."""
    values = dice().normal(100, 10, 5)  # below 6 rounds nothing is said of their correlation
    found = ratio_of(values, np.ones(5))
    assert found.value == pytest.approx(values.mean())
    assert found.error * found.value == pytest.approx(values.std(ddof=1) / math.sqrt(5))


def test_rounds_without_a_number_are_left_out():
    assert ratio_of([10, math.nan, 20], [1, 1, 2]).value == 10
    assert ratio_of([10, 5, 20], [1, math.nan, 2]).rounds == 2


def test_a_ratio_of_nothing_is_not_a_number_and_has_no_test():
    never = ratio_of([0.0] * 8, [0.0] * 8)
    some = ratio_of([1.0] * 8, [2.0] * 8)
    assert math.isnan(never.value)
    assert never.interval() is None
    assert math.isnan(compare_ratios(never, some).p)
    assert math.isnan(compare_ratios(ratio_of([], []), some).p)


def test_what_never_moved_on_either_side_is_not_tested():
    still = ratio_of([0.0] * 8, [60.0] * 8)
    assert math.isnan(compare_ratios(still, still).p)


def test_too_few_rounds_give_the_ratio_but_no_test():
    few = ROUNDS_LEAST - 1
    found = compare_ratios(ratio_of([10.0] * few, [1.0] * few), ratio_of([20.0] * 9, [1.0] * 9))
    assert found.ratio == 2
    assert math.isnan(found.p)


def test_a_halved_rate_is_found_with_an_interval_that_holds_it():
    """Rounds that happen to resemble the next make the odd pair less certain (in 1 of 20 p is
    above 1e-6), never doubtful."""
    chance = dice()
    found = []
    for _ in range(41):
        base = ratio_of(chance.poisson(1000, 12), np.full(12, 60.0), events=True)
        other = ratio_of(chance.poisson(500, 30), np.full(30, 60.0), events=True)
        found.append(compare_ratios(base, other))
    assert np.median([one.p for one in found]) < 1e-6
    assert np.median([one.high for one in found]) < 0.6
    for one in found:
        assert one.p < 0.05
        assert one.low < one.ratio < one.high < 1
        assert one.larger == 0


def test_few_events_are_not_certain_however_even_they_come():
    """One event in every round against two: without the Poisson error the difference would be
    certain."""
    one = ratio_of([1.0] * 6, [60.0] * 6, events=True)
    two = ratio_of([2.0] * 6, [60.0] * 6, events=True)
    assert compare_ratios(one, two).p > 0.1
    assert compare_ratios(ratio_of([1.0] * 6, [60.0] * 6), ratio_of([2.0] * 6, [60.0] * 6)).p < 1e-6


def test_one_burst_decides_nothing():
    burst = np.zeros(40)
    burst[17] = 1e6
    small = np.zeros(40)
    small[3] = 10
    found = compare_ratios(ratio_of(burst, np.ones(40)), ratio_of(small, np.ones(40)))
    assert math.isnan(found.low)
    assert found.p > 0.4


def test_a_steady_rate_that_all_but_ceased_differs():
    """Switched off just after the second recording began: its only round that moved has no spread
    of its own, yet is small beside what was."""
    steady = ratio_of(dice().normal(600, 20, 20) * 60, np.full(20, 60.0), events=True)
    ceased = np.zeros(20)
    ceased[0] = 4000
    found = compare_ratios(steady, ratio_of(ceased, np.full(20, 60.0), events=True))
    assert math.isnan(found.low)
    assert found.p < 0.05


def test_a_side_that_never_moved_is_judged_by_the_rounds_that_moved():
    """k rounds that moved, all on one of two sides of equal length: at most 2 / 2^k."""
    still = ratio_of([0.0] * 20, [60.0] * 20, events=True)
    for k in (1, 3, 10):
        moving = np.zeros(20)
        moving[:: 20 // k][:k] = 1
        found = compare_ratios(still, ratio_of(moving, np.full(20, 60.0), events=True))
        assert found.p >= 2 / 2**k or found.p == 1
        assert found.p < 0.05 or k < 10


def test_a_share_is_no_surer_than_its_binomial_error():
    found = ratio_of([30.0] * 10, [100.0] * 10, share=True)
    assert found.error == pytest.approx(math.sqrt(0.7 / 300))


def test_unequal_lengths_are_refused():
    with pytest.raises(StatsError, match="3 and 2 values"):
        ratio_of([1, 2, 3], [1, 2])


def correlated(chance: np.random.Generator, n: int, r: float) -> np.ndarray:
    """Return an AR(1) series with standard deviation 1."""
    z = np.empty(n)
    z[0] = chance.normal()
    for at in range(1, n):
        z[at] = r * z[at - 1] + math.sqrt(1 - r * r) * chance.normal()
    return z


@pytest.mark.parametrize(
    ("kind", "n", "most"),
    [
        ("independent", 10, 0.07),
        ("independent", 40, 0.07),
        ("correlated", 20, 0.08),
        ("correlated", 60, 0.08),
        ("bursts", 20, 0.06),
        ("rare", 30, 0.06),
        ("latency", 20, 0.07),
    ],
)
def test_false_alarms_stay_at_five_per_cent(kind: str, n: int, most: float):
    """Two recordings of one load, 600 times: p below 0.05 in about 5 % or fewer (binomial error
    0.9 % each)."""
    chance = dice()

    def side():
        if kind == "rare":
            return ratio_of(chance.poisson(0.3, n), np.full(n, 60.0), events=True)
        if kind == "bursts":
            on = chance.random(n) < 0.2
            return ratio_of(np.where(on, chance.integers(1, 2000, n), 0), np.full(n, 60.0))
        if kind == "latency":
            requests = chance.poisson(3000 * np.exp(0.3 * chance.normal(size=n)))
            times = requests * 200 * np.exp(0.15 * chance.normal(size=n))
            return ratio_of(times, requests)
        level = correlated(chance, n, 0.5 if kind == "correlated" else 0.0)
        return ratio_of(chance.poisson(6000 * np.exp(0.2 * level)), np.full(n, 60.0), events=True)

    alarms = sum(compare_ratios(side(), side()).p < 0.05 for _ in range(600))
    assert alarms / 600 <= most + 3 * 0.009
