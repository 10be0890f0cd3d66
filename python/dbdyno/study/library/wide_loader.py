"""Study wide-loader: the best way to load rows into a wide table of Cassandra.

A join of customers, orders and lines becomes wide rows: a partition per customer, its segment as a static column, a row
per line. Each way writes the same rows into the study's own table. The table is emptied before, which is not timed, and
counted after: a way that loses a row ends the run.

    row       a statement a row, each waited for
    async     a statement a row, 100 at a time, by the driver's own execute_concurrent
    batch     rows of a partition in unlogged batches, 100 at a time: how `dbdyno move` writes
    direct    SSTables written here and streamed to the nodes (`dbdyno move --direct`)

Limits: one Python process; `direct` starts two JVMs each time, and their time is reported beside the others. The node
may be on the same machine, where client and node share the processors.
"""

from __future__ import annotations

from collections.abc import Mapping

from dbdyno.base.errors import PlanError
from dbdyno.bench.flows.tables import LEAST, MOST
from dbdyno.study.plan.factors import numbers, words
from dbdyno.study.plan.plan import Arm, Judge, Plan, Schedule, Script, Watch, Workload
from dbdyno.study.plan.study import Factor, Study, Variant

WAYS = {
    "batch": "rows of a partition in unlogged batches",
    "row": "a statement a row, each waited for",
    "async": "a statement a row, 100 at a time",
    "direct": "SSTables, streamed",
}
FACTORS = {"ways": ",".join(WAYS), "lines": "4000"}


def _nowhere(options: Mapping[str, str], quick: bool) -> Plan:
    del options, quick
    raise PlanError(
        "loads a Cassandra, and none is named",
        where="wide-loader",
        next_step="--target cassandra://host/keyspace; the study makes a table of its own there, and drops it",
    )


def _plan(options: Mapping[str, str], quick: bool, target: str) -> Plan:
    asked, sizes = words(options["ways"], "ways"), [int(size) for size in numbers(options["lines"], "lines")]
    for way in asked:
        if way not in WAYS:
            raise PlanError(f"{way!r} is no way of loading", where="--set ways", next_step=f"of {', '.join(WAYS)}")
    if any(not LEAST <= size <= MOST for size in sizes):
        raise PlanError(f"lines lie between {LEAST} and {MOST:,}", where="--set lines", next_step="for instance 4000")
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
        title="wide-loader",
        question=STUDY.question,
        study="wide-loader",
        dsn=target,
        arms=arms,
        workload=Workload(kind="load"),
        schedule=Schedule(blocks=3 if quick else 6, warmup_blocks=1, turn_transactions=1, settle_ns=0),
        watch=Watch(overhead_blocks=0),
        judge=Judge(headline="mean", threshold=0.05),
    )


STUDY = Study(
    name="wide-loader",
    question="Which way do rows get into a wide table: row by row, many at a time, in batches, or as SSTables?",
    workload="The same rows each time, into a table that was emptied: a partition a customer, a static column, some 40 "
    "rows a partition. Counted after each load.",
    targets="cassandra://host/keyspace, where a table may be made; direct needs Cassandra's jars and Java 17",
    source="Quest's connector and Cassandra's own bulk loading: a relational join folded into wide rows (T9)",
    found_there="Claimed, without figures: the direct path past the ordinary writes is the fastest.",
    factors=(
        Factor("ways", f"some of {','.join(WAYS)}; the first is the base", ",".join(WAYS)),
        Factor("lines", "rows of a load; several are arms of their own", "4000", full="4000,200000"),
    ),
    make=_nowhere,
    variants={"cassandra": Variant(FACTORS, _plan)},
)
