"""Validity gates: each says ok, not ok with a next step, or that it cannot be checked."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from dbdyno.base.decisions import RULES
from dbdyno.stats import Gate, gates, gates_in_time
from dbdyno.stats.gates_in_time import Stall
from dbdyno.stats.gates_losses import ARRIVALS, ERRORS, Losses, equal_losses, few_losses

RNG = np.random.default_rng(4)
LONG = np.sort(RNG.lognormal(13, 0.6, 50_000)).astype(np.int64)
LATER = np.sort(RNG.lognormal(13, 0.6, 50_000)).astype(np.int64)
STEADY_RATIOS = RNG.normal(0, 0.1, 30)
HOURS = np.arange(20.0)
RISING = 100 * np.exp(0.01 * HOURS) * np.exp(RNG.normal(0, 0.01, 20))


STEADY = np.full(20, 7.0) * np.exp(RNG.normal(0, 0.02, 20))


@pytest.mark.parametrize(
    ("gate", "text"),
    [
        (gates.equal_work("rows", "b", 10.05, "a", 10.0), "b and a: 10 rows per operation"),
        (gates.equal_work("rows", "b", 0.0, "a", 0.0), "b and a: 0 rows"),
        (gates.truncation({"a": LONG, "b": LATER}), "no arm has many"),
        (gates_in_time.drift("median", STEADY, HOURS), "20 blocks can detect"),
        (gates_in_time.independent_blocks(STEADY_RATIOS), "autocorrelation"),
        (gates_in_time.steady_difference("b", "a", RNG.normal(0.1, 0.01, 20), HOURS, 0.02), "b against a"),
        (gates_in_time.no_stall([], 0.5), "no gap of 0.5 s"),
        (gates_in_time.clock_kept([(3, 0.002)]), "agree"),
        (gates.enough_blocks(6, 0.95), "6 blocks"),
        (gates.blocks_missing(20, 1), "1 of 21 blocks gave no number"),
        (gates.enough_operations("a", 12.0, "slice"), "holds 12 transactions"),
        (gates.enough_operations("a", 1.0, "turn", counted=True), "holds 1 transactions"),
        (gates.enough_operations("a", 1.0, "turn", waiting=False), "holds 1 transactions"),
        (gates.tail_support("p99", 0.99, [1000, 2000]), "at least 1000 operations"),
        (few_losses(Losses("b", 5, 100), ERRORS), "5.0 % of b's transactions failed"),
        (equal_losses(Losses("b", 200, 10_000), Losses("a", 150, 10_000), ERRORS, 0.02), "1.5 % of a's"),
    ],
    ids=lambda value: value.name if isinstance(value, Gate) else "",
)
def test_sound_numbers_pass(gate: Gate, text: str) -> None:
    assert gate.ok is True
    assert text in gate.text
    assert gate.next == ""
    assert not gate.withholds


@pytest.mark.parametrize(
    ("gate", "text", "withholds"),
    [
        (
            gates.equal_work("redo bytes", "b", 620.0, "a", 500.0),
            "b has 620 redo bytes per operation, a 500",
            True,
        ),
        (gates.truncation({"a": np.minimum(LONG, 1_500_000)}), "are at the maximum of 1.50 ms", False),
        (gates.truncation({"a": LONG, "b": LONG}), "the maxima of two arms agree", False),
        (gates_in_time.drift("median", RISING, HOURS), "median drifted +", False),
        (gates_in_time.independent_blocks(np.cumsum(STEADY_RATIOS)), "mean difference over these", False),
        (gates.enough_blocks(5, 0.95), "5 blocks; a verdict at 95 % takes at least 6", False),
        (gates.enough_blocks(7, 0.99), "at least 8", False),
        (gates.blocks_missing(11, 9), "9 of 20 blocks gave no number", False),
        (gates.enough_operations("a", 1.0, "slice"), "holds 1 transactions of each session", False),
        (gates.enough_operations("a", 1.0, "turn"), "sessions wait for each other at its end", False),
        (gates.enough_operations("a", 1.0, "slice", waiting=False), "the run takes longer than planned", False),
        (gates.enough_operations("a", 0.5, "turn", counted=True), "some sessions had no transaction", False),
        (gates.tail_support("p99.9", 0.999, [900, 20_000]), "p99.9 needs 10000", False),
        (gates_in_time.no_stall([Stall(7, 31.2, 3.1)], 0.5), "for 3.1 s in block 7, 31 s after the run began", False),
        (gates_in_time.clock_kept([(4, -3600.0)]), "stepped by -3.6e+03 s before block 4", False),
        (few_losses(Losses("b", 50, 100, "SQLSTATE 22012"), ERRORS), "50.0 % of b's transactions failed", True),
        (
            equal_losses(Losses("b", 300, 10_000), Losses("a", 100, 10_000), ERRORS, 0.02),
            "3.0 % of b's transactions failed, 1.0 % of a's",
            True,
        ),
        (few_losses(Losses("b", 60, 100), ARRIVALS), "60.0 % of b's arrivals were dropped", True),
    ],
    ids=lambda value: value.name if isinstance(value, Gate) else "",
)
def test_doubtful_numbers_fail_and_name_the_next_step(gate: Gate, text: str, withholds: bool) -> None:
    assert gate.ok is False
    assert text in gate.text
    assert gate.next
    assert gate.withholds is withholds


@pytest.mark.parametrize(
    "gate",
    [
        gates.equal_work("rows", "b", math.nan, "a", 10.0),
        gates.truncation({"a": LONG[:100]}),
        gates_in_time.drift("median", [1.0, 2.0], [0.0, 1.0]),
        gates_in_time.independent_blocks([0.1, 0.2]),
        gates_in_time.steady_difference("b", "a", [0.1, 0.2], [0.0, 1.0], 0.02),
        gates.enough_operations("a", math.nan, "turn"),
        gates.tail_support("p99", 0.99, []),
        few_losses(Losses("b", 0, 0), ERRORS),
        equal_losses(Losses("b", 1, 60), Losses("a", 0, 60), ERRORS, 0.02),
    ],
    ids=lambda gate: gate.name,
)
def test_what_cannot_be_checked_says_so(gate: Gate) -> None:
    assert gate.ok is None
    assert gate.text


def test_every_gate_has_a_rule() -> None:
    sources = [Path(gates.__file__).parent, Path(gates.__file__).parents[1] / "study"]
    codes = {
        code
        for folder in sources
        for file in folder.rglob("*.py")
        if "gate" in file.name or "verdict" in file.name
        for code in re.findall(r'\bcode="([^"]+)"', file.read_text())
    }
    assert codes | {ERRORS.code, ARRIVALS.code, "level"} == set(RULES)


class TestDrift:
    def test_a_drift_of_60_percent_with_8_noisy_blocks_does_not_hold(self) -> None:
        """It said "no drift holds: +59.6 %": p was above 1 %, for want of blocks."""
        values = 100 * np.exp(np.linspace(0, 0.7, 8) + np.tile([0.25, -0.25], 4))
        gate = gates_in_time.drift("latency", values, np.arange(8.0))
        assert gate.ok is False
        assert "too few to be certain" in gate.text
        assert not gate.withholds

    def test_a_check_without_power_says_not_known_and_what_it_could_see(self) -> None:
        values = 100 * np.exp(np.tile([0.5, -0.5], 4))
        gate = gates_in_time.drift("latency", values, np.arange(8.0))
        assert gate.ok is None
        assert "8 blocks can detect only" in gate.text

    def test_a_level_that_doubled_takes_the_verdict_away_a_canary_does_not(self) -> None:
        values = 100 * np.exp(np.linspace(0, math.log(2), 20) + RNG.normal(0, 0.02, 20))
        level = gates_in_time.drift("mean latency", values, HOURS, is_level=True)
        assert level.withholds
        assert "two states of the machine" in level.reason
        assert not gates_in_time.drift("CPU canary", values, HOURS).withholds

    def test_a_fall_counts_as_much_as_a_rise(self) -> None:
        falling = 100 * np.exp(np.linspace(0, -3.7, 8) + RNG.normal(0, 1.0, 8))
        assert gates_in_time.drift("fsync canary", falling, np.arange(8.0)).ok is False

    def test_what_it_says_it_sees_it_sees_in_four_of_five_cases(self) -> None:
        rng, seen = np.random.default_rng(3), 0
        visible = gates_in_time.trend(rng.normal(0, 0.1, 12), np.arange(12.0))
        assert visible is not None
        scale = 0.1 * visible.visible / (visible.visible or 1)
        reach = 3.169 + 0.879  # t at 99.5 % and 80 %, 10 degrees of freedom
        spread = scale * 11 / math.sqrt(float(((np.arange(12.0) - 5.5) ** 2).sum()))
        for _ in range(400):
            logs = np.arange(12.0) / 11 * reach * spread + rng.normal(0, scale, 12)
            found = gates_in_time.trend(logs, np.arange(12.0))
            seen += found is not None and found.certain
        assert 0.72 <= seen / 400 <= 0.88


class TestBaseDrift:
    """A base that became twice as slow, compared with arms that alternate with it within blocks."""

    BASE = 100 * np.exp(np.linspace(0, math.log(2), 20))

    def found(self, **ratios: NDArray[np.float64]) -> list[Gate]:
        why = {arm: gates_in_time.ratio_problem(arm, "base", logs, HOURS, 0.02) for arm, logs in ratios.items()}
        return list(gates_in_time.base_level("time of base", self.BASE, HOURS, why))

    def test_ratios_that_held_still_keep_their_verdict_and_the_drift_is_told(self) -> None:
        """It took the verdict of a whole sweep away, though ratios within blocks were known to a few percent."""
        noise = np.random.default_rng(1).normal(0, 0.05, 20)
        (gate,) = self.found(b=math.log(1.5) + noise)
        assert gate.ok is False and gate.code == "drift" and not gate.withholds
        assert gate.text == "time of base drifted +100 % over the run; within blocks the ratios stayed the same"
        assert gate.next

    def test_a_ratio_that_moved_with_it_is_withheld_from_its_arm_alone(self) -> None:
        noise = np.random.default_rng(2).normal(0, 0.02, 20)
        moving, told = self.found(b=np.linspace(0.1, 0.5, 20) + noise, c=0.5 + noise)
        assert moving.withholds and (moving.arm, moving.code) == ("b", "level")
        assert "time of base drifted +100 % over the run, and b against base moved with it (+1" in moving.reason.lower()
        assert not told.withholds

    def test_a_ratio_that_may_have_moved_is_withheld_too(self) -> None:
        noise = np.random.default_rng(3).normal(0, 0.3, 20)
        (gate,) = self.found(b=0.1 + noise)
        assert gate.withholds and "20 blocks cannot tell whether b against base stayed the same" in gate.reason

    def test_equal_arms_may_stand_as_near_to_each_other_as_5_percent(self) -> None:
        noise = np.random.default_rng(4).normal(0, 0.02, 20)
        (gate,) = self.found(b=noise)
        assert not gate.withholds

    def test_without_a_ratio_within_blocks_it_is_of_the_whole_run(self) -> None:
        (gate,) = self.found()
        assert gate.withholds and gate.arm == ""

    def test_a_base_that_stayed_has_its_gate_as_ever(self) -> None:
        (gate,) = gates_in_time.base_level("x", STEADY, HOURS, {"b": "whatever"})
        assert gate.ok is True and gate.code == "drift"

    def test_a_ratio_that_moves_by_half_of_itself_seldom_passes(self) -> None:
        """1.5 times at first, 1.0 times at last: 200 runs of twelve blocks. One that holds still passes mostly."""
        rng, at = np.random.default_rng(5), np.arange(12.0)

        def stands(logs: NDArray[np.float64]) -> int:
            return sum(
                not gates_in_time.ratio_problem("b", "a", logs + rng.normal(0, 0.05, 12), at, 0.02) for _ in range(200)
            )

        assert stands(np.linspace(math.log(1.5), 0, 12)) <= 0.07 * 200
        assert stands(np.full(12, math.log(1.25))) >= 0.9 * 200


def test_a_difference_that_changes_its_sign_is_no_difference() -> None:
    logs = np.linspace(-0.2, 0.3, 20) + RNG.normal(0, 0.02, 20)
    gate = gates_in_time.steady_difference("b", "a", logs, HOURS, 0.02)
    assert gate.withholds
    assert "changed its sign during the run" in gate.reason


def test_a_difference_that_grows_with_the_run_is_said_to() -> None:
    """An arm that ran from +1 % to +111 % was "46 % slower", and "same difference over the whole run" held."""
    growing = np.linspace(0.2, 0.6, 20) + RNG.normal(0, 0.02, 20)
    gate = gates_in_time.steady_difference("b", "a", growing, HOURS, 0.02)
    assert gate.ok is False and not gate.withholds
    assert gate.text.startswith("the difference changes: b against a: +2") and "at the end" in gate.text
    little = np.linspace(0.38, 0.42, 20) + RNG.normal(0, 0.005, 20)
    assert gates_in_time.steady_difference("b", "a", little, HOURS, 0.02).ok is True


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


def test_processors_that_others_use_are_no_ground_for_what_threads_bring() -> None:
    assert gates_in_time.processors_free(0.04, 2).ok is True
    busy = gates_in_time.processors_free(0.62, 2)
    assert busy.ok is False and busy.text == "other programs used 62 % of the 2 processors during the run"
    assert busy.code == "processors" and "on an idle machine" in busy.next


def test_a_question_about_the_tail_presumes_that_there_is_one() -> None:
    assert gates.has_tail("off", 291_780_000, 1_000_000, 100).ok
    missing = gates.has_tail("off", 894_000, 553_000, 100)
    assert missing.withholds and missing.reason.startswith(
        "This machine has no such tail: the longest operation of off"
    )
    assert gates.has_tail("off", 0, float("nan"), 100).ok is None
