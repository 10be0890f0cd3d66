"""N15: shares of the disks' I/O that I/O resource management gives to two databases."""

from __future__ import annotations

from dbdyno.model.claims.base import MECHANISM, Claim, ClaimQuantity
from dbdyno.model.claims.bench import Arm, Bench

MACHINE = "exadata-x2-shared"
LOOKUPS = {"kind": "key-lookup", "keys": 4_000_000_000}
# Scaled down from the 36 disks of the rack: 9 disks (3 per cell) are kept busy all the time by the same load.
DISKS = {"cells.disks": "3"}
MANY, FEW = 200, 2
TRANSACTIONS = 40

# The work of the disks for each database while all sessions of both were active: from the end of the warm-up to the
# end of the first session, that is from the first reading to the second.
_WORKED = """
create view done as with reading as (
  select arm, block, object, metric, value, row_number() over (
    partition by arm, block, source, object, metric order by at_ns) as number
  from metrics where object_type = 'IORM_DATABASE' and object in ('ORCL', 'TEST')
    and metric in ('DB_IO_RQ_SM', 'DB_IO_WT_SM'))
select arm, block, object, metric,
  sum(case number when 1 then -value when 2 then value else 0 end) as value
from reading group by all
"""


def _arm(name: str, sessions: int, **settings: str) -> Arm:
    both = {"TEST.workload.sessions": str(sessions), **DISKS, **settings}
    return Arm(name, LOOKUPS, sessions, both)


def measure(bench: Bench) -> list[ClaimQuantity]:
    """Measure ORCL's share of the disk reads, with equal loads of both databases."""
    arms = [
        _arm("shares", MANY),
        _arm("none", MANY, **{"cells.iorm.active": "false"}),
        _arm("light", FEW),
    ]
    with bench.run(MACHINE, arms, transactions=TRANSACTIONS, warmup=10) as evidence:
        evidence.connection.execute(_WORKED)

        def share(arm: str) -> list[float]:
            value = "sum(value) filter (object = 'ORCL') / sum(value)"
            return evidence.arm_values(value, "done", arm, "metric = 'DB_IO_RQ_SM'")

        def waited(name: str) -> str:
            return (
                f"(sum(value) filter (object = '{name}' and metric = 'DB_IO_WT_SM')"
                f" / sum(value) filter (object = '{name}' and metric = 'DB_IO_RQ_SM'))"
            )

        wait = evidence.arm_values(f"{waited('TEST')} / {waited('ORCL')}", "done", "shares")
        return [
            ClaimQuantity("share of ORCL under contention", share("shares"), 0.69, 0.73),
            ClaimQuantity("queue time of a read, TEST / ORCL", wait, low=1.5),
            ClaimQuantity("share of ORCL, 2 sessions each", share("light"), 0.45, 0.55),
            ClaimQuantity("for comparison, under contention without a plan", share("none")),
        ]


CLAIM = Claim(
    "N15",
    "IORM shares 10 : 4 give 71 : 29 under contention",
    "Expert Oracle Exadata, ch. 7",
    MECHANISM,
    measure,
    (
        "Two databases with a server each read rows by key with 200 sessions each; the rack is scaled down to 3 disks "
        "per cell, so that requests of both wait at every disk. 10 / 14 is 0.714; if one queue is empty, "
        "its turn goes to the other.",
        "Shares only matter when requests queue: with 2 sessions each the plan changes nothing.",
        "The mechanism itself distributes turns as 10 to 4. The claim shows that this ratio reaches the databases "
        "through caches, mirrors and disks. The source states no load.",
    ),
)
