"""Round trips on one core and over two cores: the gap between their times, and the resulting costs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from dbdyno.study.prediction.costs import (
    CLIENT_COLD_US,
    CLIENT_SHARE,
    LEAST_US,
    MOST_ON_TWO,
    _client_share,
    _per_kb,
)
from dbdyno.study.prediction.mariadb import cpu_us
from dbdyno.study.prediction.modes import (
    FASTEST,
    LEAST,
    Modes,
    modes_by_share,
    modes_of,
    one_core_us,
    two_core_share,
)


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


def _times(*medians_us: float, share: float, seed: int = 3) -> SimpleNamespace:
    """Return the times of statements of one session, a share of them over two cores, with no gap between the modes."""
    dice = np.random.default_rng(seed)
    two = dice.random(4_000) < share
    times = {
        f"statement {at}": us + np.where(two, dice.uniform(1.0, 60.0, 4_000), dice.exponential(1.0, 4_000))
        for at, us in enumerate(medians_us)
    }
    steps = SimpleNamespace(statements=[*times, "end"], kinds=["exec"] * len(times) + ["commit"], writes=True)
    return SimpleNamespace(steps=steps, elapsed_us=lambda name, _: times.get(name, np.array([])))


@pytest.mark.parametrize("share", [0.0, 0.2, 0.6])
def test_without_a_gap_the_client_tells_how_many_round_trips_used_two_cores(share: float):
    observation: Any = _times(16.0, 40.0, share=share)
    fast_us = float(np.quantile(observation.elapsed_us("statement 0", "exec"), FASTEST))
    own_us, found = _client_share(observation, {}, CLIENT_SHARE * fast_us + share * (15.0 + CLIENT_COLD_US), 15.0)
    assert own_us == pytest.approx(CLIENT_SHARE * 16.0, rel=0.05)
    assert found == pytest.approx(share, abs=1e-9)
    modes = modes_by_share(observation, {}, found)
    assert modes is not None and modes[2] is None
    for mode, us in zip(modes[:2], (16.0, 40.0), strict=True):
        assert mode is not None
        assert mode.one_core_us == pytest.approx(us, rel=0.05) and mode.two_cores == found
        slow = np.mean(observation.elapsed_us(f"statement {modes.index(mode)}", "exec") >= mode.limit_us)
        assert slow == pytest.approx(share, abs=0.01)


def test_a_client_that_started_no_core_keeps_all_its_time():
    assert _client_share(cast("Any", _times(16.0, share=0.0)), {}, 5.0, 15.0) == (5.0, 0.0)
    assert _client_share(cast("Any", _times(16.0, share=0.0)), {}, 500.0, 15.0)[1] == MOST_ON_TWO


def test_a_steep_slope_of_the_log_leaves_no_negative_times():
    """The client's CPU time came out below 0 on a busy machine, and the model refused it."""
    kb = np.linspace(1.0, 60.0, 400)
    times_us = 10.0 + 4.0 * kb
    times_us[::10] = 1.0  # faster than the log of their sizes by the slope of all others
    insert, _, sized_us = _per_kb(_sized(kb, times_us))
    assert float((times_us - insert.value * kb).min()) < -50.0
    assert float(sized_us[0].min()) == LEAST_US


def test_times_that_vary_with_the_size_of_the_log_do_not_hide_those_of_the_statement():
    """A client came out at 3 us for a round trip instead of 9, and three of four statements at 3.7 us of CPU."""
    random = np.random.default_rng(54)
    kb = random.uniform(1.0, 64.0, 4_000)
    times_us = 40.0 + 4.0 * kb * random.lognormal(0.0, 0.3, len(kb))
    insert, _, sized_us = _per_kb(_sized(kb, times_us))
    assert float(np.quantile(times_us - insert.value * kb, FASTEST)) < -20.0
    assert float(np.quantile(sized_us[0], FASTEST)) == pytest.approx(35.0, abs=5.0)
    assert float(np.median(sized_us[0])) == pytest.approx(40.0, abs=3.0)


def _sized(kb: np.ndarray, times_us: np.ndarray) -> Any:
    """Return an observation of one session whose statement writes log of these sizes in these times, then commits."""
    rows = np.arange(2 * len(kb))
    calls = {
        "kind": np.where(rows % 2 == 0, "exec", "commit"),
        "statement": np.where(rows % 2 == 0, "insert", ""),
        "session": np.zeros(len(rows)),
        "redo_bytes": np.where(rows % 2 == 1, np.repeat(kb * 1024.0, 2), -1.0),
        "elapsed_ns": np.repeat(times_us, 2) * 1e3,
    }
    steps = SimpleNamespace(statements=["insert"], scripts=[{"steps": [{"statement": 0, "wal_bytes": [1]}]}])
    return SimpleNamespace(steps=steps, calls=calls)


def test_sized_statements_have_their_times_without_the_log():
    observation: Any = _times(16.0, 40.0, share=0.0)
    assert cpu_us(observation, 4.0, None, {1: np.full(100, 24.0)})[1] == pytest.approx(20.0)
