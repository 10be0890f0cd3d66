"""Comparing two arms over blocks: estimate, interval, decision and words."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dbdyno.base.errors import StatsError
from dbdyno.stats import BlockComparison, blocks_needed, compare_blocks, power_of, smallest_visible


def planted(effect: float, spread: float, blocks: int, *, higher_is_better: bool = False) -> BlockComparison:
    """Return a comparison of two arms whose log ratios have exactly this mean and standard deviation."""
    shape = np.linspace(-1, 1, blocks)[np.random.default_rng(5).permutation(blocks)]
    log_ratios = math.log1p(effect) + spread * (shape - shape.mean()) / shape.std(ddof=1)
    base = np.linspace(90_000, 110_000, blocks)
    return compare_blocks(base, base * np.exp(log_ratios), higher_is_better=higher_is_better)


@pytest.mark.parametrize(
    ("effect", "spread", "higher_is_better", "decision", "words"),
    [
        (0.066, 0.014, False, "slower", "6.6 % slower (95 % CI 5.9 to 7.3 %)"),
        (-0.06, 0.014, True, "slower", "6.0 % slower (95 % CI 5.4 to 6.6 %)"),
        (-0.06, 0.014, False, "faster", "6.0 % faster (95 % CI 5.4 to 6.6 %)"),
        (0.5, 0.014, True, "faster", "50.0 % faster (95 % CI 49.0 to 51.0 %)"),
        (
            0.005,
            0.008,
            False,
            "same",
            "no difference larger than 2 % (0.5 % slower, 95 % CI 0.1 to 0.9 %)",
        ),
        (
            0.0,
            0.01,
            False,
            "same",
            "no difference larger than 2 % (0.0 % change, 95 % CI 0.5 % faster to 0.5 % slower)",
        ),
        (
            0.015,
            0.02,
            False,
            "slower",
            "1.5 % slower (95 % CI 0.6 to 2.5 %), perhaps by less than 2 %",
        ),
        (
            0.01,
            0.06,
            False,
            "unclear",
            "cannot tell: 1.0 % slower (95 % CI 1.8 % faster to 3.9 % slower); "
            "to detect a difference of 2 % takes 58 to 208 blocks in all",
        ),
    ],
)
def test_the_decision_and_its_words(
    effect: float, spread: float, higher_is_better: bool, decision: str, words: str
) -> None:
    found = planted(effect, spread, 20, higher_is_better=higher_is_better)
    assert (found.decision, found.words) == (decision, words)


def test_the_estimate_is_the_ratio_of_the_geometric_means() -> None:
    found = compare_blocks([100, 400], [110, 440], higher_is_better=False)
    assert found.base_value == pytest.approx(200)
    assert found.value == pytest.approx(220)
    assert found.ratio == pytest.approx(1.1)


def test_the_t_interval_follows_the_textbook() -> None:
    found = planted(0.05, 0.03, 16)
    half = 2.131449546 * 0.03 / 4  # t with 15 degrees of freedom, 97.5 %
    assert math.log(found.high) == pytest.approx(math.log(1.05) + half, rel=1e-8)
    assert math.log(found.low) == pytest.approx(math.log(1.05) - half, rel=1e-8)
    assert found.standard_error == pytest.approx(0.03 / 4)


def test_the_bootstrap_agrees_with_t_on_well_behaved_blocks_and_repeats_by_seed() -> None:
    rng = np.random.default_rng(3)
    base = np.exp(rng.normal(0, 0.1, 40))
    other = base * np.exp(rng.normal(0.05, 0.03, 40))
    first = compare_blocks(base, other, higher_is_better=False, seed=9)
    again = compare_blocks(base, other, higher_is_better=False, seed=9)
    assert (first.boot_low, first.boot_high) == (again.boot_low, again.boot_high)
    assert first.boot_low == pytest.approx(first.low, abs=0.002)
    assert first.boot_high == pytest.approx(first.high, abs=0.002)


def test_blocks_that_cannot_give_the_metric_are_left_out_and_counted() -> None:
    found = compare_blocks([100, math.nan, 100, 100, 0, 101], [110, 90, math.nan, 111, 5, 109], higher_is_better=False)
    assert (found.blocks, found.blocks_missing) == (3, 3)


@pytest.mark.parametrize("usable", [0, 1])
def test_fewer_than_two_blocks_tell_nothing_and_say_so(usable: int) -> None:
    base = [100.0] * usable + [math.nan] * 4
    found = compare_blocks(base, base, higher_is_better=False)
    assert found.decision == "unclear"
    assert math.isnan(found.low)
    assert found.words == f"cannot tell: {usable} of {4 + usable} blocks give this metric"


def test_blocks_without_any_spread_are_taken_at_their_word() -> None:
    same = compare_blocks([5] * 6, [5] * 6, higher_is_better=False)
    assert (same.decision, same.ratio, same.p) == ("same", 1.0, 1.0)
    slower = compare_blocks([5] * 6, [10] * 6, higher_is_better=False)
    assert slower.decision == "slower"
    assert slower.p < 1e-12


def test_what_makes_no_sense_is_refused_with_the_next_step() -> None:
    with pytest.raises(StatsError, match="one value per block and arm"):
        compare_blocks([1, 2], [1, 2, 3], higher_is_better=False)
    with pytest.raises(StatsError, match="level"):
        compare_blocks([1, 2], [1, 2], higher_is_better=False, level=1.0)
    with pytest.raises(StatsError, match="threshold"):
        compare_blocks([1, 2], [1, 2], higher_is_better=False, threshold=0.0)


positive = st.floats(1e-3, 1e12)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(positive, positive), min_size=2, max_size=25), st.booleans())
def test_naming_the_other_arm_the_baseline_mirrors_the_answer(
    pairs: list[tuple[float, float]], higher_is_better: bool
) -> None:
    a, b = zip(*pairs, strict=True)
    there = compare_blocks(a, b, higher_is_better=higher_is_better, resamples=0)
    back = compare_blocks(b, a, higher_is_better=higher_is_better, resamples=0)
    mirror = {"faster": "slower", "slower": "faster"}
    assert back.decision == mirror.get(there.decision, there.decision)
    assert back.p == pytest.approx(there.p, rel=1e-6, abs=1e-12)
    assert math.log(back.ratio) == pytest.approx(-math.log(there.ratio), abs=1e-9)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(positive, positive), min_size=2, max_size=25), st.floats(0.01, 100))
def test_the_unit_of_the_metric_does_not_matter(pairs: list[tuple[float, float]], factor: float) -> None:
    a, b = map(np.array, zip(*pairs, strict=True))
    plain = compare_blocks(a, b, higher_is_better=False, resamples=0)
    scaled = compare_blocks(a * factor, b * factor, higher_is_better=False, resamples=0)
    assert scaled.ratio == pytest.approx(plain.ratio, rel=1e-9)
    assert scaled.sd_log == pytest.approx(plain.sd_log, rel=1e-6, abs=1e-12)


class TestPower:
    def test_it_is_the_share_of_simulated_tests_that_see_the_difference(self) -> None:
        rng = np.random.default_rng(8)
        for blocks, spread, effect in [(5, 0.05, 0.05), (20, 0.1, 0.05), (3, 0.014, 0.1)]:
            ratios = rng.normal(math.log1p(effect), spread, (20_000, blocks))
            t = ratios.mean(axis=1) / ratios.std(axis=1, ddof=1) * math.sqrt(blocks)
            critical = {5: 2.776445, 20: 2.093024, 3: 4.302653}[blocks]
            share = float((np.abs(t) > critical).mean())
            assert power_of(blocks, spread, effect) == pytest.approx(share, abs=0.012)

    def test_without_a_difference_it_is_the_level(self) -> None:
        assert power_of(12, 0.1, 0.0) == pytest.approx(0.05, abs=1e-5)

    def test_blocks_needed_is_the_least_that_reaches_the_power(self) -> None:
        for spread in (0.01, 0.05, 0.2, 1.0):
            blocks = blocks_needed(spread, 0.05)
            assert blocks is not None
            assert power_of(blocks, spread, 0.05) >= 0.8
            assert power_of(blocks - 1, spread, 0.05) < 0.8

    def test_blocks_that_repeat_each_other_are_needed_in_proportion(self) -> None:
        plain = blocks_needed(0.1, 0.05)
        assert plain is not None
        assert blocks_needed(0.1, 0.05, inflation=3.0) == 3 * plain

    def test_what_nobody_can_afford_is_none(self) -> None:
        assert blocks_needed(30.0, 0.01) is None
        assert blocks_needed(math.nan, 0.01) is None

    def test_the_smallest_visible_difference_needs_about_these_blocks(self) -> None:
        visible = smallest_visible(30, 0.08 / math.sqrt(30))
        needed = blocks_needed(0.08, visible)
        assert needed is not None
        assert abs(needed - 30) <= 1
