"""Interface of every bench: an engine, a host, storage cells, a model or the mock.

    refusal(plan)    returns None, or the reason why this bench cannot run the plan, as a sentence
    prepare()        inspects the bench and finds out how each arm takes effect; changes nothing
    facts()          what the manifest says of the bench and its arms
    begin(run)       makes the changes for the whole run; each is noted and registered with the guardian first
    watch(recorder)  context of one block: observes the load and writes the parts of the block at the end
    run(turns, recorder)   runs a sequence of turns of the block
    restore()        restores everything; called whatever happened

Nothing outside of `dbdyno.bench` tests which kind a bench is. Where kinds differ in how they are run, or in what their
evidence holds, `Traits` and `EvidenceReading` say so; the study's runner and its analysis read these.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

from dbdyno.base.json_types import JsonObject
from dbdyno.study.plan.schedule import PlannedBlock, Timing, Turn, blocks, turns_duration_s

if TYPE_CHECKING:
    from dbdyno.base.signals import StopSignals
    from dbdyno.bench.guardian import Guardian
    from dbdyno.bench.recorder import Recorder
    from dbdyno.evidence.run import Run
    from dbdyno.study.plan.plan import Plan


@dataclass(frozen=True)
class Traits:
    """Properties of a bench that decide how it is run.

    Attributes:
        parallel_blocks: Blocks depend neither on each other nor on the time of day, so several run at once.
        grows: Slices and turns grow to the transaction time that the warm-up measures.
        asks: The bench changes systems that belong to others, so the user is asked first.
        warms_up_again: A resumed run repeats its warm-up.
        spreads: Workers on many hosts can carry out its work.
        lines: Its sessions can use an emulated slower network.
        devices: Servers that it starts can be on modelled devices.
        predictable: The plan alone determines about how long a run takes; otherwise the bench estimates it after its
            first transactions.
        replays: A captured run can be its workload.
        refuses_resume: Reason why an interrupted run cannot be resumed, or None if it can.
        no_errors: Reason why no operation can end in an error that a plan could expect, or None.
        interrupted: State after a run was stopped by a signal, as a sentence.
    """

    parallel_blocks: bool = False
    grows: bool = False
    asks: bool = False
    warms_up_again: bool = False
    spreads: bool = False
    lines: bool = False
    devices: bool = False
    predictable: bool = True
    replays: bool = False
    refuses_resume: str | None = None
    no_errors: str | None = None
    interrupted: str = "all changes to the engine are undone"


@dataclass(frozen=True)
class BenchContext:
    """What a bench gets in addition to the plan.

    Attributes:
        stopping: Tells whether the run was asked to stop.
        guardian: Process that undoes changes if this one dies.
        folder: Folder in which runs are kept.
        note: Receives notes for the user.
        ways: Command-line options that say how to reach the bench.
        target: The target, as the user named it.
        cut: The interrupted run to resume, or None for a new run.
        only_looks: True if nothing will be run, so that no lock is taken.
    """

    stopping: StopSignals
    guardian: Guardian
    folder: Path = Path("runs")
    note: Callable[[str], None] = lambda _: None
    ways: Mapping[str, Any] = field(default_factory=dict)
    target: str | None = None
    cut: Run | None = None
    only_looks: bool = False


@dataclass(frozen=True)
class RunLayout:
    """A plan that is ready to run: its blocks in order, their lengths, and the reason for this layout."""

    plan: Plan
    seed: int
    timing: Timing
    blocks: list[PlannedBlock]
    reason: str
    notes: tuple[str, ...] = ()

    def seconds(self, operation_ns: list[float] | None = None, first: int = 0) -> float:
        """Return the predicted duration in seconds of the blocks from index `first` on.

        All blocks of one kind are assumed to take equally long.

        Args:
            operation_ns: Transaction time of each arm in ns; None means negligible transaction times.
            first: Index of the first block counted.
        """
        sessions = [self.plan.sessions_of(arm) for arm in self.plan.arms]
        count = Counter(block.kind for block in self.blocks[first:])
        one = {block.kind: block for block in self.blocks[first:]}
        asked = operation_ns or [0.0] * len(sessions)
        return sum(count[kind] * turns_duration_s(block.turns, asked, sessions) for kind, block in one.items())

    def with_timing(self, timing: Timing) -> Self:
        """Return a copy with other timing; the order of turns follows from the timing and the seed."""
        return replace(self, timing=timing, blocks=blocks(self.plan, timing, self.seed))


@dataclass(frozen=True)
class Facts:
    """What a run's manifest says about the bench.

    Attributes:
        targets: Targets by name.
        arms: One row per arm.
        reads: How the analysis must read the evidence.
        own: Fields specific to this kind of bench.
    """

    targets: dict[str, JsonObject]
    arms: list[JsonObject]
    reads: EvidenceReading
    own: JsonObject = field(default_factory=dict)


@dataclass(frozen=True)
class EvidenceReading:
    """How the analysis reads a run's evidence.

    Attributes:
        evidence: 'operations' (each operation is timed) or 'cells' (counters of storage cells).
        virtual: True if the times are a model's virtual time.
        parts: Additional evidence, any of 'devices', 'databases', 'race', 'limits' and 'logs'.
    """

    evidence: str = "operations"
    virtual: bool = False
    parts: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> EvidenceReading:
        """Return the value that `to_json` wrote."""
        return cls(str(value["evidence"]), bool(value["virtual"]), tuple(str(part) for part in value["parts"]))

    def to_json(self) -> JsonObject:
        """Return the value in the form in which a manifest stores it."""
        return {"evidence": self.evidence, "virtual": self.virtual, "parts": list(self.parts)}


class Bench(Protocol):
    """A bench of one of the kinds in `dbdyno.bench.kinds`, created for one run of one plan."""

    traits: Traits

    def __init__(self, plan: Plan, around: BenchContext) -> None: ...

    def refusal(self, plan: Plan) -> str | None:
        """Return None if the bench can run the plan, otherwise the reason as a sentence."""

    @staticmethod
    def side_effects(plan: Plan, target: str | None) -> list[str]:
        """Return what the plan would do outside of dbdyno: servers it connects to, and what it sends and sets there.

        The user is shown this list, because the plan may come from someone else.
        """

    def prepare(self, seed: int | None = None) -> RunLayout:
        """Inspect the bench and prepare the run, without changing anything.

        Raises:
            Error: Any error that the run itself would raise.
        """

    def describe(self) -> str:
        """Return a description of what a run would do, as text; call it after `prepare`."""

    def facts(self) -> Facts:
        """Return what the manifest says about the bench; call this after `prepare`."""

    def retime(self, ready: RunLayout) -> None:
        """Use the new, longer slices and turns for everything that follows."""

    def begin(self, run: Run, resumed: int) -> None:
        """Make the changes that the whole run needs; `resumed` is the number of times the run has been resumed."""

    def watch(self, recorder: Recorder) -> contextlib.AbstractContextManager[None]:
        """Return the context manager around a block, which observes what happens while the load runs.

        When the context ends normally, the block's evidence parts are on disk; when it ends with an error, no data of
        the block remains.
        """

    def run(self, turns: Sequence[Turn], recorder: Recorder) -> None:
        """Run turns of the current block and add their reports to the recorder."""

    def progress(self) -> tuple[str, int]:
        """Return the current activity and the amount of work done, for benches whose blocks run at the same time."""

    def stop(self) -> None:
        """Stop the running work as soon as possible; called from a signal handler."""

    def restore(self) -> None:
        """Restore everything as it was found; calling it more than once is safe."""
