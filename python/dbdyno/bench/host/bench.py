"""This host as a bench: log writers on real files instead of sessions on an engine.

The arms alternate in slices in randomized ABBA order, each with separate logs and files. The probe's rows become the
block's evidence parts. The probe's files are removed however the run ends.
"""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbdyno.bench.host.probe import LogArm, facts, same_device
from dbdyno.bench.passive_bench import PassiveBench, arm_row
from dbdyno.bench.protocol import BenchContext, EvidenceReading, Facts, RunLayout, Traits
from dbdyno.study.plan.schedule import blocks, timing

if TYPE_CHECKING:
    from dbdyno.base.core_types import ProbeSpec
    from dbdyno.bench.recorder import Recorder
    from dbdyno.study.plan.plan import Plan
    from dbdyno.study.plan.schedule import Turn

COST_COMMITS = 5000
WORKLOAD = "log-writer"
_REASON = "a log is always open: the arms differ only in their files and rules"
_COLUMNS = ("source", "object_type", "object", "metric", "at_ns", "value", "unit", "kind")


class HostBench(PassiveBench):
    """Bench of the log writers of one run."""

    traits = Traits(
        no_errors="a log writer's operations return no SQLSTATE",
        refuses_resume="is a run of a probe, whose files are gone; it cannot continue",
        interrupted="the probe's files are removed",
    )

    def __init__(self, plan: Plan, around: BenchContext) -> None:
        super().__init__(plan, around)
        self.held = contextlib.ExitStack()

    def refusal(self, plan: Plan) -> str | None:
        """Return None if the plan's arms are log writers, otherwise the reason."""
        return None if plan.workload.kind == WORKLOAD else "its workload is not a log writer"

    def prepare(self, seed: int | None = None) -> RunLayout:
        """Check the log writers and prepare the run.

        Raises:
            PlanError: The values of an arm are invalid.
            TargetError: The probe refuses to write to a path.
        """
        from dbdyno import _core

        plan = self.plan
        self.arms = [LogArm.from_spec({"name": arm.name, **plan.parameters_of(arm)}) for arm in plan.arms]
        if len(self.arms) == 2 and self.arms[0].paths == self.arms[1].paths:
            self.arms[1] = self.arms[1].with_separate_files("-again")
        seed = secrets.randbits(31) if seed is None else seed
        spec: ProbeSpec = {"seed": seed, "arms": [arm.spec() for arm in self.arms]}
        self.probe = self.held.enter_context(contextlib.closing(_core.Probe(spec, secrets.randbits(63))))
        how = timing(plan.schedule, "slices" if len(plan.arms) > 1 else "turns")
        self.ready = RunLayout(
            plan, seed, how, blocks(plan, how, seed), _REASON if how.in_slices else "there is one arm"
        )
        return self.ready

    def describe(self) -> str:
        """Return the description of what a run would do."""
        plan = self.plan
        arms = [f"arm {arm.name!r}: {arm.description}" for arm in plan.arms]
        time_s = f"time: about {self.ready.seconds():.0f} s"
        return "\n".join([plan.title, plan.question, "", *arms, "", time_s, "", "nothing was changed", ""])

    def facts(self) -> Facts:
        """Return the machine, the storage of each path, and the cost of a commit without any I/O."""
        cost = self.probe.cost(COST_COMMITS)
        self.probe.open()
        arms = [arm_row(self.plan, about, changes={}) for about in self.plan.arms]
        for row, about, own in zip(arms, self.plan.arms, self.arms, strict=True):
            named = LogArm.from_spec({"name": about.name, **self.plan.parameters_of(about)}).paths
            for path, used in zip(named, own.paths, strict=True):  # the second of two equal arms has separate files
                row["description"] = row["description"].replace(str(path), str(used))
        logs = [
            {**arm.spec(), "same_device": same_device(arm), "cost": own}
            for arm, own in zip(self.arms, cost, strict=True)
        ]
        reads = EvidenceReading(parts=("logs", "race"))
        return Facts({"host": facts(self.arms)}, arms, reads, {"logs": logs})

    @contextlib.contextmanager
    def watch(self, recorder: Recorder) -> Iterator[None]:
        """Measure canaries before a block, and read the counters of the logs and the machine before and after it."""
        from dbdyno import _core
        from dbdyno.bench.canary import host_canaries

        recorder.canaries = host_canaries(self.arms[0].paths[0].parent)
        rows = self._counters()
        try:
            yield
        except BaseException:
            self.probe.abandon_block()
            raise
        recorder.rows = self.probe.end_block(recorder.folder, recorder.name)
        rows += self._counters()
        columns: dict[str, list[Any]] = {key: [row[key] for row in rows] for key in rows[0]}
        columns["block"] = [recorder.planned.index] * len(rows)
        columns["value"] = [float(value) for value in columns["value"]]
        _core.write_metrics(Path(recorder.folder) / "metrics", recorder.name, columns)

    def run(self, turns: Sequence[Turn], recorder: Recorder) -> None:
        """Run turns of the log writers."""
        slices = [(t.arm, t.slice, t.length_ns, t.transactions) for t in turns]
        words = ", ".join(dict.fromkeys(self.arms[t.arm].name for t in turns))
        block = recorder.planned.index
        report = recorder.wait(lambda: self.probe.run(block, slices), words, self.probe.progress)
        recorder.started_ns, recorder.ended_ns = report["started_ns"], report["ended_ns"]
        recorder.reports.append({**report, "wall_ns": report["ended_ns"] - report["started_ns"]})

    def progress(self) -> tuple[str, int]:
        """Return the number of commits so far."""
        return "", self.probe.progress()

    def stop(self) -> None:
        """Ask the probe to end its turn."""
        if hasattr(self, "probe"):
            self.probe.stop()

    def restore(self) -> None:
        """Remove the probe's files."""
        self.held.close()

    def _counters(self) -> list[dict[str, object]]:
        """Return all counters of the logs and the machine now."""
        from dbdyno.bench.metrics import host_counters

        at_ns = time.time_ns()
        names = ("object_type", "object", "metric", "unit", "kind", "value")
        rows: list[dict[str, object]] = [
            {"arm": arm.name, "source": "probe", "at_ns": at_ns, **dict(zip(names, row, strict=True))}
            for arm, own in zip(self.arms, self.probe.counters(), strict=True)
            for row in own
        ]
        return rows + [{"arm": "", **{key: getattr(row, key) for key in _COLUMNS}} for row in host_counters()]


BENCH = HostBench
