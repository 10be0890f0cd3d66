"""Recordings for the tests, built round by round from counters that the tests choose."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from dbdyno.cells.collection import Collection, Column
from dbdyno.cells.hosts import Host
from dbdyno.cells.listing import Listing, Reading
from dbdyno.cells.record import Pace, new_recording, save_round
from dbdyno.evidence.run import Run

MINUTE = 60 * 10**9
CELLS = ("cel01", "cel02", "cel03")
Counters = Mapping[tuple[str, str], float]
"""Value of each counter, by metric and object."""


def run_of(folder: Path, rounds: Sequence[Collection], cells: Sequence[str] = CELLS) -> Run:
    """Save the rounds as a complete recording; return the run."""
    run = new_recording(folder, [Host(name, "") for name in cells], Pace())
    for index, one in enumerate(rounds):
        save_round(run, index, one)
    run.save(status="complete")
    return run


def column(
    cell: str,
    counters: Counters,
    minute: float,
    *,
    asked: float | None = None,
    began: int | None = None,
    problem: str | None = None,
) -> Column:
    """Return one cell's answer: collected at `minute`, requested at minute `asked` (by default the same)."""
    at_ns = round(minute * MINUTE)
    readings = [Reading(cell, name, item, value, "", "", 0, at_ns) for (name, item), value in counters.items()]
    listing = Listing(readings)
    if began is not None:
        listing.started_ns[cell] = began
    asked_ns = round((minute if asked is None else asked) * MINUTE)
    return Column(Host(cell, cell), listing, asked_ns, 0.1, problem)


def rounds_of(minutes: int, counters: Callable[[str, int], Counters], cells: Sequence[str] = CELLS) -> list[Collection]:
    """Return one round per minute; `counters` gives the values of every cell."""
    return [Collection([column(cell, counters(cell, at), at) for cell in cells]) for at in range(minutes)]


def disks(dice: random.Random, minutes: int, slow: float = 1.0, each: int = 4) -> list[Collection]:
    """Return rounds of three cells with four disks each; disk 3 of cel02 has `slow` times the latency of the others."""
    stand: dict[tuple[str, str, str], float] = {}

    def counters(cell: str, _: int) -> Counters:
        found = {}
        for disk in range(each):
            item = f"CD_0{disk}_{cell}"
            requests = round(1000 * dice.lognormvariate(0, 0.1))
            worse = slow if (cell, disk) == ("cel02", 3) else 1.0
            time = round(requests * 900 * worse * dice.lognormvariate(0, 0.05))
            for name, more in (("CD_IO_RQ_R_SM", requests), ("CD_IO_TM_R_SM", time)):
                stand[cell, item, name] = stand.get((cell, item, name), 0.0) + more
                found[name, item] = stand[cell, item, name]
        return found

    return rounds_of(minutes, counters)


def redo(cell: str, minute: int) -> Counters:
    """Return counters of a flash log: 600 writes a minute, 5 % first on flash, one outlier prevented; later cells a bit
    more.
    """
    n = minute * (1 + CELLS.index(cell) / 10)
    return {
        ("FL_IO_W", "FLASHLOG"): 600 * n,
        ("FL_RQ_W", "FLASHLOG"): 606 * n,
        ("FL_DISK_FIRST", "FLASHLOG"): 570 * n,
        ("FL_FLASH_FIRST", "FLASHLOG"): 30 * n,
        ("FL_PREVENTED_OUTLIERS", "FLASHLOG"): n,
        ("FL_ACTUAL_OUTLIERS", "FLASHLOG"): 0,
        ("FL_IO_W_SKIP_BUSY", "FLASHLOG"): 6 * n,
        ("FL_IO_TM_W", "FLASHLOG"): 600 * 250 * n,
    }


def cache(_: str, minute: int) -> Counters:
    """Counters of a flash cache: nine of ten reads are hits."""
    return {
        ("FC_IO_RQ_R", "FLASHCACHE"): 5400 * minute,
        ("FC_IO_RQ_R_MISS", "FLASHCACHE"): 600 * minute,
        ("FC_IO_RQ_W", "FLASHCACHE"): 1000 * minute,
        ("FC_IO_RQ_W_FIRST", "FLASHCACHE"): 100 * minute,
        ("FC_IO_RQ_W_OVERWRITE", "FLASHCACHE"): 300 * minute,
        ("FC_IO_RQ_W_POPULATE", "FLASHCACHE"): 600 * minute,
        ("FC_BY_USED", "FLASHCACHE"): 1000 + minute,
    }
