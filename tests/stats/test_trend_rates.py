"""Rate at which a trend reports a change where there is none, and at which it finds a step of 10 %.

The series are those of `benches/trend.py`, whose table is in docs/explanation/method.md; here there are fewer of them,
with wider limits because of the larger random error.
"""

from __future__ import annotations

import importlib.util
import math
import sys
from pathlib import Path
from types import ModuleType

import pytest

from dbdyno.stats.changes import level_changes

FALSE_MOST = 0.06
BEFORE = {"STEP at run 20": 0.99, "STEP 5 runs ago": 0.73}
"""Power of a test by plain permutations on these series (it also saw changes in 70 % of autocorrelated series)."""


def bench() -> ModuleType:
    path = Path(__file__).parents[2] / "benches" / "trend.py"
    spec = importlib.util.spec_from_file_location("bench_trend", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent))  # benches import what they share by its name
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(path.parent))
    return module


def beyond(series: int, runs: int, seed: int) -> list[str]:
    """Return the kinds of series with more than 6 % false changes, or less than nine tenths of the previous power."""
    made, found = bench(), []
    for name, aim, rows in made.kinds(seed, series, runs):
        change, _, _, any_move = made.rates(rows)
        false = change if aim.startswith("change") else any_move if aim == made.AIM else 0.0
        if false > FALSE_MOST + 2.6 * math.sqrt(FALSE_MOST * (1 - FALSE_MOST) / series):
            found.append(f"{name}: {false:.1%} false")
        least = 0.9 * BEFORE.get(name, 0.0) if runs == 40 else 0.0
        if any_move < least - 2.6 * math.sqrt(least * (1 - least) / series):
            found.append(f"{name}: {any_move:.1%} found")
    return found


def test_no_kind_of_series_without_a_change_has_one_in_more_than_6_percent():
    """Of series with an autocorrelation of .6 70 % had a "change", of those with one doubled value 11 %."""
    assert beyond(80, 40, seed=11) == []


@pytest.mark.soak
@pytest.mark.parametrize("runs", [12, 20, 40, 80])
def test_nor_in_long_simulations(runs: int):
    assert beyond(4000, runs, seed=12) == []


def test_what_is_counted_is_what_a_trend_says():
    """The bench counts rows at once; a series by itself is told the same."""
    import numpy as np

    made = bench()
    for name, _, rows in made.kinds(3, 2, 40):
        moves = [level_changes(np.exp(row), level=made.LEVEL) for row in rows]
        change = sum(bool(one.changes) for one in moves) / 2
        drift = sum(one.drift is not None and one.drift.step is None for one in moves) / 2
        either = sum(one.drift is not None and one.drift.step is not None for one in moves) / 2
        assert made.rates(rows)[:3] == (change, either, drift), name


def test_a_drift_has_its_size_and_no_step_and_one_doubled_value_is_nothing():
    import numpy as np

    at, rng = np.arange(40), np.random.default_rng(5)
    drifting = level_changes(np.exp(0.5 * at / 39 + rng.normal(0, 0.03, 40)), level=0.95)
    assert drifting.changes == [] and drifting.drift is not None and drifting.drift.step is None
    assert drifting.drift.low < math.exp(0.5) < drifting.drift.high
    level = np.exp(rng.normal(0, 0.03, 40))
    for place in range(40):
        level[place] *= 2
        moves = level_changes(level, level=0.95)
        assert moves.changes == [] and moves.drift is None, place
        level[place] /= 2


@pytest.mark.soak
def test_three_changes_of_a_long_series_are_found_at_their_runs():
    import numpy as np

    at, rng = np.arange(60), np.random.default_rng(6)
    steps = 0.2 * (at >= 15) - 0.25 * (at >= 30) + 0.3 * (at >= 45)
    moves = level_changes(np.exp(steps + rng.normal(0, 0.02, 60)), level=0.95)
    assert [one.at for one in moves.changes] == [15, 30, 45]
