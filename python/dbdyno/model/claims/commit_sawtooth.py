"""N7: commit time as a function of redo size is a sawtooth, steeper on flash."""

from __future__ import annotations

from dbdyno.model.claims.base import MECHANISM, Claim, ClaimQuantity
from dbdyno.model.claims.bench import Arm, Bench, Evidence
from dbdyno.model.claims.redo_on_flash import MACHINE

KB = 1_024
SIZES_KB = (64, 256, 512, 960, 1_024, 1_408, 1_984, 2_048)
WORK = {"kind": "commit-loop", "redo_bytes": ",".join(f"{size}KiB" for size in SIZES_KB)}


def mean_us(evidence: Evidence, arm: str, size_kb: int) -> list[float]:
    """Return, per replication, the mean commit time [us] of transactions of about this redo size."""
    near = f"abs(redo_bytes - {size_kb * KB}) < {16 * KB}"
    return evidence.arm_values("avg(elapsed_ns) / 1e3", "calls", arm, f"kind = 'commit' and {near}")


def measure(bench: Bench) -> list[ClaimQuantity]:
    """Measure mean commit times of 1 session at selected redo sizes, on disk and on flash, with 4 KB redo blocks."""
    arms = [
        Arm(name, WORK, 1, {"storage.redo": f"log_{name}", "database.redo.block_bytes": "4096"})
        for name in ("sas", "flash")
    ]
    with bench.run(MACHINE, arms, transactions=400, warmup=20) as evidence:
        at = {(name, size): mean_us(evidence, name, size) for name in ("sas", "flash") for size in SIZES_KB}

    def ratio(upper: int, lower: int) -> list[float]:
        return [a / b for a, b in zip(at["sas", upper], at["sas", lower], strict=True)]

    slopes = [
        (f2 - f1) / (d2 - d1)
        for f2, f1, d2, d1 in zip(at["flash", 960], at["flash", 256], at["sas", 960], at["sas", 256], strict=True)
    ]
    return [
        ClaimQuantity("960 KB / 256 KB, disk", ratio(960, 256), low=1.2),
        ClaimQuantity("1,408 KB / 960 KB, disk", ratio(1_408, 960), high=0.95),
        ClaimQuantity("1,984 KB / 1,408 KB, disk", ratio(1_984, 1_408), low=1.05),
        ClaimQuantity("1,984 KB / 960 KB, disk", ratio(1_984, 960), 0.8, 1.25),
        ClaimQuantity("slope of flash / slope of disk", slopes, low=1.1),
    ]


CLAIM = Claim(
    "N7",
    "Commit time rises with redo up to 1 MB, falls, and rises again; on flash more steeply",
    "Harrison 2011 (E5, E8)",
    MECHANISM,
    measure,
    (
        "The log writer writes without a commit once 1 MB is filled, so a commit never waits for much more than that. "
        "The curve does not drop vertically: a commit just after the trigger waits for the write in progress.",
    ),
)
