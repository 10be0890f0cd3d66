"""Study wide-loader: the best method to load rows into a wide table of Cassandra.

A join of customers, orders and lines becomes wide rows: a partition per customer, its segment as a static column, a row
per line. Each method writes the same rows into the study's own table. The table is emptied before each load, which is
not timed, and its rows are counted afterwards: if a method loses a row, the run ends.

    row       one statement per row, waiting for each
    async     one statement per row, 100 at a time, by the driver's own execute_concurrent
    batch     rows of a partition in unlogged batches, 100 at a time: how `dbdyno move` writes
    direct    SSTables written locally and streamed to the nodes (`dbdyno move --direct`)

Without a target it starts a Cassandra on this host, if the jars are installed.

Limits: one Python process; `direct` starts two JVMs each time, and the time for these starts is reported separately. If
the node is on the same machine, client and node share the processors.
"""

from __future__ import annotations

from collections.abc import Mapping

from dbdyno.base.errors import PlanError
from dbdyno.bench.cassandra.bench import EMBEDDED
from dbdyno.bench.flows.tables import LEAST, MOST
from dbdyno.study.plan.factors import numbers, option_values
from dbdyno.study.plan.plan import Arm, Judge, Plan, Schedule, Script, Watch, Workload
from dbdyno.study.plan.study import Factor, Study, Variant

WAYS = {
    "batch": "rows of a partition in unlogged batches",
    "row": "one statement per row, waiting for each",
    "async": "one statement per row, 100 at a time",
    "direct": "SSTables, written locally and streamed",
}
FACTORS = {"ways": ",".join(WAYS), "lines": "4000"}


def _plan(options: Mapping[str, str], quick: bool, target: str) -> Plan:
    asked, sizes = option_values(options["ways"], "ways"), [int(size) for size in numbers(options["lines"], "lines")]
    for way in asked:
        if way not in WAYS:
            raise PlanError(
                f"{way!r} is not a loading method", where="--set ways", next_step=f"use one of {', '.join(WAYS)}"
            )
    if any(not LEAST <= size <= MOST for size in sizes):
        raise PlanError(
            f"lines must be between {LEAST} and {MOST:,}", where="--set lines", next_step="write a number such as 4000"
        )
    arms = []
    for size in sizes:
        more = f", {size:,} lines" if len(sizes) > 1 else ""
        for way in asked:
            arms.append(
                Arm(
                    way + more,
                    WAYS[way],
                    scripts=[Script(way, way)],
                    parameters={"engine": "cassandra", "lines": size},
                    against=asked[0] + more,
                    levels={"way": way, "lines": str(size)},
                )
            )
    return Plan(
        **STUDY.heading,
        dsn=target,
        arms=arms,
        workload=Workload(kind="load"),
        schedule=Schedule(blocks=3 if quick else 6, warmup_blocks=1, turn_transactions=1, settle_ns=0),
        watch=Watch(overhead_blocks=0),
        judge=Judge(headline="mean", threshold=0.05),
    )


STUDY = Study(
    name="wide-loader",
    question="Which is the best way to load a wide table: row by row, many at a time, in batches, or as SSTables?",
    workload="The same rows each time, into an empty table: one partition per customer with a static column and some "
    "40 rows. The rows are counted after each load.",
    targets="cassandra: a node is started on this host (make setup-wide installs Cassandra's jars); or "
    "cassandra://host/keyspace, where the study creates and drops a table; direct needs the jars and "
    "Java 17, and --quick leaves it out: it starts two JVMs each time",
    source="Quest's connector and Cassandra's own bulk loading: a relational join folded into wide rows (T9)",
    found_there="Claimed, without figures: the direct path that bypasses ordinary writes is the fastest.",
    factors=(
        Factor("ways", f"some of {','.join(WAYS)}; the first is the base", ",".join(WAYS), quick="batch,row,async"),
        Factor("lines", "rows per load; each number is an arm", "4000", full="4000,200000", quick="2000"),
    ),
    make=lambda options, quick: _plan(options, quick, EMBEDDED),
    target=EMBEDDED,
    variants={"cassandra": Variant(FACTORS, _plan)},
)
