"""Numbers in words, quantiles, block metrics, the noise floor, and the cost of imports."""

from __future__ import annotations

import math
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dbdyno.base.errors import StatsError
from dbdyno.stats import (
    Counts,
    block_values,
    block_values_of,
    counts_of,
    is_supported,
    kolmogorov_smirnov,
    mann_whitney,
    moments,
    noise_floor,
    quantile,
    quantile_interval,
    welch,
)
from dbdyno.stats.wording import duration, percent, size


@pytest.mark.parametrize(
    ("ns", "words"),
    [
        (0, "0.00 ns"),
        (999.4, "999 ns"),
        (999.9, "1.00 us"),
        (12_300, "12.3 us"),
        (-12_300, "-12.3 us"),
        (4_000_000, "4.00 ms"),
        (99_996_000, "100 ms"),
        (2.5e9, "2.50 s"),
        (3.6e12, "3600 s"),
    ],
)
def test_durations(ns: float, words: str) -> None:
    assert duration(ns) == words


def test_sizes_and_percentages() -> None:
    assert [size(n) for n in (300, 64 * 1024, 1 << 20, 5 << 30, 3 << 39)] == [
        "300 bytes",
        "64.0 KiB",
        "1.00 MiB",
        "5.00 GiB",
        "1.50 TiB",
    ]
    assert [percent(x) for x in (0.066, -0.0004, 0.25, 1.0, 2.34)] == [
        "6.6",
        "0.04",
        "25.0",
        "100",
        "234",
    ]


class TestQuantiles:
    @settings(max_examples=60, deadline=None)
    @given(st.lists(st.integers(0, 50), min_size=1, max_size=60), st.floats(0, 1))
    def test_counts_and_sorted_values_give_what_numpy_gives(self, values: list[int], q: float) -> None:
        ordered = np.sort(np.array(values))
        expected = float(np.quantile(ordered, q))
        assert quantile(ordered, q) == pytest.approx(expected, abs=1e-9)
        assert quantile(counts_of(ordered), q) == pytest.approx(expected, abs=1e-9)

    def test_the_interval_of_a_median_of_ten(self) -> None:
        """Ranks 2 and 9, coverage 1 - 22/1024: in every textbook."""
        found = quantile_interval(np.arange(1, 11), 0.5)
        assert (found.low, found.high) == (2, 9)
        assert found.coverage == pytest.approx(1 - 22 / 1024)
        assert found.note == "assumes independent waits"

    def test_a_tail_that_the_values_do_not_reach_has_no_upper_end(self) -> None:
        found = quantile_interval(np.arange(1000), 0.999)
        assert math.isnan(found.high)
        assert not math.isnan(found.low)
        assert not is_supported(1000, 0.999)
        assert is_supported(10_000, 0.999)

    @settings(max_examples=60, deadline=None)
    @given(st.integers(1, 300), st.floats(0.01, 0.99), st.floats(0.5, 0.999))
    def test_the_interval_covers_at_least_its_level(self, n: int, q: float, level: float) -> None:
        assert quantile_interval(np.arange(n), q, level).coverage >= level - 1e-9

    def test_impossible_questions_are_refused(self) -> None:
        with pytest.raises(StatsError):
            quantile(np.arange(3), 1.5)
        with pytest.raises(StatsError):
            quantile(np.array([], dtype=np.int64), 0.5)
        with pytest.raises(StatsError):
            quantile_interval(np.arange(3), 1.0)


class TestBlockMetrics:
    def test_a_block_gives_no_quantile_beyond_its_values(self) -> None:
        found = block_values_of(np.arange(1, 1001), seconds=2.0)
        assert found["throughput"] == 500
        assert found["mean"] == 500.5
        assert found["p99"] == pytest.approx(990.01)
        assert math.isnan(found["p99.9"])

    def test_a_block_without_operations_gives_nothing(self) -> None:
        assert all(math.isnan(v) for v in block_values_of(np.array([]), 1.0).values())
        assert math.isnan(block_values(5, 1.0, {}, 0.0)["throughput"])


class TestNoiseFloor:
    def test_it_says_what_the_set_up_can_see(self) -> None:
        rng = np.random.default_rng(2)
        base = np.exp(rng.normal(11, 0.2, 24))
        found = noise_floor(
            base,
            base * np.exp(rng.normal(0, 0.03, 24)),
            higher_is_better=False,
            label="median latency",
        )
        assert found.spread == pytest.approx(0.03, rel=0.4)
        needed = [blocks for _, blocks in found.blocks_needed]
        assert all(a is not None and b is not None and a >= b for a, b in pairwise(needed))
        assert found.words.startswith("median latency against itself: 95 % ")
        assert "80 % power" in found.words
        assert not found.false_alarm

    def test_equal_arms_that_differ_are_a_reason_to_look_again(self) -> None:
        base = np.array([1.0, 1.01, 0.99, 1.0, 1.02])
        found = noise_floor(base, base * 1.1, higher_is_better=False)
        assert found.false_alarm
        assert "favours one arm" in found.words

    def test_two_blocks_are_no_noise_floor(self) -> None:
        with pytest.raises(StatsError, match="at least 3"):
            noise_floor([1, 2], [1, 2], higher_is_better=False)


class TestClassicalTestsRefuse:
    def test_empty_unsorted_and_constant_samples(self) -> None:
        some = np.array([1, 2, 3])
        for test in (mann_whitney, kolmogorov_smirnov):
            with pytest.raises(StatsError, match="the sample has no values"):
                test(np.array([], dtype=np.int64), some)
            with pytest.raises(StatsError, match="sort the values"):
                test(np.array([3, 1, 2]), some)
        with pytest.raises(StatsError, match="the sample has no values"):
            mann_whitney(Counts(np.array([1]), np.array([0])), some)
        with pytest.raises(StatsError, match="the values do not vary in either group"):
            welch(np.ones(5), np.ones(5))
        with pytest.raises(StatsError, match="two values in each group"):
            welch(np.ones(1), np.ones(5))
        with pytest.raises(StatsError, match="no values"):
            moments(np.array([]))

    def test_all_values_equal_is_no_evidence(self) -> None:
        same = np.array([4, 4, 4])
        assert mann_whitney(same, same).p == 1.0
        assert kolmogorov_smirnov(same, same).p == 1.0


def test_importing_the_room_loads_no_scipy() -> None:
    code = "import sys, dbdyno.stats; print('scipy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
