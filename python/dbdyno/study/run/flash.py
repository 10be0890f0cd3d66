"""Flash probe from its first write to its steady state: phases one after the other, each a block of evidence.

The core writes the rows of a phase while the next phase runs, so that the device is not idle between rounds. The
block's record is written when its rows are on disk.
"""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dbdyno import _core
from dbdyno.base.signals import Interrupted, StopSignals
from dbdyno.bench.host.flash import FlashTarget, flash_facts, share_of
from dbdyno.bench.protocol import EvidenceReading
from dbdyno.bench.recorder import Recorder
from dbdyno.evidence.run import Block, Run, SliceRecord, new_run
from dbdyno.stats.steady_state import steadiness
from dbdyno.study.plan.schedule import PlannedBlock, Timing
from dbdyno.study.run.execute import tool_version
from dbdyno.study.run.progress import Progress

if TYPE_CHECKING:
    from dbdyno.base.core_types import FlashReport

KIND = "flash"
FIRST, FILL, READ, OVERWRITE = "first write", "fill", "read", "overwrite"
PHASES = (FIRST, FILL, READ, OVERWRITE)
PLANNED = 4
"""Number of blocks besides the overwriting rounds: first write, fill, and one read before and one after them."""


@dataclass(frozen=True)
class Pace:
    """Length of a round [ns], largest number of rounds, and time limit of the probe [ns]."""

    round_ns: int
    rounds: int
    limit_ns: int

    def parameters(self) -> dict[str, int]:
        """Return the values for the manifest."""
        return dict(vars(self))


def measure(target: FlashTarget, pace: Pace, out: Path, progress: Progress, seed: int | None = None) -> Run:
    """Run the probe and return its run.

    Raises:
        TargetError: The target cannot be written to.
        Interrupted: The user interrupted the probe; complete phases are kept.
    """
    seed = secrets.randbits(31) if seed is None else seed
    with contextlib.closing(_core.FlashProbe(target.spec(seed))) as probe:
        run = new_run(out, "probe flash", _manifest(target, pace, probe.span_bytes, seed))
        with StopSignals() as stopping:
            stopping.on_ask = probe.stop
            work = _Work(run, probe, pace, progress, stopping)
            progress.begin(run.id, pace.rounds + PLANNED, 0, None)
            try:
                ended = work.go()
            except BaseException as error:
                with contextlib.suppress(Exception):
                    work.save()
                word = "interrupted" if isinstance(error, Interrupted) else f"failed: {error}"
                with contextlib.suppress(OSError):
                    run.save(status="aborted", ended=word)
                raise
            finally:
                progress.end()
        run.save(status="complete", ended=ended, blocks_planned=run.measured_blocks())
    return run


def _manifest(target: FlashTarget, pace: Pace, span_bytes: int, seed: int) -> dict[str, object]:
    return {
        "kind": KIND,
        "title": f"probe flash {target.path}",
        "tool_version": tool_version(),
        "seed": seed,
        "reads": EvidenceReading(evidence=KIND).to_json(),
        "target": {"host": flash_facts(target)},
        "flash": {**target.parameters(), **pace.parameters(), **share_of(target, span_bytes)},
        "blocks_planned": pace.rounds + PLANNED,
    }


class _Work:
    """State of one probe, and the execution of its phases."""

    def __init__(
        self, run: Run, probe: _core.FlashProbe, pace: Pace, progress: Progress, stopping: StopSignals
    ) -> None:
        self.run, self.probe, self.pace = run, probe, pace
        self.progress, self.stopping = progress, stopping
        self.index = 0
        self.pending: Block | None = None
        self.ends = time.monotonic_ns() + pace.limit_ns

    def go(self) -> str:
        """Run all phases and return in words how the probe ended."""
        written = self.phase(FIRST, self.pace.round_ns)["written_to"]
        if not self.over():
            written = self.phase(FILL, self.pace.limit_ns)["written_to"]
        if written < self.probe.span_bytes:
            self.save()
            return "the time was up before everything was written once"
        if not self.over():
            self.phase(READ, self.pace.round_ns)
        rates: list[float] = []
        while not self.over() and len(rates) < self.pace.rounds:
            report = self.phase(OVERWRITE, self.pace.round_ns)
            rates.append(rate(report))
            if (found := steadiness(rates)) is not None and found.steady:
                break
        if not self.over():
            self.phase(READ, self.pace.round_ns)
        self.save()
        return f"{len(rates)} rounds of overwriting"

    def over(self) -> bool:
        """Return True if the time limit is reached."""
        return time.monotonic_ns() >= self.ends

    def phase(self, name: str, length_ns: int) -> FlashReport:
        """Run one phase; then record the previous phase, whose rows are on disk by then."""
        index, self.index = self.index, self.index + 1
        length_ns = max(0, min(length_ns, self.ends - time.monotonic_ns()))
        counts = "warmup" if name == FILL else "measure"
        block = Recorder(self.run, _plan_block(index, counts), self.stopping, self.progress.tick, self.progress.note)
        report = block.wait(self._work(name, index, length_ns), name, self.probe.progress)
        if self.pending is not None:
            self.run.add_block(self.pending)
        self.pending = _record(index, counts, name, report)
        self.progress.block(index, counts, {name: rate(report)}, [])
        return report

    def _work(self, name: str, index: int, length_ns: int) -> Callable[[], FlashReport]:
        return lambda: self.probe.run(self.run.path, index, name, length_ns)

    def save(self) -> None:
        """Write the rows and the record of the last phase."""
        self.probe.save(self.run.path)
        if self.pending is not None:
            self.run.add_block(self.pending)
            self.pending = None


def _plan_block(index: int, kind: str) -> PlannedBlock:
    return PlannedBlock(index, kind, index, len(PHASES), Timing("turns", 0, None, None, 0), 0)


def _record(index: int, kind: str, name: str, report: FlashReport) -> Block:
    return Block(
        index=index,
        kind=kind,
        started_ns=report["started_ns"],
        ended_ns=report["ended_ns"],
        rows=report["requests"],
        slices=[SliceRecord(arm=PHASES.index(name), slice=0, counts=name != FILL)],
        report={"phase": name, **report},
    )


def rate(report: FlashReport) -> float:
    """Return the requests per second of a phase."""
    seconds = (report["ended_ns"] - report["started_ns"]) / 1e9
    return report["requests"] / seconds if seconds > 0 else 0.0
