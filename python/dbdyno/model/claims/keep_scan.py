"""N10: the first and the second scan of a table after it is set to KEEP in the flash cache."""

from __future__ import annotations

from typing import NamedTuple

from dbdyno.model.claims.base import PART_CHOSEN, Claim, ClaimQuantity
from dbdyno.model.claims.bench import Arm, Bench, Evidence
from dbdyno.model.claims.map import Map

MACHINE = "exadata-x2"
# Larger than the cells' memory for lines on their way to flash, and read as fast as the source's scan before KEEP.
AHEAD = 16
SCAN = {"kind": "scan-jobs", "bytes": 2 << 30, "ahead": AHEAD, "cpu_us_per_io": 100.0}


def measure(bench: Bench) -> list[ClaimQuantity]:
    """Measure the waits of a scan of 2 GB: before KEEP is set, in the first scan afterwards, and in the second."""
    arms = [
        Arm("before", SCAN, 1),
        Arm("keep", SCAN, 1, {"storage.caching": "keep"}),
    ]
    with bench.run(MACHINE, arms, transactions=3, warmup=0) as evidence:
        first, second = Scan("keep", 1), Scan("keep", 2)
        before = Scan("before", 2)
        return [
            ClaimQuantity("first scan with KEEP / before", ratio(evidence, first, before), 3, 5),
            ClaimQuantity("second scan with KEEP / before", ratio(evidence, second, before), high=0.95),
            ClaimQuantity(
                "for comparison, time of a wait, first / before", ratio(evidence, first, before, "avg(waited_ns)")
            ),
            ClaimQuantity(
                "for comparison, number of waits, first / before", ratio(evidence, first, before, "count(*)")
            ),
        ]


class Scan(NamedTuple):
    """One of the scans of an arm; `number` counts from 1."""

    arm: str
    number: int


def ratio(evidence: Evidence, upper: Scan, lower: Scan, value: str = "sum(waited_ns)") -> list[float]:
    """Return, per replication, an aggregate of the waits of scan `upper` divided by that of scan `lower`."""
    of = (f"{value} filter (arm = '{scan.arm}' and scan = {scan.number})" for scan in (upper, lower))
    return evidence.values(
        "with numbered as (select arm, block, started_ns,"  # noqa: S608
        " started_ns + elapsed_ns as ended_ns, row_number() over (partition by arm, block"
        " order by started_ns) as scan from calls where kind = 'transaction'),"
        " scans as (select n.arm, n.block, scan, w.elapsed_ns as waited_ns"
        " from numbered n join waits w on w.arm = n.arm and w.block = n.block"
        " and w.object = 'session' and w.started_ns >= n.started_ns and w.started_ns < n.ended_ns)"
        f" select block, {' / '.join(of)} from scans group by block"
    )


def _ahead(curve: str, ahead: float) -> list[Arm]:
    """Return the arms with and without KEEP, each reading `ahead` I/Os ahead.

    `curve` begins with the number of lines that are cached at once.
    """
    scan, populates = {**SCAN, "ahead": int(ahead)}, curve.partition(" ")[0]
    settings = {"cells.flash_cache.populates": populates}
    return [Arm("", scan, 1, {**settings, "storage.caching": "keep"}), Arm("", scan, 1, settings)]


MAP = Map(
    quantity="waits of the first scan, KEEP / before",
    parameter="I/Os of 1 MB at once",
    levels=(1, 2, 4, 8, 12, 16, 24, 32),
    curves=("1 line at once into the cache", "2 lines at once into the cache", "8 lines at once into the cache"),
    machine=MACHINE,
    arms=_ahead,
    value=lambda evidence, arms: ratio(evidence, Scan(arms[0], 1), Scan(arms[1], 1)),
    transactions=1,
    warmup=0,
    band=(3, 5),
    published=(("the source", 33.37 / 7.60),),
)

CLAIM = Claim(
    "N10",
    "The first scan after KEEP waits 3 to 5 times as long, once; the next is faster than before",
    "Harrison 2012 (E12): 9,322 waits of 7.60 s, then 14,904 of 33.37 s",
    PART_CHOSEN,
    measure,
    (
        "The source speaks of a penalty of 200 to 300 %; its figures are +175 % per wait and +339 % in total, with 1.6 "
        "times as many waits.",
        "A cell brings lines into its flash cache one at a time: writing a line takes 0.11 ms for command, link and "
        "firmware, so a cell accepts 76 MB/s. The single stream is assumed; its speed is a result. When the memory for "
        "lines in transit is full, reads of a KEEP segment wait for it. If a wait of the source is 1 MB, its first "
        "scan filled 93 MB/s per cell.",
        "The cost of a first scan depends on how fast it could run. With 2 I/Os at once it reads 205 MB/s and loses "
        "nothing. With 16 it could read 900 MB/s, with 32 1,740 MB/s, and then it loses a factor of 7. The source's "
        "scan read 1,200 MB/s if a "
        "wait is 1 MB. `dbdyno model map N10` draws that. The longest wait, 0.14 to 1.21 s, is not reproduced.",
        "Tried before, without a limit on the lines written at once: 2, 16 and 64 I/Os of the scan, and 64 jobs. The "
        "first scan then cost nothing. Fewer flash modules also make the second scan slow.",
    ),
)
