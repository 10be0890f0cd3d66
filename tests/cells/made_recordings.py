"""Synthetic recordings for tests of comparisons: rounds of a load with chosen rates."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path

from dbdyno.cells.collection import Collection, Column
from dbdyno.cells.hosts import Host
from dbdyno.cells.listing import Listing, Reading
from dbdyno.cells.record import Pace, new_recording, save_round
from dbdyno.evidence.run import Run

SECOND = 10**9
START_NS = 1_800_000_000 * SECOND
DISKS = ("CD_00", "CD_01", "CD_02")


@dataclass
class Cells:
    """Cells whose counters grow; `collect` returns one round, and the rates may be changed between rounds."""

    dice: random.Random
    names: tuple[str, ...] = ("cel01", "cel02")
    writes_per_s: float = 100.0
    flash_share: float = 0.035
    latency_us: float = 200.0
    wobble: float = 0.1
    now_s: float = 0.0
    began: int = 1
    sums: dict[tuple[str, str, str], float] = field(default_factory=dict)

    def grow(self, seconds: float) -> None:
        """Let that much time pass under the load."""
        self.now_s += seconds
        load = self.dice.lognormvariate(0, self.wobble)
        for cell in self.names:
            writes = round(self.writes_per_s * seconds * load * self.dice.lognormvariate(0, 0.02))
            mean = writes * self.flash_share
            flash = max(0, round(self.dice.gauss(mean, mean**0.5)))
            self._add(
                cell,
                "FLASHLOG",
                FL_RQ_W=writes + 2,
                FL_IO_W=writes,
                FL_FLASH_FIRST=flash,
                FL_DISK_FIRST=writes - flash,
                FL_PREVENTED_OUTLIERS=flash // 50,
                FL_ACTUAL_OUTLIERS=0,
                FL_IO_W_SKIP_BUSY=2,
                FL_IO_W_SKIP_LARGE=0,
            )
            for disk in DISKS:
                requests = round(50 * seconds * load * self.dice.lognormvariate(0, 0.05))
                each = self.latency_us * self.dice.lognormvariate(0, self.wobble / 2)
                self._add(
                    cell, f"{disk}_{cell}", CD_IO_RQ_R_SM=requests, CD_IO_TM_R_SM=round(requests * each), CD_IO_ERRS=0
                )

    def _add(self, cell: str, item: str, **grown: float) -> None:
        for name, value in grown.items():
            key = (cell, name, item)
            self.sums[key] = self.sums.get(key, 0.0) + value

    def restart(self) -> None:
        """Restart the service of every cell; the counters begin at zero."""
        self.sums = dict.fromkeys(self.sums, 0.0)
        self.began += 1

    def collect(self, *, without: tuple[str, ...] = (), at_s: float | None = None) -> Collection:
        """Return the current values of all cells as one round."""
        at_ns = START_NS + round((self.now_s if at_s is None else at_s) * SECOND)
        columns = []
        for number, cell in enumerate(self.names):
            if cell in without:
                continue
            own = at_ns + number * SECOND
            readings = [
                Reading(cell, name, item, value, "us" if "_TM_" in name else "IO requests", repr(value), 0, own)
                for (whose, name, item), value in self.sums.items()
                if whose == cell
            ]
            readings.append(Reading(cell, "FC_BY_USED", "FLASHCACHE", 1000.0, "MB", "", 0, own))
            listing = Listing(readings, {cell: self.began})
            columns.append(Column(Host(cell, cell), listing, at_ns, 0.1))
        return Collection(columns)

    def rounds(self, count: int, every_s: float = 60.0) -> list[Collection]:
        """Return a round now, then `count` more, one every `every_s` seconds."""
        if not self.sums:
            self.grow(every_s)
        found = [self.collect()]
        for _ in range(count):
            self.grow(every_s)
            found.append(self.collect())
        return found


def kept(folder: Path, rounds: list[Collection], **manifest: object) -> Run:
    """Write rounds to a run folder; return the run."""
    names = list(dict.fromkeys(c.host.name for one in rounds for c in one.columns))
    run = new_recording(folder, [Host(name, name) for name in names], Pace())
    for index, one in enumerate(rounds):
        save_round(run, index, one)
    run.save(status="complete", **manifest)
    return run
