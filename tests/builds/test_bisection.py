"""The search among versions finds the first slow one, however the times vary, and its cost is known."""

from __future__ import annotations

import math
import random

import pytest

from dbdyno.stats.bisection import BLOCKS_LEAST, Bisection, SideTest


@pytest.mark.parametrize("count", [2, 3, 4, 5, 17, 64, 65])
def test_without_noise_every_version_is_found_in_as_many_tests_as_planned(count: int) -> None:
    for first_bad in range(1, count):
        state = Bisection(count, 0.05)
        state.share()
        while (version := state.next()) is not None:
            state.share()
            state.record(version, is_bad=version >= first_bad)
        assert list(state.suspects) == [first_bad]
        assert state.tests <= state.planned_tests


def test_what_is_skipped_stays_a_suspect_and_is_not_asked_again() -> None:
    state = Bisection(10, 0.05)
    asked = []
    while (version := state.next()) is not None:
        asked.append(version)
        if version in (4, 5, 6):
            state.skip(version)
        else:
            state.record(version, is_bad=version >= 5)
    assert list(state.suspects) == [4, 5, 6, 7]
    assert len(set(asked)) == len(asked)


def test_the_shares_of_all_tests_together_are_at_most_alpha() -> None:
    state = Bisection(64, 0.05)
    shares = [state.share() for _ in range(200)]
    assert state.planned_tests == 7
    assert sum(shares) <= 0.05 + 1e-12
    assert min(shares) > 0 or sum(shares) < 0.05


def test_a_side_is_known_when_the_interval_excludes_zero_and_never_before_six_values() -> None:
    test = SideTest(0.01)
    sides = [test.add(value) for value in (1.0, 1.01, 0.99, 1.0, 1.02, 0.98)]
    assert sides == [0] * (BLOCKS_LEAST - 1) + [1]
    assert [SideTest(0.01).add(value) for value in (math.nan, math.inf)] == [0, 0]


def test_values_that_do_not_vary_decide_at_once_unless_they_are_zero() -> None:
    for value, side in ((-0.1, -1), (0.0, 0)):
        test = SideTest(0.01)
        assert [test.add(value) for _ in range(BLOCKS_LEAST)][-1] == side


def searched(seed: str, *, step: float, noise: str, sd: float, count: int = 64, blocks: int = 200) -> str:
    """Run a complete search with simulated times; return "right", "wrong", or "cannot tell"."""
    dice = random.Random(seed)
    first_bad = dice.randrange(1, count)
    state = Bisection(count, 0.05)
    drift = _Drift(dice, noise, sd)

    def value(versions: list[int], weights: list[float]) -> float:
        shared = drift.next()
        return sum(w * (step * (v >= first_bad) + shared + drift.own()) for v, w in zip(versions, weights, strict=True))

    def side(versions: list[int], weights: list[float]) -> int:
        test = SideTest(state.share())
        return next((found for _ in range(blocks) if (found := test.add(value(versions, weights)))), 0)

    ends = side([0, count - 1], [-1.0, 1.0])
    if ends == 0:
        return "cannot tell"
    while (version := state.next()) is not None:
        found = side([0, version, count - 1], [-0.5, 1.0, -0.5])
        if found == 0:
            state.skip(version)
        else:
            state.record(version, is_bad=found == ends)
    if first_bad not in state.suspects:
        return "wrong"
    return "right" if len(state.suspects) == 1 else "cannot tell"


class _Drift:
    """Noise of a machine: `normal`, `tails` (one block in twenty is slow), or `ar` (all arms drift together)."""

    def __init__(self, dice: random.Random, kind: str, sd: float) -> None:
        self.dice, self.kind, self.sd, self.at = dice, kind, sd, 0.0

    def next(self) -> float:
        if self.kind == "ar":
            self.at = 0.9 * self.at + self.dice.gauss(0, 3 * self.sd)
        return self.at

    def own(self) -> float:
        if self.kind == "tails" and self.dice.random() < 0.05:
            return self.dice.expovariate(1 / (8 * self.sd))
        return self.dice.gauss(0, self.sd)


NOISES = [("normal", 0.02), ("normal", 0.1), ("tails", 0.02), ("ar", 0.03)]


@pytest.mark.parametrize(("noise", "sd"), NOISES)
def test_a_step_of_ten_per_cent_among_64_is_found_in_simulated_times(noise: str, sd: float) -> None:
    ends = [searched(f"few {at}", step=math.log(1.1), noise=noise, sd=sd) for at in range(20)]
    assert ends.count("wrong") <= 3 and ends.count("right") >= 15, ends


@pytest.mark.soak
@pytest.mark.parametrize("step", [0.03, 0.1])
@pytest.mark.parametrize(("noise", "sd"), NOISES)
def test_at_most_five_per_cent_of_many_searches_are_wrong(noise: str, sd: float, step: float) -> None:
    seeds = 1000
    ends = [searched(f"many {at}", step=math.log(1 + step), noise=noise, sd=sd) for at in range(seeds)]
    found = {word: 100 * ends.count(word) / seeds for word in ("right", "wrong", "cannot tell")}
    print(f"step {100 * step:g} %, {noise} noise of {100 * sd:g} % a block: {found}")
    assert found["wrong"] <= 5
