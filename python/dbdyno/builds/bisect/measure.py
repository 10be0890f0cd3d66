"""Sequential measurements of builds: the plan runs one block after another until a statistical test decides."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbdyno.stats.bisection import SideTest
from dbdyno.study.plan.builds import plan_of_builds
from dbdyno.study.run.execute import start
from dbdyno.study.run.race import failing_arms, numbers, rows_of_block
from dbdyno.study.run.runner import Runner

if TYPE_CHECKING:
    from dbdyno.evidence.run import Run
    from dbdyno.study.plan.plan import Plan
    from dbdyno.study.plan.schedule import PlannedBlock
    from dbdyno.study.run.progress import Progress

GOOD, TESTED, BAD = "good", "tested", "bad"
Goodness = Mapping[int, float]
"""Value of each arm in one block, by arm number; larger is better."""


@dataclass(frozen=True)
class Measurement:
    """Result of a test between builds.

    Attributes:
        side: Sign of the mean, 1 or -1; 0 if the test could not determine it.
        mean: Mean of the values, which are logarithms of ratios; larger is better.
        half: Half of the width of the mean's interval.
        blocks: Number of blocks.
        run: Name of the run that holds the evidence.
        failed: Name of the arm whose transactions fail, or "".
    """

    side: int
    mean: float
    half: float
    blocks: int
    run: str
    failed: str = ""


class StoppingRunner(Runner):
    """Runner that ends a run when `is_decided` returns True for the values of the measured blocks."""

    side_by_side = False

    def __init__(self, *around: Any, is_decided: Callable[[Goodness], bool]) -> None:
        super().__init__(*around)
        self.is_decided = is_decided

    def _one_by_one(self, todo: Sequence[PlannedBlock]) -> None:
        for planned in todo:
            self.stopping.check()
            block = self.ready.blocks[planned.index]
            self._block(block)
            if block.kind == "measure" and self._ends(block.index):
                break

    def _ends(self, index: int) -> bool:
        from dbdyno.stats.metrics import default_headline

        plan = self.ready.plan
        headline = plan.judge.headline or default_headline("open" if plan.is_open_loop else "closed")
        rows = dict(rows_of_block(self.run, index))
        lost = failing_arms(rows)
        return self.is_decided({} if lost else numbers(rows, headline))


@dataclass
class Laboratory:
    """Measurer of builds with the user's plan.

    Attributes:
        plan: Path of the plan.
        out: Folder of runs.
        blocks: Largest number of blocks of a test.
        progress: Object that shows the progress.
        seed: Seed of the first run; None for a random seed.
        metric: Metric that decides; None for the metric of the plan.
    """

    plan: Path
    out: Path
    blocks: int
    progress: Progress
    seed: int | None = None
    metric: str | None = None
    runs: int = 0

    def compare(self, good: Path, bad: Path, alpha: float, name: str) -> Measurement:
        """Compare two builds; the mean is the logarithm of the factor by which the second one is better."""
        return self._test({GOOD: good, BAD: bad}, alpha, lambda logs: logs[1] - logs[0], name)

    def between(self, good: Path, tested: Path, bad: Path, alpha: float, name: str) -> Measurement:
        """Compare a build with the midpoint of two others; the mean is the logarithmic distance from that midpoint."""
        builds = {GOOD: good, TESTED: tested, BAD: bad}
        return self._test(builds, alpha, lambda logs: logs[1] - (logs[0] + logs[2]) / 2, name)

    def plan_of(self, builds: Mapping[str, Path]) -> Plan:
        """Return the plan with an arm per build.

        Raises:
            PlanError: The plan cannot be used for builds.
        """
        plan = plan_of_builds(self.plan, builds)
        judge = replace(plan.judge, headline=self.metric or plan.judge.headline)
        schedule = replace(plan.schedule, blocks=self.blocks)
        watch = replace(plan.watch, overhead_blocks=0)
        return replace(plan, judge=judge, schedule=schedule, watch=watch, of_builds=False)

    def _test(
        self, builds: Mapping[str, Path], alpha: float, value: Callable[[list[float]], float], name: str
    ) -> Measurement:
        """Run the plan until the sign of the mean of `value` is known, or the blocks are used up."""
        plan, test = self.plan_of(builds), SideTest(alpha)
        plan = replace(plan, title=f"{plan.title}: {name}")
        side, empty = 0, 0

        def is_decided(goodness: Goodness) -> bool:
            nonlocal side, empty
            logs = [math.log(goodness[at]) if at in goodness else math.nan for at in range(len(builds))]
            empty += math.isnan(sum(logs))
            side = test.add(value(logs))
            return side != 0

        def runner(*around: Any) -> StoppingRunner:
            return StoppingRunner(*around, is_decided=is_decided)

        seed = None if self.seed is None else self.seed + self.runs
        self.runs += 1
        run = start(plan, self.out, self.progress, seed=seed, runner=runner)
        run.save(blocks_planned=run.measured_blocks())
        failed = _failing_arm(run) if empty > test.count else ""
        return Measurement(side, test.mean, test.half_width(), test.count, run.id, failed)


def _failing_arm(run: Run) -> str:
    """Return the name of an arm in which more than one in twenty transactions fails in the last block, or ""."""
    last = max((block.index for block in run.blocks() if block.kind == "measure"), default=None)
    if last is None:
        return ""
    lost = failing_arms(dict(rows_of_block(run, last)))
    names = [arm["name"] for arm in run.manifest.arms]
    return names[min(lost)] if lost else ""
