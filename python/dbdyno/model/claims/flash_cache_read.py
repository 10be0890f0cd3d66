"""N9: a read from the flash cache compared with a read from disk."""

from __future__ import annotations

from dbdyno.model.claims.base import FITTED, Claim, ClaimQuantity
from dbdyno.model.claims.bench import Arm, Bench

MACHINE = "exadata-x2"
# So few keys that the warm-up reads every block, and so few buffers that hardly any block stays in memory.
WORK = {"kind": "key-lookup", "keys": 100_000}
FEW = {"database.buffers.buffers": "200"}
READ = "event = 'cell single block physical read'"


def measure(bench: Bench) -> list[ClaimQuantity]:
    """Measure the mean time of a single-block read by one session: from disk, from the flash cache, from flash."""
    arms = [
        Arm("disk", WORK, 1, {**FEW, "cells.flash_cache.mode": "none"}),
        Arm("cache", WORK, 1, FEW),
        Arm("flash", WORK, 1, {**FEW, "cells.groups.DATA.on": "flash"}),
    ]
    with bench.run(MACHINE, arms, transactions=3_000, warmup=20_000) as evidence:
        return [
            ClaimQuantity(
                "disk / flash cache", evidence.ratio("avg(elapsed_ns)", "waits", "disk", "cache", READ), 4, 10
            ),
            ClaimQuantity(
                "flash cache / directly on flash",
                evidence.ratio("avg(elapsed_ns)", "waits", "cache", "flash", READ),
                low=0.99,
            ),
        ]


CLAIM = Claim(
    "N9",
    "A read from the flash cache is 4 to 10 times as fast as one from disk",
    "Harrison 2011 (E13): flash before flash cache before disk",
    FITTED,
    measure,
    ("As in the source, the table covers a small part of the disks: their arms move little, so rotation dominates.",),
)
