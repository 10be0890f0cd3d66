"""N2: the cost of the flash log while disks are quiet."""

from __future__ import annotations

from collections.abc import Sequence

from dbdyno.model.claims.base import FITTED, Claim, ClaimQuantity
from dbdyno.model.claims.bench import Arm, Bench

MACHINE = "exadata-x2"
SYNC = "event = 'log file sync'"
# Both samples of the source are cut off there.
CUT = f"{SYNC} and elapsed_ns < 4e6"
WRITE = "event = 'log file parallel write'"
ONE_ROW = {"kind": "commit-loop", "redo_bytes": "512"}
SESSIONS = 20
TRANSACTIONS = 1_000


def race_arms() -> Sequence[Arm]:
    """Return the arms: 20 sessions that each change a row and commit, without and with a flash log."""
    return [
        Arm(name, ONE_ROW, SESSIONS, {"cells.flash_log.enabled": value})
        for name, value in (("off", "false"), ("on", "true"))
    ]


def measure(bench: Bench) -> list[ClaimQuantity]:
    """Measure the mean and median log file sync time with the flash log, relative to those without it."""
    with bench.run(MACHINE, race_arms(), transactions=TRANSACTIONS) as evidence:
        return [
            ClaimQuantity("mean, on / off", evidence.ratio("avg(elapsed_ns)", "waits", "on", "off", CUT), 1.02, 1.08),
            ClaimQuantity(
                "median, on / off", evidence.ratio("median(elapsed_ns)", "waits", "on", "off", CUT), 1.02, 1.08
            ),
        ]


CLAIM = Claim(
    "N2",
    "With quiet disks a flash log costs 2 to 8 % of a commit",
    "Harrison 2012 (E9): median 500 / 481 us, mean 542.4 / 508.7 us, 4 million commits each",
    FITTED,
    measure,
    (
        "A race of independent writes can only be faster than either write; its cost is the cell's work to start it. "
        "This dispatch cost (10 us) is fitted to the 19 us by which the source's medians differ, so the median shows "
        "nothing. The mean is shifted by the same constant, so its agreement is weak evidence. With 20 us "
        "the cost was 8 %.",
        "At first a sync took half of the source's time. Another measurement then gave the cell's 180 us per request, "
        "on which the ratio depends.",
        "Both samples of the source are cut at 4 ms, which hides the tail that the race should remove. Ours are cut as "
        "well: a controller flush occasionally delays a commit by tens of milliseconds.",
    ),
)
