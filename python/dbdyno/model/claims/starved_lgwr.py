"""N13: a log writer that does not get enough CPU."""

from __future__ import annotations

from dbdyno.model.claims.base import PART_CHOSEN, Claim, ClaimQuantity
from dbdyno.model.claims.bench import Arm, Bench
from dbdyno.model.claims.flash_log_cost import SYNC, WRITE

MACHINE = "sas-and-flash"
WORK = {"kind": "commit-loop", "redo_bytes": "512", "cpu_us": 500.0}


def measure(bench: Bench) -> list[ClaimQuantity]:
    """Measure the mean log file sync time relative to log file parallel write, with idle cores and without."""
    arms = [
        Arm("spare", {**WORK, "think_ms": 5.0}, 10, {"database.cores": "24"}),
        Arm("starved", WORK, 40, {"database.cores": "2"}),
    ]
    over = f"avg(elapsed_ns) filter ({SYNC}) / avg(elapsed_ns) filter ({WRITE})"
    with bench.run(MACHINE, arms, transactions=300) as evidence:
        return [
            ClaimQuantity("sync / write, cores to spare", evidence.arm_values(over, "waits", "spare"), 1, 2),
            ClaimQuantity("sync / write, 40 sessions on 2 cores", evidence.arm_values(over, "waits", "starved"), low=4),
        ]


CLAIM = Claim(
    "N13",
    "Starved of CPU, log file sync is far above twice the log file parallel write",
    "Closson 2007: 16 ms against 2 ms on the same storage",
    PART_CHOSEN,
    measure,
    (
        "The scheduler decides: under round robin (database.scheduler.policy) the log writer waits for a core like the "
        "sessions, its wait grows with theirs, and the ratio was 2.0.",
        "Under the fair scheduler, which is the default, most of the time goes to sessions that were posted and wait "
        "for a core; the log writer itself is hardly starved. The fair"
        " scheduler was written after round robin had failed this claim.",
    ),
)
