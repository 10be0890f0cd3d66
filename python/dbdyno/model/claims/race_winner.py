"""N3: how often the flash copy of a redo write finishes first."""

from __future__ import annotations

from dbdyno.model.claims.base import LOAD_CHOSEN, Claim, ClaimQuantity
from dbdyno.model.claims.bench import Arm, Bench, Evidence
from dbdyno.model.claims.flash_log_cost import MACHINE, SESSIONS
from dbdyno.model.claims.map import Map

# Each transaction updates one row and commits, on a table a little larger than the 10,000 buffers: disks are 4 % busy.
CPU_US = 600.0
QUIET = {"kind": "update-loop", "blocks": 12_000, "cpu_us": CPU_US}
# On six times as many blocks as buffers, with the workload's own CPU: disks are a third busy.
BUSY = {"kind": "update-loop", "blocks": 60_000}
BUSY_SESSIONS = 40


def share(evidence: Evidence, arm: str) -> list[float]:
    """Return, per replication, the races won by flash as a share of all races, from the cells' counters."""
    return evidence.values(
        "with counters as (select block, metric, object, source, max(value) - min(value) as n"  # noqa: S608
        f" from metrics where arm = '{arm}' and metric in ('FL_FLASH_FIRST', 'FL_DISK_FIRST')"
        " group by all)"
        " select block, sum(n) filter (metric = 'FL_FLASH_FIRST') / sum(n) from counters"
        " group by block"
    )


def measure(bench: Bench) -> list[ClaimQuantity]:
    """Measure the share of races won by flash with quiet and with busy disks."""
    arms = [Arm("quiet", QUIET, SESSIONS), Arm("busy", BUSY, BUSY_SESSIONS)]
    with bench.run(MACHINE, arms, transactions=4_000, warmup=1_000) as evidence:
        quiet, busy = share(evidence, "quiet"), share(evidence, "busy")
    rise = [b - q for b, q in zip(busy, quiet, strict=True)]
    return [
        ClaimQuantity("flash first, quiet disks", quiet, 0.02, 0.05),
        ClaimQuantity("busy less quiet", rise, low=0.001),
    ]


def _table(curve: str, blocks: float) -> list[Arm]:
    """Return the arm that updates a table of this many blocks.

    `curve` begins with the CPU time of an update [us].
    """
    cpu_us = float(curve.partition(" ")[0])
    return [Arm("", {"kind": "update-loop", "blocks": int(blocks), "cpu_us": cpu_us}, SESSIONS)]


MAP = Map(
    quantity="share of races won by flash",
    parameter="blocks of the table (10,000 buffers)",
    levels=(5_000, 10_000, 11_000, 12_000, 15_000, 20_000, 50_000, 200_000, 1_000_000),
    curves=("100 us of CPU", "600 us of CPU"),
    machine=MACHINE,
    arms=_table,
    value=lambda evidence, arms: share(evidence, arms[0]),
    transactions=3_000,
    warmup=1_000,
    band=(0.02, 0.05),
    published=(("first site", 0.0348), ("second site", 0.0375)),
)

CLAIM = Claim(
    "N3",
    "Flash wins 2 to 5 % of races while disks are quiet, more when they are busy",
    "Harrison 2012 (E9) 3.48 %, a second site 3.75 %, cells of a third 2.1 to 4.0 %; 18 % on a busy cell",
    LOAD_CHOSEN,
    measure,
    (
        "The source prints 3.8 %; its own formula gives 3.48 %.",
        "The disks' controller serves one command at a time. While it takes the database writer's blocks or sends"
        " its own memory to disk, a redo write waits there for the rest of a transfer or for earlier commands, so "
        "flash is first. So the share depends on how busy the controller is, not the disks.",
        "The source states neither table size nor CPU. Without data I/O flash wins 0.2 %, with a table of 1.5 times "
        "the buffers 5 %, with twice the buffers 7 %: `dbdyno model map N3` draws that. The load was chosen from this "
        "range. With it a log write carries 4.8 commits and a sync takes 0.45 ms, both as in the source, although "
        "neither was fitted.",
        "Tried before: a separate memory and a constant time for each disk (flash never wins), and a controller "
        "without a battery (flash always wins).",
    ),
)
