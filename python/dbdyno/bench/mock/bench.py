"""A bench of seeded random times: nothing runs, nothing waits, and the plan defines the true times.

It tests the runner, the order of arms, resuming, gates, analysis and pages without a server. The same seed gives the
same evidence, whenever a block is run. The target `mock:` is sufficient; text after the colon is only a name.
"""

from __future__ import annotations

import contextlib
import random
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from dbdyno.bench.mock.script import Script
from dbdyno.bench.operations import Operations
from dbdyno.bench.passive_bench import PassiveBench, arm_row
from dbdyno.bench.protocol import EvidenceReading, Facts, RunLayout, Traits
from dbdyno.study.plan.schedule import blocks, timing

if TYPE_CHECKING:
    from dbdyno.bench.recorder import Recorder
    from dbdyno.study.plan.plan import Plan
    from dbdyno.study.plan.schedule import Turn

WORKLOAD = "mock"
BEGINNING_NS = 1_700_000_000_000_000_000
PAUSE_NS = 1_000_000
OPERATIONS_MOST = 100_000
"""Maximum number of operations of one turn."""


class MockBench(PassiveBench):
    """Bench with arms whose times are drawn from scripts."""

    traits = Traits(interrupted="nothing was changed")

    def refusal(self, plan: Plan) -> str | None:
        """Return None if the plan's workload defines the times, otherwise the reason."""
        return None if plan.workload.kind == WORKLOAD else "a mock runs the workload `mock` only"

    def prepare(self, seed: int | None = None) -> RunLayout:
        """Read the scripts and prepare the run.

        Raises:
            PlanError: A script's parameters are invalid.
        """
        plan = self.plan
        self.scripts = [Script.from_parameters(plan.parameters_of(arm)) for arm in plan.arms]
        self.seed = seed if seed is not None else plan.schedule.seed or secrets.randbits(31)
        how = timing(plan.schedule, "slices" if len(plan.arms) > 1 else "turns")
        self.ready = RunLayout(plan, self.seed, how, blocks(plan, how, self.seed), "a mock switches at once")
        return self.ready

    def facts(self) -> Facts:
        """Return the arms with their scripts."""
        arms = [arm_row(self.plan, arm, sessions=1, rate_per_s=None) for arm in self.plan.arms]
        return Facts({"mock": {"version": "seeded times", "settings": []}}, arms, EvidenceReading())

    @contextlib.contextmanager
    def watch(self, recorder: Recorder) -> Iterator[None]:
        """Begin a block at the time at which all earlier blocks would have ended, even if they were not run."""
        index = recorder.planned.index
        whole = replace(recorder.planned, among=None)
        length_ns = sum(turn.length_ns or 0 for turn in whole.turns) + PAUSE_NS
        recorder.started_ns = self.now_ns = BEGINNING_NS + index * 2 * length_ns
        self.dice = random.Random(self.seed * 1_000_003 + index)
        self.operations = Operations(self.plan, recorder)
        yield
        recorder.ended_ns = self.now_ns
        self.operations.write()

    def run(self, turns: Sequence[Turn], recorder: Recorder) -> None:
        """Draw operations until they fill the time of each turn."""
        planned = recorder.planned
        counts = planned.kind == "measure"
        last = max(1, sum(block.kind == "measure" for block in self.ready.blocks) - 1)
        progress = planned.number / last if counts else 0.0
        for turn in turns:
            self.around.stopping.check()
            script, ended_ns = self.scripts[turn.arm], self.now_ns + (turn.length_ns or 0)
            if counts and script.stall_block == planned.number and turn.slice == 0:
                self._operation(turn, round(script.stall_ms * 1e6), failed=False)
            for number in range(turn.transactions or OPERATIONS_MOST):
                if number and turn.transactions is None and self.now_ns >= ended_ns:
                    break
                took_ns = script.elapsed_ns(self.dice, progress)
                self._operation(turn, took_ns, failed=self.dice.random() < script.errors)

    def _operation(self, turn: Turn, took_ns: int, *, failed: bool) -> None:
        self.operations.add(turn, self.now_ns, took_ns, error="40001" if failed else None)
        self.now_ns += took_ns


BENCH = MockBench
