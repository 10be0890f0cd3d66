"""What every bench answers, whatever it is: an engine, a host, storage cells, a model, the mock.

    can(plan)        None, or the reason why this bench cannot run the plan, as a sentence
    prepare()        looks, and says how each arm takes effect; changes nothing
    facts()          what the manifest says of the bench and its arms
    begin(run)       what is changed for the length of the run: noted and registered with the guardian first
    watch(recorder)  one block: what is seen beside the load, and its parts written at the end
    run(turns, recorder)   one stretch of the block
    put_back()       everything as it was; called whatever happened

Nothing outside this room asks which kind a bench is. Where kinds differ in how they want to be run, or in what their
evidence holds, `Traits` says so; the study's runner and its analysis read that.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

from dbdyno.study.plan.schedule import PlannedBlock, Timing, Turn, blocks, lasting_s

if TYPE_CHECKING:
    from dbdyno.base.signals import Stopping
    from dbdyno.bench.guardian import Guardian
    from dbdyno.bench.recorder import Recorder
    from dbdyno.evidence.run import Run
    from dbdyno.study.plan.plan import Plan


@dataclass(frozen=True)
class Traits:
    """How a bench wants to be run.

    `parallel_blocks`: blocks do not depend on each other or on the time, so several run at once. `grows`: slices and
    turns grow to what the warm-up shows that a transaction takes. `asks`: changes what is others', so the user is
    asked first. `interrupted`: what is true after a signal. `refuses_resume`: why a run that was cut cannot go on.
    `warms_up_again`: a run that goes on repeats its warm-up. `lines`: its sessions can go by way of a longer line.
    `replays`: a captured run can be its workload.
    `no_errors`: why no operation ends in an error that a plan could expect.
    `foretold`: the plan says about how long a run takes; elsewhere the bench says so when it has seen a transaction.
    """

    parallel_blocks: bool = False
    grows: bool = False
    asks: bool = False
    warms_up_again: bool = False
    lines: bool = False
    foretold: bool = True
    replays: bool = False
    refuses_resume: str | None = None
    no_errors: str | None = None
    interrupted: str = "the engine is as it was"


@dataclass(frozen=True)
class Circumstances:
    """What a bench is given beside the plan: where runs are kept, who is asked to stop, who puts back, the options of
    the command line that say how to reach it, and the run that goes on, if one does.
    `only_looks`: nothing is run, so nothing is claimed."""

    stopping: Stopping
    guardian: Guardian
    folder: Path = Path("runs")
    note: Callable[[str], None] = lambda _: None
    ways: Mapping[str, Any] = field(default_factory=dict)
    target: str | None = None
    cut: Run | None = None
    only_looks: bool = False


@dataclass(frozen=True)
class Ready:
    """A plan ready to be run: its order and lengths, and why they are so."""

    plan: Plan
    seed: int
    timing: Timing
    blocks: list[PlannedBlock]
    reason: str
    notes: tuple[str, ...] = ()

    def seconds(self, operation_ns: list[float] | None = None, first: int = 0) -> float:
        """How long the blocks from `first` on take, where a transaction of each arm takes `operation_ns`;
        without that, if it takes next to nothing. Blocks of a kind take equally long."""
        sessions = [self.plan.sessions_of(arm) for arm in self.plan.arms]
        count = Counter(block.kind for block in self.blocks[first:])
        one = {block.kind: block for block in self.blocks[first:]}
        asked = operation_ns or [0.0] * len(sessions)
        return sum(count[kind] * lasting_s(block.turns, asked, sessions) for kind, block in one.items())

    def retimed(self, how: Timing) -> Self:
        """The same with other lengths; the order follows from them and the seed."""
        return replace(self, timing=how, blocks=blocks(self.plan, how, self.seed))


@dataclass(frozen=True)
class Facts:
    """What a manifest says of a bench: its targets, a row per arm, the kind of analysis that its evidence wants, and
    what else is its own."""

    targets: dict[str, dict[str, Any]]
    arms: list[dict[str, Any]]
    reads: Reads
    own: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Reads:
    """How evidence is read. `evidence`: 'operations' (every one timed) or 'cells' (counters of cells); `virtual`:
    time passed in a model; `parts`: what else it holds, of 'devices', 'databases', 'race', 'limits', 'logs'."""

    evidence: str = "operations"
    virtual: bool = False
    parts: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Reads:
        """What `to_json` wrote."""
        return cls(str(value["evidence"]), bool(value["virtual"]), tuple(str(part) for part in value["parts"]))

    def to_json(self) -> dict[str, Any]:
        """As it stands in a manifest."""
        return {"evidence": self.evidence, "virtual": self.virtual, "parts": list(self.parts)}


class Bench(Protocol):
    """One of the kinds in `dbdyno.bench.kinds`, made for one run of one plan."""

    traits: Traits

    def __init__(self, plan: Plan, around: Circumstances) -> None: ...

    def can(self, plan: Plan) -> str | None:
        """None, or the reason why not, as a sentence."""

    @staticmethod
    def orders(plan: Plan, target: str | None) -> list[str]:
        """What a plan that may be somebody else's would have this do outside of dbdyno: servers it connects to, what
        it sends and sets there."""

    def prepare(self, seed: int | None = None) -> Ready:
        """Looks at the bench and lays out the run; changes nothing. Raises what the run would raise."""

    def describe(self) -> str:
        """What a run would do, as a page; after `prepare`."""

    def facts(self) -> Facts:
        """What the manifest says; after `prepare`."""

    def retime(self, ready: Ready) -> None:
        """Slices or turns have grown: what follows is run so."""

    def begin(self, run: Run, resumed: int) -> None:
        """Makes what the whole run needs; `resumed` is how often it has gone on already."""

    def watch(self, recorder: Recorder) -> contextlib.AbstractContextManager[None]:
        """Entered around a block: what is seen beside the load. Its parts are on disk when it ends well; when it does
        not, nothing of the block is left."""

    def run(self, turns: Sequence[Turn], recorder: Recorder) -> None:
        """Runs turns of the block under way and puts what they report into the recorder."""

    def progress(self) -> tuple[str, int]:
        """Where blocks run side by side: what is under way, and how much is done."""

    def stop(self) -> None:
        """Ends what is running as soon as it can; called from a signal handler."""

    def put_back(self) -> None:
        """Everything as it was found; safe to call more than once."""
