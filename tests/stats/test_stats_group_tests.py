"""Comparison of groups: blocks are used first, and results from single values are labelled."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dbdyno.base.errors import StatsError
from dbdyno.stats.blocks import compare_blocks
from dbdyno.stats.description import describe
from dbdyno.stats.group_tests import compare_groups, compare_in_blocks, welch_from_summary
from dbdyno.stats.plots import coarse_buckets, density, histogram, scatter
from dbdyno.stats.scalability import usl


def blocked(ratio: float, *, paired: bool, seed: int = 1, drift: float = 0.3):
    """Return two groups in 20 blocks whose level drifts, so that values within a block are correlated."""
    rng = np.random.default_rng(seed)
    values, groups, blocks = [], [], []
    for block in range(20):
        for group in ("a", "b"):
            if paired or (block % 2 == 0) == (group == "a"):
                shift = rng.normal(0, 0.004)
                level = 500 * np.exp(drift * np.sin(block) + shift) * (ratio if group == "b" else 1)
                values.append(rng.gamma(20, level / 20, 1500))
                groups += [group] * 1500
                blocks += [block] * 1500
    return describe(np.concatenate(values), groups, blocks)


def test_paired_blocks_are_compared_as_an_experiments_are() -> None:
    found = compare_in_blocks(blocked(1.066, paired=True), randomised=True)
    mean = next(answer for answer in found if answer.metric == "mean")
    assert (mean.paired, mean.blocks) == (True, 20)
    assert mean.low < 1.066 < mean.high
    assert "mean of b is" in mean.sentence
    assert "% higher than of a" in mean.sentence
    described = blocked(1.066, paired=True)
    sides = [[v.mean for v in described.blocks if v.group == g] for g in (0, 1)]
    expected = compare_blocks(*sides, higher_is_better=False, resamples=0)
    assert (mean.ratio, mean.low, mean.high) == pytest.approx((expected.ratio, expected.low, expected.high))


def test_quantiles_that_the_blocks_carry_are_compared_too() -> None:
    found = compare_in_blocks(blocked(1.066, paired=True))
    assert [answer.metric for answer in found] == ["mean", "p50", "p75", "p90", "p95", "p99"]


def test_blocks_of_one_group_each_are_compared_unpaired_and_much_wider() -> None:
    paired = compare_in_blocks(blocked(1.066, paired=True), randomised=True)[0]
    apart = compare_in_blocks(blocked(1.066, paired=False), randomised=True)[0]
    assert (apart.paired, apart.blocks) == (False, 10)
    assert apart.low < 1.066 < apart.high
    assert np.log(apart.high / apart.low) > 5 * np.log(paired.high / paired.low)


def test_dependent_values_are_different_to_welch_and_not_to_blocks() -> None:
    """Equal groups whose blocks wander: single values cry "different", blocks do not."""
    cried = {"welch": 0, "blocks": 0}
    for seed in range(20):
        described = blocked(1.0, paired=False, seed=seed)
        cried["welch"] += compare_groups(described)[0].p < 0.05
        answer = compare_in_blocks(described, randomised=True)[0]
        cried["blocks"] += not answer.low <= 1 <= answer.high
    assert cried["welch"] >= 15
    assert cried["blocks"] <= 3


def test_without_blocks_or_with_values_not_above_zero_there_is_no_block_answer() -> None:
    assert compare_in_blocks(describe([1, 2, 3, 4], [1, 1, 2, 2])) == []
    values = describe([0, 0, 3, 4, 5, 6, 7, 8], [1, 1, 2, 2] * 2, [1, 1, 1, 1, 2, 2, 2, 2])
    assert compare_in_blocks(values) == []


def test_what_cannot_be_tested_is_said() -> None:
    with pytest.raises(StatsError, match="two groups, found 1"):
        compare_groups(describe([1, 2, 3], [1, 1, 1]))
    with pytest.raises(StatsError, match="no values in the group b"):
        compare_groups(describe([1, 2, 3, None], ["a", "a", "c", "b"]))
    constant = compare_groups(describe([1, 1, 1, 1], [1, 1, 2, 2]))
    assert math.isnan(constant[0].statistic) and "the values do not vary in either group" in constant[0].note
    with pytest.raises(StatsError, match="is not a valid summary"):
        welch_from_summary((1, 5.0, 1.0), (9, 5.0, 1.0))


def test_a_group_of_one_value_leaves_welch_out_and_keeps_the_rest() -> None:
    tests = compare_groups(describe([1, 2, 3, 4, 9], [1, 1, 2, 2, 3]))
    assert [test.test for test in tests] == ["one-way F", "Welch F", "Kruskal-Wallis H"]
    assert [math.isnan(test.statistic) for test in tests] == [False, True, False]
    assert "two values in each group" in tests[1].note


def test_coarse_buckets_hold_every_value_once() -> None:
    rng = np.random.default_rng(2)
    for values in (rng.lognormal(0, 2, 5000), rng.normal(0, 1, 5000), np.full(9, 3.0), [0, 0, 5]):
        rows = coarse_buckets(describe(values), 24)
        assert sum(count for *_, (count,) in rows) == len(values)
        assert rows[0][0] == min(values)
        assert rows[-1][1] == max(values)


def test_a_density_has_area_one_and_its_top_where_the_values_are() -> None:
    rng = np.random.default_rng(3)
    model = density(describe(rng.lognormal(6, 0.5, 50_000)))
    assert model["log"]
    x, y = np.log10([p[0] for p in model["groups"][0]["points"]]), [p[1] for p in model["groups"][0]["points"]]
    assert np.trapezoid(y, x) == pytest.approx(1.0, abs=2e-3)
    assert x[int(np.argmax(y))] == pytest.approx(6 / np.log(10), abs=0.03)
    assert sum(s for *_, s in histogram(describe([1, 2, 3]))["groups"][0]["steps"]) == 1.0


def test_a_scatter_of_many_rows_becomes_cells_that_hold_every_row() -> None:
    rng = np.random.default_rng(4)
    x = rng.lognormal(3, 2, 10_000)
    model = scatter(x, x**0.5)
    assert (model["log_x"], model["log_y"], model["points"]) == (True, True, [])
    assert sum(cell[4] for cell in model["cells"]) == x.size
    (x0, y0), *_, (x1, y1) = model["line"]
    assert np.log(y1 / y0) / np.log(x1 / x0) == pytest.approx(0.5)
    with pytest.raises(StatsError, match="above 0"):
        scatter([-1, 2], [1, 2], log=True)
    with pytest.raises(StatsError, match="there are no values to draw"):
        scatter([], [])


def test_a_law_of_three_parameters_needs_four_rows() -> None:
    with pytest.raises(StatsError, match="too few"):
        usl([1, 2, 4], [10, 19, 35])
    with pytest.raises(StatsError, match="above 0"):
        usl([0, 1, 2, 4], [1, 10, 19, 35])
