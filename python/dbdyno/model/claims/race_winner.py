"""N3: how often the flash copy of a redo write finishes first."""

from __future__ import annotations

from dbdyno.model.claims.base import LOAD_CHOSEN, Claim, Part
from dbdyno.model.claims.bench import Arm, Bench, Evidence
from dbdyno.model.claims.flash_log_cost import MACHINE, ONE_ROW, SESSIONS

# Updates of a table larger than the buffers. The controllers' memory is reduced so that the database writer fills it
# within seconds instead of minutes.
BUSY = {"kind": "update-loop", "blocks": 200_000, "skew": 0.8}
BUSY_SESSIONS = 40
BUSY_DISKS = {"cells.controller.capacity_kb": "16384", "database.buffers.buffers": "20000"}


def share(evidence: Evidence, arm: str) -> list[float]:
    """Return, per replication, the races won by flash as a share of all races, from the cells' counters."""
    return evidence.values(
        "with counters as (select block, metric, object, source, max(value) - min(value) as n"  # noqa: S608
        f" from metrics where arm = '{arm}' and metric in ('FL_FLASH_FIRST', 'FL_DISK_FIRST')"
        " group by all)"
        " select block, sum(n) filter (metric = 'FL_FLASH_FIRST') / sum(n) from counters"
        " group by block"
    )


def measure(bench: Bench) -> list[Part]:
    """Measure the share of races won by flash with quiet and with busy disks."""
    arms = [
        Arm("quiet", ONE_ROW, SESSIONS),
        Arm("busy", BUSY, BUSY_SESSIONS, BUSY_DISKS),
    ]
    with bench.run(MACHINE, arms, transactions=600, warmup=300) as evidence:
        quiet, busy = share(evidence, "quiet"), share(evidence, "busy")
    rise = [b - q for b, q in zip(busy, quiet, strict=True)]
    return [
        Part("flash first, quiet disks", quiet, 0.02, 0.05),
        Part("busy less quiet", rise, low=0.001),
    ]


CLAIM = Claim(
    "N3",
    "Flash wins 2 to 5 % of races while disks are quiet, more when they are busy",
    "Harrison 2012 (E9) 3.48 %, a second site 3.75 %, cells of a third 2.1 to 4.0 %; 18 % on a busy cell",
    LOAD_CHOSEN,
    measure,
    (
        "The source prints 3.8 %; its own formula gives 3.48 %.",
        "With busy disks the share comes out: the database writer fills a controller's memory, redo"
        " waits for room there, and flash is first.",
        "With quiet disks it does not: the disk's copy is safe in the controller's memory after a"
        " constant time that is below any of flash's, so flash never wins. Real controllers are"
        " slow now and then for reasons that no source gives.",
        "Tried: longer transactions (no change), and a controller without battery, under which"
        " flash wins every race. A spread of the controller's time could be fitted to 3.5 %; then"
        " this line would show nothing.",
    ),
)
