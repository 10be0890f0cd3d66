"""Validity gates: each says ok, not ok with a next step, or that it cannot be checked."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from dbdyno.stats import Gate, gates

RNG = np.random.default_rng(4)
LONG = np.sort(RNG.lognormal(13, 0.6, 50_000)).astype(np.int64)
LATER = np.sort(RNG.lognormal(13, 0.6, 50_000)).astype(np.int64)
TWO_MODES = np.concatenate([RNG.lognormal(9, 0.2, 5000), RNG.lognormal(11, 0.2, 5000)])
STEADY_RATIOS = RNG.normal(0, 0.1, 30)
HOURS = np.arange(20.0)
RISING = 100 * np.exp(0.01 * HOURS) * np.exp(RNG.normal(0, 0.01, 20))


@pytest.mark.parametrize(
    ("gate", "text"),
    [
        (gates.equal_work("rows", {"a": 10.0, "b": 10.05}), "all arms: 10 rows per operation"),
        (gates.equal_work("rows", {"a": 0.0, "b": 0.0}), "all arms: 0 rows"),
        (gates.generator_lag(5, 1000, worst_ns=2e6), "0.5 % of 1000 arrivals started late, at"),
        (gates.given_up(0, 1000), "0 of 1000"),
        (gates.truncation({"a": LONG, "b": LATER}), "no wall"),
        (gates.drift("median", np.full(20, 7.0) + RNG.normal(0, 0.1, 20), HOURS), "over the run"),
        (gates.independent_blocks(STEADY_RATIOS), "autocorrelation"),
        (gates.enough_blocks(20, missing=1), "20 blocks, 1 more could not be used"),
        (gates.tail_support("p99", 0.99, [1000, 2000]), "at least 1000 operations"),
        (gates.modality("a", LONG), "mvalue 2.0"),
    ],
    ids=lambda value: value.name if isinstance(value, Gate) else "",
)
def test_sound_numbers_pass(gate: Gate, text: str) -> None:
    assert gate.ok is True
    assert text in gate.text
    assert gate.next == ""


@pytest.mark.parametrize(
    ("gate", "text"),
    [
        (
            gates.equal_work("redo bytes", {"a": 500.0, "b": 620.0}),
            "b has 620 redo bytes per operation, a 500",
        ),
        (gates.generator_lag(50, 1000), "5.0 % of 1000 arrivals started late"),
        (gates.given_up(3, 1000), "3 of 1000 arrivals were given up"),
        (gates.truncation({"a": np.minimum(LONG, 1_500_000)}), "lie at 1.50 ms, the maximum"),
        (gates.truncation({"a": LONG, "b": LONG}), "the maxima of two arms agree"),
        (gates.drift("median", RISING, HOURS), "+"),
        (gates.independent_blocks(np.cumsum(STEADY_RATIOS)), "mean difference over these blocks"),
        (gates.enough_blocks(4), "4 blocks"),
        (gates.enough_blocks(20, missing=9), "9 more could not be used"),
        (gates.tail_support("p99.9", 0.999, [900, 20_000]), "p99.9 needs 10000"),
        (gates.modality("a", TWO_MODES), "several modes"),
    ],
    ids=lambda value: value.name if isinstance(value, Gate) else "",
)
def test_doubtful_numbers_fail_and_name_the_next_step(gate: Gate, text: str) -> None:
    assert gate.ok is False
    assert text in gate.text
    assert gate.next


@pytest.mark.parametrize(
    "gate",
    [
        gates.equal_work("rows", {"a": 10.0, "b": math.nan}),
        gates.generator_lag(0, 0),
        gates.given_up(0, 0),
        gates.truncation({"a": LONG[:100]}),
        gates.drift("median", [1.0, 2.0], [0.0, 1.0]),
        gates.independent_blocks([0.1, 0.2]),
        gates.tail_support("p99", 0.99, []),
        gates.modality("a", LONG[:10]),
    ],
    ids=lambda gate: gate.name,
)
def test_what_cannot_be_checked_says_so(gate: Gate) -> None:
    assert gate.ok is None
    assert gate.text


@pytest.mark.parametrize("tail", ["exponential", "normal", "lognormal", "pareto"])
def test_natural_tails_are_not_taken_for_a_wall(tail: str) -> None:
    rng = np.random.default_rng(9)
    draws: dict[str, Callable[[], NDArray[np.float64]]] = {
        "exponential": lambda: rng.exponential(1e5, 20_000),
        "normal": lambda: rng.normal(1e6, 1e4, 20_000),
        "lognormal": lambda: rng.lognormal(11, 0.5, 20_000),
        "pareto": lambda: (rng.pareto(2, 20_000) + 1) * 1e4,
    }
    draw = draws[tail]
    walls = 0
    for _ in range(50):
        arms = {name: np.sort(draw()).astype(np.int64) for name in "ab"}
        walls += gates.truncation(arms).ok is False
    assert walls <= 2


def test_the_published_waits_cut_at_four_milliseconds_are_caught() -> None:
    """3,999 and 3,998 us were the maxima of two arms of four million waits each, in whole us."""
    rng = np.random.default_rng(1)
    waits = rng.lognormal(np.log(481), 0.6, 400_000)
    base = np.sort(waits[waits < 4000].astype(np.int64))
    assert gates.truncation({"off": base, "on": base[:-30]}).ok is False
