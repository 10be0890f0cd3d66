"""The search itself: tests both ends, then halves the range, and finally compares the commit found with its parent."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from dbdyno.base.errors import PlanError, TargetError
from dbdyno.builds.bisect.cache import BuildCache
from dbdyno.builds.bisect.commits import Commit
from dbdyno.builds.bisect.measure import Measurement
from dbdyno.builds.bisect.model import SCHEMA, BisectModel, Ratio, TestRow
from dbdyno.builds.bisect.verdict import verdict_of
from dbdyno.stats.bisection import Bisection

SLOWER, FASTER = "slower", "faster"


class Measurer(Protocol):
    """Protocol for measuring builds; `Laboratory` is the implementation that runs a plan."""

    def compare(self, good: Path, bad: Path, alpha: float, name: str) -> Measurement:
        """Compare two builds; the mean is the logarithm of the factor by which the second one is better."""

    def between(self, good: Path, tested: Path, bad: Path, alpha: float, name: str) -> Measurement:
        """Compare a build with the midpoint of two others."""


@dataclass
class CommitSearch:
    """A search among commits, of which the first is good and the last bad.

    Attributes:
        commits: Commits of the first-parent chain, oldest first.
        cache: Their builds.
        laboratory: Measurer of the builds.
        alpha: Largest probability of a wrong answer.
    """

    commits: Sequence[Commit]
    cache: BuildCache
    laboratory: Measurer
    alpha: float = 0.05
    rows: list[TestRow] = field(default_factory=list)
    direction: str = ""

    def run(self, title: str) -> BisectModel:
        """Search, and return the model of the page.

        Raises:
            PlanError: The first or the last commit does not build.
            TargetError: The plan cannot be run with the build of the first or the last commit.
        """
        ends = (self._built_end(self.commits[0]), self._built_end(self.commits[-1]))
        state = Bisection(len(self.commits), self.alpha)
        whole = self.laboratory.compare(ends[0], ends[1], state.share(), "the two ends")
        change = _ratio(whole)
        self._add(self.commits[-1], "good against bad", whole, change)
        if not whole.side:
            return self._model(title, state, change, None)
        self.direction = SLOWER if whole.side < 0 else FASTER
        while (version := state.next()) is not None:
            self._test(state, version, ends, whole.side)
        return self._model(title, state, change, self._confirm(state))

    def _built_end(self, commit: Commit) -> Path:
        place = self.cache.build(commit)
        if place is None:
            raise PlanError(
                f"cannot be built: {self.cache.failed[commit.name]}",
                where=commit.short,
                next_step=f"see {self.cache.folder_of(commit)}.log, then correct --build or name another commit",
            )
        return place

    def _test(self, state: Bisection, version: int, ends: tuple[Path, Path], worse: int) -> None:
        """Test a version, and record whether it is good or bad."""
        commit = self.commits[version]
        place = self.cache.build(commit)
        if place is None:
            self._skip(state, version, "does not build")
            return
        try:
            found = self.laboratory.between(ends[0], place, ends[1], state.share(), commit.short)
        except TargetError as error:
            self._skip(state, version, f"does not run: {error.message}"[:200])
            return
        if not found.side:
            words = f"its transactions fail ({found.failed})" if found.failed else "cannot tell"
            self._skip(state, version, words, found)
            return
        state.record(version, is_bad=found.side == worse)
        self._add(commit, "like the bad one" if found.side == worse else "like the good one", found, None)

    def _skip(self, state: Bisection, version: int, words: str, measurement: Measurement | None = None) -> None:
        state.skip(version)
        self._add(self.commits[version], f"skipped: {words}", measurement, None)

    def _confirm(self, state: Bisection) -> Ratio | None:
        """Return the change from the last good commit to the first bad commit, if the search found a single commit."""
        if len(state.suspects) != 1 or (state.good, state.bad) == (0, len(self.commits) - 1):
            return None
        good, bad = (self.cache.build(self.commits[at]) for at in (state.good, state.bad))
        if good is None or bad is None:
            return None
        with contextlib.suppress(TargetError):
            found = self.laboratory.compare(good, bad, self.alpha, f"{self.commits[state.bad].short} and its parent")
            change = _ratio(found)
            self._add(self.commits[state.bad], "against its parent", found, change)
            return change
        return None

    def _add(self, commit: Commit, words: str, measurement: Measurement | None, change: Ratio | None) -> None:
        self.rows.append(
            {
                "commit": commit.name,
                "subject": commit.subject,
                "result": words,
                "blocks": measurement.blocks if measurement else 0,
                "change": change,
                "run": measurement.run if measurement else "",
            }
        )

    def _model(self, title: str, state: Bisection, change: Ratio, step: Ratio | None) -> BisectModel:
        suspects = [self.commits[at] for at in state.suspects] if self.direction else []
        alone = len(suspects) == 1 and len(self.commits) == 2
        model: BisectModel = {
            "schema": SCHEMA,
            "kind": "bisect",
            "title": title,
            "direction": self.direction,
            "good": self.commits[0].name,
            "bad": self.commits[-1].name,
            "commits": len(self.commits),
            "alpha": self.alpha,
            "change": change,
            "step": change if alone else step,
            "suspects": [{"commit": one.name, "subject": one.subject} for one in suspects],
            "tests": self.rows,
            "verdict": {"headline": "", "sentences": [], "next": ""},
        }
        model["verdict"] = verdict_of(model)
        return model


def _ratio(measurement: Measurement) -> Ratio:
    """Return the measured change as a ratio with its interval; an end that is not yet known is None."""
    ends = (measurement.mean - measurement.half, measurement.mean + measurement.half)
    low, high = (math.exp(end) if math.isfinite(end) and abs(end) < 700 else None for end in ends)
    return {"ratio": math.exp(measurement.mean), "low": low, "high": high}
