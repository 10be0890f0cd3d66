"""The two promises of a verdict: its rate of false alarms, and its power to find a real difference.

The tests use dbdyno's own functions on synthetic waits that depend on each other, with drift and bursts, recorded in
randomised ABBA slices and grouped into blocks. 200 repetitions each; the seed is printed first.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from stats_synthetic import ROUGH, STEADY, Noise, compared, experiment, waits

from dbdyno.stats import (
    autocorrelation,
    compare_blocks,
    compare_metric,
    decide,
    metric_named,
    noise_floor,
    power_of,
    welch,
)
from soaked import first

REPETITIONS = 200
LEVEL = 0.95
#: The stated level and two standard deviations of a share of 200.
FALSE_MOST = (1 - LEVEL) + 2 * math.sqrt((1 - LEVEL) * LEVEL / REPETITIONS)


def test_the_synthetic_waits_depend_on_each_other_as_real_ones_do() -> None:
    found = waits(np.random.default_rng(1), 200_000, STEADY)
    assert autocorrelation(found, 1) > 0.5
    assert autocorrelation(found, 1000) > 0.3


def test_over_raw_waits_welch_cries_wolf() -> None:
    """Why the block is the unit: five seconds against the next five, one machine, no difference."""
    false = 0
    for seed in range(50):
        first, second = np.split(waits(np.random.default_rng(seed), 40_000, STEADY), 2)
        false += welch(first, second).p < 0.05
    assert false > 40


@pytest.mark.parametrize(
    ("noise", "seed", "count"),
    first((STEADY, 11, 50), (STEADY, 11, REPETITIONS), (ROUGH, 12, REPETITIONS)),
    ids=["few", "steady", "rough"],
)
def test_equal_arms_are_called_different_no_more_often_than_stated(noise: Noise, seed: int, count: int) -> None:
    print(f"seed {seed}")
    rng = np.random.default_rng(seed)
    false = {"throughput": 0, "p50": 0}
    for _ in range(count):
        comparisons = compared(experiment(rng, 20, noise))
        for headline in false:
            verdict = decide({"other": comparisons}, baseline="base", headline=headline)
            false[headline] += verdict.decision in ("faster", "slower")
    print({headline: number / count for headline, number in false.items()})
    assert max(false.values()) <= FALSE_MOST * count


@pytest.mark.parametrize(
    ("noise", "seed"),
    [(Noise(fast=0.6), 21), (Noise(fast=0.6, drift=0.3), 22)],
    ids=["steady", "drifting"],
)
@pytest.mark.soak
def test_five_percent_is_seen_as_often_as_blocks_needed_says(noise: Noise, seed: int) -> None:
    print(f"seed {seed}")
    rng = np.random.default_rng(seed)
    p50 = metric_named("p50")
    floor = noise_floor(*experiment(rng, 300, noise)["p50"], higher_is_better=False)
    blocks = dict(floor.blocks_needed)[0.05]
    assert blocks is not None
    seen = 0
    for _ in range(REPETITIONS):
        values = experiment(rng, blocks, noise, effect=0.05)["p50"]
        comparison = compare_metric(p50, *values, resamples=0)
        verdict = decide({"other": [comparison]}, baseline="base", headline="p50")
        seen += verdict.decision == "slower"
    print(f"{blocks} blocks, predicted {power_of(blocks, floor.spread, 0.05):.2f}")
    print(f"found {seen / REPETITIONS}")
    assert 0.70 <= seen / REPETITIONS <= 0.92


@pytest.mark.parametrize(("correlation", "randomised", "most"), [(0.0, True, 0.065), (0.4, False, 0.10)])
def test_blocks_that_follow_each_other_widen_the_interval(correlation: float, randomised: bool, most: float) -> None:
    """Without the widening, 18 % of equal arms would be called different at a correlation of
    0.4."""
    rng = np.random.default_rng(31)
    false = 0
    for _ in range(500):
        series = [rng.standard_normal()]
        for _ in range(29):
            step = rng.standard_normal() * math.sqrt(1 - correlation**2)
            series.append(correlation * series[-1] + step)
        found = compare_blocks(
            np.ones(30),
            np.exp(np.array(series) / 20),
            higher_is_better=False,
            randomised=randomised,
            resamples=0,
        )
        false += found.decision in ("faster", "slower")
    assert false / 500 <= most
