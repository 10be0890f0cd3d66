"""N14: the slower of two members of a log group determines the time of a log write."""

from __future__ import annotations

from dbdyno.model.claims.base import MECHANISM, Claim, ClaimQuantity
from dbdyno.model.claims.bench import Arm, Bench
from dbdyno.model.claims.flash_log_cost import WRITE
from dbdyno.model.claims.redo_on_flash import MACHINE, WORK

PLACES = {"disk": "log_sas", "flash": "log_flash", "both": "log_sas,log_flash"}


def measure(bench: Bench) -> list[ClaimQuantity]:
    """Measure the mean log file parallel write time with a member on disk, on flash, and on both."""
    arms = [Arm(name, WORK, 1, {"storage.redo": place}) for name, place in PLACES.items()]
    with bench.run(MACHINE, arms, transactions=1_000) as evidence:
        return [
            ClaimQuantity(
                "both / flash, the slower",
                evidence.ratio("avg(elapsed_ns)", "waits", "both", "flash", WRITE),
                0.98,
                1.05,
            ),
            ClaimQuantity(
                "both / disk, the faster", evidence.ratio("avg(elapsed_ns)", "waits", "both", "disk", WRITE), low=1.5
            ),
        ]


CLAIM = Claim(
    "N14",
    "A mirrored log write takes as long as its slowest copy",
    "Oracle Database Reference: log file parallel write ends with the last I/O",
    MECHANISM,
    measure,
)
