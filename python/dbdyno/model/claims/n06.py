"""N6: redo blocks of 4 KB against 512 bytes on flash."""

from __future__ import annotations

from dbdyno.model.claims.base import Claim, Part
from dbdyno.model.claims.bench import Arm, Bench
from dbdyno.model.claims.n05 import MACHINE, SYNC, WORK

PLACES = {"small": ("log_flash", 512), "large": ("log_flash", 4096), "disk": ("log_sas", 4096)}


def measure(bench: Bench) -> list[Part]:
    """Mean log file sync at 1 session."""
    arms = [
        Arm(name, WORK, 1, {"storage.redo": place, "database.redo.block_bytes": str(block)})
        for name, (place, block) in PLACES.items()
    ]
    with bench.run(MACHINE, arms, transactions=2_000) as evidence:
        return [
            Part(
                quantity, evidence.ratio("avg(elapsed_ns)", "waits", upper, lower, SYNC), low, high
            )
            for quantity, upper, lower, low, high in (
                ("4 KB / 512 bytes on flash", "large", "small", 0.25, 0.40),
                ("flash / disk with 4 KB", "large", "disk", 1.0, 1.3),
            )
        ]


CLAIM = Claim(
    "N6",
    "Redo blocks of 4 KB cost 0.25 to 0.40 of those of 512 bytes on flash; then disk is level",
    "Harrison 2011 (E7): elapsed -70 %, flash then slightly slower than disk",
    measure,
)
