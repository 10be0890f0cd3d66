"""The headline agrees with the evidence: planted experiments, and the decision in the headline of each.

Each experiment is a set of values per block (log-normal noise of 3 %), judged as dbdyno does it: comparisons, gates,
verdict. Seeds are fixed; shares are over many experiments.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pytest
from numpy.typing import NDArray

from dbdyno.base.decisions import DECISIONS, exit_code
from dbdyno.stats import Verdict, compare_blocks, decide
from dbdyno.stats.decide import WithheldVerdict
from dbdyno.stats.gates import Gate, equal_work
from dbdyno.stats.gates_in_time import Stall, drift, no_stall, steady_difference
from dbdyno.stats.gates_losses import ERRORS, Losses, equal_losses, few_losses
from dbdyno.stats.least_blocks import is_reachable, least_p_paired, least_p_unpaired, least_paired_blocks
from dbdyno.stats.power import blocks_needed, blocks_to_tell
from dbdyno.stats.unpaired import compare_unpaired

NOISE = 0.03
Floats = NDArray[np.float64]


@dataclass
class Planted:
    """An experiment with planted changes of each arm, by block."""

    blocks: int = 20
    effect: float = 0.0
    errors: float = 0.0
    level: float = 0.0
    moves: float = 0.0
    rows: float = 1.0
    stall: bool = False
    gates: list[Gate] = field(default_factory=list)

    def latencies(self, rng: np.random.Generator) -> tuple[Floats, Floats]:
        common = rng.normal(0, 0.05, self.blocks) + np.linspace(0, self.level, self.blocks)
        own = [rng.normal(0, NOISE / np.sqrt(2), self.blocks) for _ in "ab"]
        way = np.log1p(self.effect) + np.linspace(-self.moves / 2, self.moves / 2, self.blocks)
        base, other = np.exp(common + own[0]), np.exp(common + own[1] + way)
        if self.stall:
            base[3] *= 40.0
        return base * 1e6, other * 1e6

    @cached_property
    def losses(self) -> list[Gate]:
        """Return the gates on failed transactions, which do not depend on the seed."""
        lost = Losses("b", round(self.errors * 10_000), 10_000), Losses("a", 0, 10_000)
        return [*(few_losses(own, ERRORS) for own in lost), equal_losses(*lost, ERRORS, 0.02)]

    def verdict(self, seed: int) -> Verdict:
        base, other = self.latencies(np.random.default_rng(seed))
        at_s = np.arange(float(self.blocks))
        self.gates = [
            *self.losses,
            equal_work("rows", "b", self.rows, "a", 1.0),
            drift("mean latency of a", base, at_s, is_level=True),
            steady_difference("b", "a", np.log(other / base), at_s, 0.02),
            no_stall([Stall(3, 3.0, 4.0)] if self.stall else [], 0.5),
        ]
        against = [gate for gate in self.gates if gate.withholds]
        compared = compare_blocks(base, other, higher_is_better=False, metric="mean", label="mean latency", resamples=0)
        without = {"b": WithheldVerdict(against[0].reason)} if against else {}
        return decide({"b": [compared]}, baseline="a", headline="mean", withheld=without)


def share(planted: Planted, word: str, experiments: int = 100) -> float:
    return decisions(planted, experiments)[word] / experiments


def decisions(planted: Planted, experiments: int = 100) -> Counter[str]:
    """Return the number of experiments for each decision."""
    return Counter(planted.verdict(seed).decision for seed in range(experiments))


def test_equal_arms_are_the_same_or_cannot_be_told_and_seldom_different() -> None:
    found = decisions(Planted())
    assert found["faster"] + found["slower"] <= 9
    assert found["no verdict"] <= 3


def test_a_real_difference_is_found_with_its_sign() -> None:
    assert share(Planted(effect=0.06), "slower") >= 0.95
    assert share(Planted(effect=-0.06), "faster") >= 0.95


def test_an_arm_that_failed_half_of_its_transactions_is_not_faster() -> None:
    planted = Planted(effect=-0.6, errors=0.5)
    assert share(planted, "no verdict") == 1.0
    verdict = planted.verdict(1)
    assert verdict.headline == "50.0 % of b's transactions failed."
    assert verdict.arms[0].headline.decision == "no verdict"
    assert verdict.arms[0].headline.ratio < 1, "the estimate stays, without a decision"


def test_one_in_fifty_failing_in_one_arm_only_is_enough_to_withhold() -> None:
    assert share(Planted(effect=-0.03, errors=0.02), "no verdict") == 1.0
    assert share(Planted(effect=-0.06, errors=0.002), "no verdict") <= 0.03


def test_two_blocks_are_provisional_however_large_the_difference() -> None:
    """Two blocks headlined "FASTER 77.6 %" for a setting that cannot matter."""
    words = {Planted(blocks=2, effect=1.0).verdict(seed).decision for seed in range(60)}
    assert words <= {"provisional", "unclear"}
    assert "provisional" in words
    found = next(
        v for seed in range(60) if (v := Planted(blocks=2, effect=1.0).verdict(seed)).decision == "provisional"
    )
    assert "a verdict at 95 % takes at least 6 blocks" in found.headline
    assert "looks" in found.headline


def test_two_states_of_the_machine_are_no_verdict() -> None:
    assert share(Planted(effect=0.06, level=float(np.log(2.0))), "no verdict") == 1.0


def test_a_small_drift_of_both_arms_leaves_the_verdict_and_is_a_warning() -> None:
    planted = Planted(effect=0.06, level=0.2)
    assert share(planted, "slower") >= 0.95
    assert any(gate.code == "drift" and gate.ok is False for gate in planted.gates)


def test_a_difference_that_turned_round_during_the_run_is_no_verdict() -> None:
    assert share(Planted(effect=0.02, moves=0.4), "no verdict") >= 0.95


def test_unequal_work_is_no_verdict() -> None:
    assert share(Planted(effect=0.06, rows=2.0), "no verdict") == 1.0


def test_a_stall_in_one_block_is_named_and_makes_no_wrong_verdict() -> None:
    planted = Planted(stall=True)
    found = decisions(planted)
    assert found["faster"] + found["slower"] <= 7
    named = next(gate for gate in planted.gates if gate.code == "stall")
    assert named.ok is False
    assert "block 3" in named.text


def test_an_arm_without_a_verdict_does_not_silence_the_others() -> None:
    rng = np.random.default_rng(0)
    base = np.exp(rng.normal(0, 0.01, 20))
    arms = {
        name: [
            compare_blocks(base, base * factor * np.exp(rng.normal(0, 0.01, 20)), higher_is_better=False, metric="m")
        ]
        for name, factor in (("b", 0.9), ("c", 0.4))
    }
    verdict = decide(
        arms, baseline="a", headline="m", withheld={"c": WithheldVerdict("80 % of c's transactions failed.")}
    )
    assert verdict.decision == "faster"
    assert verdict.headline.startswith("b is 9")
    assert "80 % of c's transactions failed." in verdict.sentences


class TestLeastBlocks:
    def test_the_least_p_is_that_of_signs(self) -> None:
        assert [least_paired_blocks(level) for level in (0.9, 0.95, 0.99, 0.999)] == [5, 6, 8, 11]
        for level in (0.9, 0.95, 0.99):
            n = least_paired_blocks(level)
            assert is_reachable(least_p_paired(n), level)
            assert not is_reachable(least_p_paired(n - 1), level)

    def test_two_slices_against_two_are_provisional(self) -> None:
        """A decision from 2 against 2 slices of traces said 1.05 to 50 times."""
        assert least_p_unpaired(2, 2) == pytest.approx(1 / 3)
        found = compare_unpaired([1.0, 1.001], [7.0, 7.01], higher_is_better=False)
        assert found.decision == "provisional"
        assert "at least 4 blocks" in found.words
        assert compare_unpaired([1.0, 1.1, 1.2, 1.0], [7.0, 7.1, 7.2, 7.0], higher_is_better=False).decision == "slower"

    def test_t_alone_calls_two_heavy_tailed_blocks_different_and_the_word_is_provisional(self) -> None:
        rng, called = np.random.default_rng(2), []
        for _ in range(300):
            logs = rng.standard_cauchy(2) * 0.01 + rng.normal(0, 0.3)
            called.append(compare_blocks(np.ones(2), np.exp(logs), higher_is_better=False).decision)
        assert "provisional" in called
        assert not {"faster", "slower", "same"} & set(called)


class TestPromise:
    def test_the_blocks_that_would_tell_lie_in_the_interval_in_the_stated_share_of_cases(self) -> None:
        rng, inside = np.random.default_rng(4), 0
        truth = blocks_needed(0.03, 0.02, power=0.9)
        assert truth is not None
        for _ in range(500):
            sd = float(rng.normal(0, 0.03, 8).std(ddof=1))
            found = blocks_to_tell(sd, 8, 0.02)
            inside += (found.low or 10**9) <= truth <= (found.high or 10**9)
        assert 0.925 <= inside / 500 <= 0.975

    @pytest.mark.parametrize("effect", [0.0, 0.02])
    def test_that_many_blocks_do_tell(self, effect: float) -> None:
        """With the number for the true spread: none is shown to be none, 2 % to be a difference."""
        rng, told = np.random.default_rng(5), 0
        blocks = blocks_needed(0.03, 0.02, power=0.9)
        assert blocks is not None
        for _ in range(300):
            logs = rng.normal(np.log1p(effect), 0.03, blocks)
            found = compare_blocks(np.ones(blocks), np.exp(logs), higher_is_better=False, resamples=0)
            told += found.decision == ("slower" if effect else "same")
        assert told / 300 >= 0.78

    def test_the_upper_end_of_a_pilot_tells_whatever_the_pilot_was(self) -> None:
        rng, told, asked = np.random.default_rng(6), 0, 0
        for _ in range(200):
            pilot = compare_blocks(
                np.ones(10), np.exp(rng.normal(0.005, 0.02, 10)), higher_is_better=False, resamples=0
            )
            if pilot.decision != "unclear" or pilot.tell_high is None:
                continue
            asked += 1
            logs = rng.normal(0.0, 0.02, pilot.tell_high)
            found = compare_blocks(np.ones(logs.size), np.exp(logs), higher_is_better=False, resamples=0)
            told += found.decision != "unclear"
        assert asked > 40
        assert told / asked >= 0.8

    def test_nothing_is_promised_beyond_a_thousand_blocks(self) -> None:
        """The same traces on both sides were promised a verdict after 19,578 more blocks."""
        values = np.exp(np.random.default_rng(7).normal(0, 1.0, 12))
        found = compare_unpaired(values, values, higher_is_better=False)
        assert found.decision == "unclear"
        assert found.tell_low is None
        assert "takes over 1,000 blocks; less noise would help more" in found.words


def test_every_decision_has_its_word_colour_and_exit_codes() -> None:
    assert {"faster", "slower", "same", "unclear", "provisional", "no verdict", "failed"} <= set(DECISIONS)
    held = {"decision": "faster", "withheld": [{"arm": "c", "decision": "no verdict", "reason": "..."}]}
    assert exit_code(held, "run") == exit_code(held, "compare") == 1
    assert exit_code({"decision": "slower", "withheld": []}, "compare") == 1
    assert exit_code({"decision": "slower"}, "run") == 0
    assert exit_code({"decision": "failed"}, "run") == exit_code({"decision": "failed"}, "compare") == 2
    assert exit_code({"decision": "something newer"}, "run") == 0


def test_a_metric_off_zero_that_cannot_be_told_says_why() -> None:
    rng = np.random.default_rng(12)
    logs = rng.normal(0, 0.03, 20)
    logs += 0.0150 - logs.mean()
    weak = compare_blocks(np.ones(20), np.exp(logs), higher_is_better=False, metric="p90", label="p90")
    assert 0.02 < weak.p < 0.05
    noise = [
        compare_blocks(np.ones(20), np.exp(rng.normal(0, 0.05, 20)), higher_is_better=False, metric=f"m{i}")
        for i in range(4)
    ]
    verdict = decide({"b": [*noise, weak]}, baseline="a", headline="m0")
    found = verdict.arms[0].comparisons[-1]
    assert found.decision == "unclear"
    assert "but of several metrics one in 20 differs as much by chance" in found.words
