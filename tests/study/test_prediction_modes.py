"""Round trips on one core and over two cores: the gap between their times, and the resulting costs."""

from __future__ import annotations

import numpy as np
import pytest

from dbdyno.study.prediction.modes import LEAST, Modes, modes_of, one_core_us, two_core_share


def test_two_peaks_are_two_modes_with_their_share():
    dice = np.random.default_rng(1)
    near, far = dice.normal(17.0, 0.5, 1_000), dice.normal(60.0, 8.0, 4_000)
    found = modes_of(np.concatenate([near, far]))
    assert found is not None
    assert found.one_core_us == pytest.approx(17.0, abs=0.2)
    assert near.max() < found.limit_us < far.min()
    assert found.two_cores == pytest.approx(0.8, abs=0.01)


@pytest.mark.parametrize("count", [100, 300, 1_000, 10_000])
def test_one_peak_is_no_mode_however_wide_it_is(count: int):
    seed = np.random.SeedSequence().entropy
    print(f"seed {seed}")
    dice = np.random.default_rng(seed)
    for _ in range(20):
        assert modes_of(30.0 + dice.exponential(40.0, count)) is None
        assert modes_of(dice.lognormal(4.0, 0.5, count)) is None
    assert modes_of(np.full(count, 20.0)) is None


def test_a_few_fast_round_trips_are_no_mode():
    dice = np.random.default_rng(2)
    few, many = dice.normal(17.0, 0.5, LEAST // 2), dice.normal(60.0, 5.0, 5_000)
    assert modes_of(np.concatenate([few, many])) is None


def test_a_commit_counts_as_the_fastest_statement_and_as_often_over_two_cores():
    modes = [Modes(15.0, 30.0, 0.5), Modes(25.0, 45.0, 0.8), None]
    assert one_core_us(modes) == [15.0, 25.0, 15.0]
    assert two_core_share(modes, [1.0, 2.0, 1.0]) == pytest.approx((0.5 + 2 * 0.8) / 3)
