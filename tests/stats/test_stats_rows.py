"""Functions for many pairs give the same results as those for one pair."""

from __future__ import annotations

import numpy as np
import pytest

from dbdyno.base.errors import StatsError
from dbdyno.stats.classical import mann_whitney
from dbdyno.stats.quantiles import interval_ranks, quantile_interval
from dbdyno.stats.row_comparisons import medians, ratios, second_larger
from dbdyno.stats.unpaired import compare_unpaired

SEED = 20261123


def pairs(rows: int, n: int, m: int) -> tuple[np.ndarray, np.ndarray]:
    """Return pairs of positive values: one row of integers with ties, one with a drift, one that is constant."""
    print("seed", SEED)
    dice = np.random.default_rng(SEED)
    a, b = (dice.lognormal(1.0, 0.5, (rows, count)) for count in (n, m))
    a[0], b[0] = np.ceil(a[0]), np.ceil(b[0])
    a[1] += np.linspace(0, 20, n)
    a[2], b[2] = 3.0, 3.0
    b[3] *= 4
    return a, b


@pytest.mark.parametrize(("n", "m"), [(5, 6), (40, 30), (120, 75)])
def test_each_row_is_tested_as_one_pair_is(n: int, m: int):
    a, b = pairs(6, n, m)
    by_ratio = ratios(a, b)
    chance, p = second_larger(a, b)
    middle, low, high = medians(a)
    for at in range(len(a)):
        one = compare_unpaired(a[at], b[at], higher_is_better=True, in_order=True)
        found = [getattr(by_ratio, name)[at] for name in ("ratio", "low", "high", "p")]
        assert found == pytest.approx([one.ratio, one.low, one.high, one.p], rel=1e-9)
        _, ranks = np.unique(np.concatenate([a[at], b[at]]), return_inverse=True)
        whole = ranks.astype(np.int64)
        ranked = mann_whitney(np.sort(whole[:n]), np.sort(whole[n:]))
        assert (chance[at], p[at]) == (ranked.effect_value, ranked.p)
        around = quantile_interval(np.sort(a[at]), 0.5)
        assert middle[at] == np.median(a[at])
        assert np.array_equal([low[at], high[at]], [around.low, around.high], equal_nan=True)


def test_a_row_that_never_varies_is_the_same_and_one_that_jumps_is_certain():
    same = np.full((2, 8), 3.0)
    other = np.stack([np.full(8, 3.0), np.full(8, 6.0)])
    found = ratios(same, other)
    assert found.p.tolist() == [1.0, 0.0]
    assert found.ratio.tolist() == pytest.approx([1.0, 2.0])


def test_no_rows_are_no_error_and_no_values_are():
    none = ratios(np.empty((0, 7)), np.empty((0, 9)))
    assert none.p.size == 0
    with pytest.raises(StatsError):
        medians(np.empty((3, 0)))


@pytest.mark.parametrize(("count", "ranks"), [(5, (0, 6)), (6, (1, 6)), (10, (2, 9)), (100, (40, 61))])
def test_the_interval_of_a_median_lies_between_these_ranks(count: int, ranks: tuple[int, int]):
    """Known values of the sign test's interval at 95 %."""
    assert interval_ranks(count, 0.5, 0.95) == ranks
