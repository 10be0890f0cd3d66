"""Study gather-statistics: how do the sample and the degree change the time that statistics take?

ANALYZE samples 300 rows for each unit of the statistics target, so the target is the sample. The degree is how many
sessions analyze tables at once, each table by one of them: what `vacuumdb --analyze-only --jobs` does. The headline is
tables a second, so that degree and sample answer in one measure.

Limits: the tables are alike and in memory; ANALYZE of one table is not split by PostgreSQL, so one large table gains
nothing by the degree. vacuumdb itself is not run.
"""

from __future__ import annotations

from collections.abc import Mapping

from dbdyno.study.library.data import keyed_table
from dbdyno.study.plan.factors import Level, along, at_once, combined, numbers, one_number
from dbdyno.study.plan.plan import Judge, Plan, Schedule, Script, Watch, Workload
from dbdyno.study.plan.study import Factor, Study

NAME = "dbdyno_gather_"


def _plan(options: Mapping[str, str], quick: bool) -> Plan:
    rows, degrees = one_number(options["rows"], "rows"), numbers(options["degree"], "degree")
    made = [keyed_table(rows, f"{NAME}{number}") for number in range(max(degrees))]
    samples = [Level(str(n), {"default_statistics_target": str(n)}) for n in numbers(options["sample"], "sample")]
    return Plan(
        title="gather-statistics",
        question=STUDY.question,
        study="gather-statistics",
        kind="sweep",
        factors=["sample", "degree"],
        arms=combined(along("sample", samples), at_once("degree", options["degree"])),
        workload=Workload(
            # A table's name is no parameter: the session's own number is put into the text, and nothing else.
            scripts=[Script("analyze", f"analyze {NAME}:client_id;\n")],
            protocol="simple",
            setup=[sql for one in made for sql in one["setup"]],
            teardown=[sql for one in made for sql in one["teardown"]],
        ),
        schedule=Schedule(blocks=6 if quick else 8, warmup_blocks=1, turn_ns=300_000_000 if quick else None),
        watch=Watch(overhead_blocks=0),
        judge=Judge(headline="throughput", threshold=0.05),
    )


STUDY = Study(
    name="gather-statistics",
    question="How do the sample and the degree change the time that statistics take?",
    workload="Sessions analyze tables, each one of its own, over and over, with a statistics target from 10 to 100 "
    "(300 rows are sampled for each unit of it). The headline is tables a second.",
    targets="PostgreSQL: embedded, or one named by --target",
    source="Guy Harrison: GATHER_SCHEMA_STATS by degree of parallelism and sample size (E16)",
    found_there="A smaller sample and a higher degree both cut the time; parallelism rescues a high sample.",
    factors=(
        Factor("sample", "statistics targets, to 10000", "10,30,100", quick="10,100", full="10,100,1000"),
        Factor("degree", "sessions at once, each with a table of its own", "1,2,4", quick="1,2"),
        Factor("rows", "rows of each table", "50000", full="1000000", quick="5000"),
    ),
    make=_plan,
)
