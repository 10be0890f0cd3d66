"""N3: how often the flash copy of a redo write is first."""

from __future__ import annotations

from dbdyno.model.claims.base import Claim, Part
from dbdyno.model.claims.bench import Arm, Bench, Evidence
from dbdyno.model.claims.n02 import MACHINE, ONE_ROW, SESSIONS

# Changes all over a table far larger than the buffers: the database writer keeps every disk busy.
EVERYWHERE = {"kind": "update-loop", "blocks": 1_000_000}
BUSY_SESSIONS = 60


def share(evidence: Evidence, arm: str) -> list[float]:
    """Per replication, races that flash won over all races, from the cells' counters."""
    return evidence.values(
        "with counters as (select block, metric, object, source, max(value) - min(value) as n"  # noqa: S608
        f" from metrics where arm = '{arm}' and metric in ('FL_FLASH_FIRST', 'FL_DISK_FIRST')"
        " group by all)"
        " select block, sum(n) filter (metric = 'FL_FLASH_FIRST') / sum(n) from counters"
        " group by block"
    )


def measure(bench: Bench) -> list[Part]:
    """The share with quiet and with busy disks."""
    arms = [
        Arm("quiet", ONE_ROW, SESSIONS),
        Arm("busy", EVERYWHERE, BUSY_SESSIONS),
    ]
    with bench.run(MACHINE, arms, transactions=400) as evidence:
        quiet, busy = share(evidence, "quiet"), share(evidence, "busy")
    rise = [b - q for b, q in zip(busy, quiet, strict=True)]
    return [
        Part("flash first, quiet disks", quiet, 0.02, 0.05),
        Part("busy less quiet", rise, low=0.001),
    ]


CLAIM = Claim(
    "N3",
    "Flash wins 2 to 5 % of races while disks are quiet, more when they are busy",
    "Harrison 2012 (E9) 3.48 %, a second site 3.75 %, cells of a third 2.1 to 4.0 %; 18 % on a busy"
    " cell",
    measure,
    (
        "The source prints 3.8 %; its own formula gives 3.48 %.",
        "Why it does not hold: the disk's copy is safe in the controller's memory after a constant"
        " 67 us, flash takes 84 us and more, so flash wins only where that memory is full. Real"
        " controllers are slow now and then for reasons that no source gives.",
        "Tried: destaging by the database writer with 60 sessions (the memory of a disk does not"
        " fill), and a controller without a battery, under which flash wins nearly always. A spread"
        " of the controller's time could be fitted to this share; then it would show nothing.",
    ),
)
