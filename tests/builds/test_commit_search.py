"""The search over commits with simulated times: whatever fails, no innocent commit is blamed."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from dbdyno.base.errors import PlanError, TargetError
from dbdyno.builds.bisect.cache import BuildCache
from dbdyno.builds.bisect.commits import Commit
from dbdyno.builds.bisect.measure import Measurement
from dbdyno.builds.bisect.model import BisectModel
from dbdyno.builds.bisect.search import CommitSearch
from dbdyno.stats.bisection import SideTest


@dataclass
class Builds(BuildCache):
    """Build cache in which every commit has a build, except the broken ones."""

    broken: frozenset[int] = frozenset()

    def build(self, commit: Commit) -> Path | None:
        if int(commit.name) in self.broken:
            self.failed[commit.name] = "exit 2"
            return None
        return Path(commit.name)


@dataclass
class Times:
    """Simulated times of commits, which vary by `sd` from block to block; some commits crash."""

    times: list[float]
    sd: float = 0.02
    crashing: frozenset[int] = frozenset()
    dice: random.Random = field(default_factory=lambda: random.Random(20261128))

    def compare(self, good: Path, bad: Path, alpha: float, name: str) -> Measurement:
        return self._test([good, bad], [-1.0, 1.0], alpha)

    def between(self, good: Path, tested: Path, bad: Path, alpha: float, name: str) -> Measurement:
        if int(tested.name) in self.crashing:
            raise TargetError("all 12 transactions failed")
        return self._test([good, tested, bad], [-0.5, 1.0, -0.5], alpha)

    def _test(self, builds: list[Path], weights: list[float], alpha: float) -> Measurement:
        test, side = SideTest(alpha), 0
        for _ in range(100):
            drawn = [-math.log(self.times[int(build.name)]) + self.dice.gauss(0, self.sd) for build in builds]
            side = test.add(sum(weight * one for weight, one in zip(weights, drawn, strict=True)))
            if side:
                break
        return Measurement(side, test.mean, test.half_width(), test.count, "run")


def search(times: Times, *, broken: tuple[int, ...] = (), count: int = 64) -> BisectModel:
    commits = [Commit(f"{at:040d}", f"change {at}") for at in range(count)]
    builds = Builds(Path(), Path(), "", broken=frozenset(broken))
    return CommitSearch(commits, builds, times).run("plan")


def suspects(model: BisectModel) -> list[int]:
    return [int(one["commit"]) for one in model["suspects"]]


def stepped(at: int, by: float = 1.1, count: int = 64) -> list[float]:
    return [by if number >= at else 1.0 for number in range(count)]


@pytest.mark.parametrize("at", [1, 2, 31, 32, 40, 63])
def test_a_step_of_ten_per_cent_among_64_commits_is_found_in_about_seven_tests(at: int) -> None:
    model = search(Times(stepped(at)))
    assert suspects(model) == [at] and model["direction"] == "slower"
    assert len(model["tests"]) <= 8
    assert model["step"] is not None and 1 / model["step"]["ratio"] == pytest.approx(1.1, abs=0.03)


def test_a_commit_that_made_it_faster_is_found_as_well() -> None:
    model = search(Times(stepped(20, 0.9)))
    assert suspects(model) == [20] and model["direction"] == "faster"


def test_commits_that_do_not_build_or_run_stay_suspects_where_they_hide_the_step() -> None:
    model = search(Times(stepped(33), crashing=frozenset((34,))), broken=(31, 32, 33))
    assert suspects(model) == [31, 32, 33, 34, 35]
    assert model["verdict"]["headline"].startswith("One of 5 commits made it slower")
    assert {row["result"] for row in model["tests"] if row["result"].startswith("skipped")} == {
        "skipped: does not build",
        "skipped: does not run: all 12 transactions failed",
    }


def test_where_they_hide_nothing_the_commit_is_found() -> None:
    assert suspects(search(Times(stepped(50)), broken=(31, 32, 48))) == [50]


def test_of_two_commits_the_second_is_it_without_another_test() -> None:
    model = search(Times(stepped(1, count=2)), count=2)
    assert suspects(model) == [1] and len(model["tests"]) == 1
    assert model["step"] == model["change"]


def test_ends_that_are_alike_name_no_commit() -> None:
    model = search(Times(stepped(64)))
    assert (suspects(model), model["direction"], len(model["tests"])) == ([], "", 1)
    assert "not known whether" in model["verdict"]["headline"]


def test_an_end_that_does_not_build_is_an_error() -> None:
    with pytest.raises(PlanError, match="cannot be built: exit 2"):
        search(Times(stepped(9)), broken=(63,))


def test_of_two_steps_the_one_that_crosses_the_middle_is_named_with_its_own_size() -> None:
    times = [1.0 + 0.03 * (at >= 10) + 0.12 * (at >= 50) for at in range(64)]
    model = search(Times(times))
    assert suspects(model) == [50]
    assert model["step"] is not None and 1 / model["step"]["ratio"] == pytest.approx(1.15 / 1.03, abs=0.03)
