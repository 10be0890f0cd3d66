"""From comparisons to a verdict."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dbdyno.base.errors import StatsError
from dbdyno.stats import (
    BlockComparison,
    benjamini_hochberg,
    compare_metric,
    decide,
    default_headline,
    metric_named,
)


def compared(metric: str, effect: float, spread: float = 0.01, blocks: int = 20) -> BlockComparison:
    shape = np.linspace(-1, 1, blocks)[np.random.default_rng(5).permutation(blocks)]
    logs = math.log1p(effect) + spread * (shape - shape.mean()) / shape.std(ddof=1)
    return compare_metric(metric_named(metric), np.ones(blocks), np.exp(logs))


class TestBenjaminiHochberg:
    def test_worked_by_hand(self) -> None:
        q = benjamini_hochberg([0.01, 0.04, 0.03, 0.005])
        assert q == pytest.approx([0.02, 0.04, 0.04, 0.02])

    def test_what_is_not_known_is_not_counted(self) -> None:
        q = benjamini_hochberg([0.02, math.nan, 0.01])
        assert q[0] == pytest.approx(0.02)
        assert math.isnan(q[1])
        assert benjamini_hochberg([]) == []


def test_the_headline_is_one_sentence_with_estimate_interval_and_blocks() -> None:
    verdict = decide({"flash": [compared("p50", 0.066)]}, baseline="disk", headline="p50")
    assert verdict.decision == "slower"
    assert verdict.headline == ("flash is 6.6 % slower than disk in median latency (95 % CI 6.1 to 7.1 %, 20 blocks).")


def test_no_difference_and_cannot_tell_have_their_sentences() -> None:
    same = decide({"b": [compared("throughput", 0.004)]}, baseline="a", headline="throughput")
    assert same.headline == (
        "b and a differ by no more than 2 % in throughput "
        "(0.4 % faster, 95 % CI 0.9 % faster to 0.07 % slower, 20 blocks)."
    )
    unclear = decide({"b": [compared("p50", 0.01, 0.06)]}, baseline="a", headline="p50")
    assert unclear.decision == "unclear"
    assert "to detect a difference of 2 % takes 58 to 208 blocks in all" in unclear.headline
    nothing = compare_metric(metric_named("p99"), [math.nan] * 3, [math.nan] * 3)
    none = decide({"b": [nothing]}, baseline="a", headline="p99")
    assert none.headline == "Cannot tell b from a in p99 latency: 0 of 3 blocks have a value."


def test_the_headline_metric_does_not_pay_for_the_others() -> None:
    lead = compared("p50", 0.013, 0.024)
    noise = [compared(name, 0.0, 0.05) for name in ("mean", "p90", "p99", "throughput")]
    verdict = decide({"b": [*noise, lead]}, baseline="a", headline="p50")
    assert verdict.arms[0].headline.q == lead.p
    assert verdict.decision == "slower"


def test_the_other_metrics_pay_for_being_many() -> None:
    weak = compared("p90", 0.013, 0.024)
    assert 0.02 < weak.p < 0.05
    noise = [compared(name, 0.0, 0.05) for name in ("mean", "p99", "throughput")]
    lead = compared("p50", 0.0)
    verdict = decide({"b": [lead, weak, *noise]}, baseline="a", headline="p50")
    found = verdict.arms[0].comparisons[1]
    assert found.q == pytest.approx(4 * weak.p)
    assert (weak.decision, found.decision) == ("slower", "unclear")


def test_a_metric_against_the_headline_is_said_first_and_with_a_but() -> None:
    arm = [compared("p50", -0.05), compared("p90", -0.04), compared("p99", 0.2)]
    verdict = decide({"b": arm}, baseline="a", headline="p50")
    assert verdict.decision == "faster"
    assert verdict.sentences[1] == "But p99 latency: 20.0 % slower (95 % CI 19.4 to 20.6 %)."
    assert verdict.sentences[2].startswith("p90 latency: 4.0 % faster")


def test_of_several_arms_the_best_speaks_and_each_has_its_sentence() -> None:
    arms = {
        "b": [compared("p50", -0.05)],
        "c": [compared("p50", -0.10)],
        "d": [compared("p50", 0.30)],
    }
    verdict = decide(arms, baseline="a", headline="p50")
    assert verdict.decision == "faster"
    assert verdict.headline.startswith("c is 10.0 % faster than a")
    assert [sentence[:4] for sentence in verdict.sentences] == ["b is", "c is", "d is"]


def test_several_arms_are_several_questions() -> None:
    weak = compared("p50", 0.013, 0.024)
    nulls = {f"n{i}": [compared("p50", 0.0, 0.05)] for i in range(4)}
    assert decide({"b": [weak]}, baseline="a", headline="p50").decision == "slower"
    several = decide({"b": [weak], **nulls}, baseline="a", headline="p50")
    assert several.decision == "unclear"


def test_errors_name_what_there_is() -> None:
    with pytest.raises(StatsError, match="at least two arms"):
        decide({}, baseline="a", headline="p50")
    with pytest.raises(StatsError, match="use one of: p50"):
        decide({"b": [compared("p50", 0.1)]}, baseline="a", headline="p42")
    with pytest.raises(StatsError, match="use one of: throughput"):
        metric_named("p42")


def test_a_closed_loop_is_judged_by_throughput_an_open_one_by_the_median() -> None:
    assert (default_headline("closed"), default_headline("open")) == ("throughput", "p50")
