"""Racing arms: which arms are dropped, when the race ends, and how often an arm is dropped wrongly."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dbdyno.stats.sequential import Race, t_limit
from soaked import first


def raced(true, *, blocks=20, spread=0.02, seed=1, level=0.95, threshold=0.02):
    """Run a race over these true values; return it with the number of arm-blocks that it took."""
    rng, race, spent = np.random.default_rng(seed), Race(len(true), level, threshold), 0
    for _ in range(blocks):
        machine = math.exp(rng.normal(0, 0.2))
        spent += len(race.alive)
        race.add_block({arm: true[arm] * machine * math.exp(rng.normal(0, spread)) for arm in race.alive})
        if race.is_over:
            break
    return race, spent


def test_the_limit_is_where_the_bayes_factor_exceeds_one_over_alpha():
    for n, alpha in ((6, 0.01), (12, 0.001), (40, 0.05)):
        t, g, v = t_limit(n, alpha), 30.0, n - 1
        k = 1 + n * g
        factor = k**-0.5 * ((1 + t * t / v) / (1 + t * t / (k * v))) ** (n / 2)
        assert math.isclose(factor, 1 / alpha, rel_tol=1e-9)
    assert t_limit(2, 1e-9) == math.inf
    assert t_limit(1, 0.05) == math.inf


def test_arms_that_are_surely_worse_leave_and_the_best_is_left():
    race, _ = raced([1.0, 1.5, 2.0])
    assert race.alive == [2]
    assert race.dropped[0].arm == 0
    assert all(one.apart.low > 1 for one in race.dropped)
    assert race.is_over


def test_arms_that_are_equal_end_the_race_as_equal():
    race, _ = raced([1.0, 1.0], blocks=400, spread=0.01)
    assert race.alive == [0, 1]
    assert race.remaining_are_equal


def test_the_best_of_sixteen_five_percent_apart_is_found_with_half_of_the_blocks():
    """Against a full design of the same number of blocks for every arm."""
    true = [1.05**at for at in np.random.default_rng(9).permutation(16)]
    races = [raced(true, blocks=20, seed=seed) for seed in range(20)]
    best = int(np.argmax(true))
    assert [race.leader for race, _ in races] == [best] * 20
    assert sum(race.alive == [best] for race, _ in races) >= 17
    assert max(spent for _, spent in races) <= 0.5 * 20 * 16


@pytest.mark.parametrize("count", first(50, 200))
def test_of_equal_arms_one_seldom_leaves_in_so_many_races(count: int):
    """Looked at after each of 40 blocks; any arm that leaves is a false verdict. At 80 %, so that misses are seen."""
    level, false = 0.8, 0
    for seed in range(count):
        race, _ = raced([1.0] * 4, blocks=40, seed=seed, level=level, threshold=0.0)
        false += bool(race.dropped)
    assert false <= count * (1 - level) + 3 * math.sqrt(count * level * (1 - level))


def test_a_block_that_gave_no_number_counts_for_nobody():
    race = Race(2, 0.95, 0.02)
    race.add_block({0: 1.0})
    race.add_block({0: math.nan, 1: 2.0})
    race.add_block({0: 0.0, 1: 2.0})
    assert race.alive == [0, 1]
    assert race.compare(0, 1).blocks == 0


@pytest.mark.parametrize("blocks", [1, 2])
def test_one_or_two_blocks_never_decide(blocks):
    race = Race(2, 0.95, 0.02)
    for _ in range(blocks):
        race.add_block({0: 1.0, 1: 5.0})
    assert not race.dropped
