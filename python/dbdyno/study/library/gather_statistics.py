"""Study gather-statistics: effect of sample size and degree of parallelism on the time to gather statistics.

ANALYZE samples 300 rows for each unit of the statistics target, so the target sets the sample. The degree is the number
of sessions that analyze tables at once, each table by one of them, as `vacuumdb --analyze-only --jobs` does. The
headline is tables per second, so that degree and sample size are measured in the same unit.

On MariaDB (`--target mariadb`) ANALYZE TABLE gathers two kinds of statistics, and `--set statistics=` selects one:
`columns` (PERSISTENT FOR ALL; the sample is a percentage of the rows, `analyze_sample_percentage`), or `indexes`
(InnoDB's statistics from sampled pages of each index, `innodb_stats_persistent_sample_pages`, a setting of the whole
server).

Limits: the tables are alike and in memory. PostgreSQL does not split the ANALYZE of one table, so one large table gains
nothing from the degree. vacuumdb itself is not run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dbdyno.base.errors import PlanError
from dbdyno.study.library.data import BOTH_ENGINES, WorkloadSetup, keyed_table, mariadb_table
from dbdyno.study.plan.factors import Level, combine_levels, concurrency, curve_levels, numbers, one_number
from dbdyno.study.plan.plan import Judge, Plan, Schedule, Script, Watch, Workload
from dbdyno.study.plan.study import Factor, Study, Variant
from dbdyno.study.plan.targets import plan_on_target

NAME = "dbdyno_gather_"


KINDS = {
    "columns": ("analyze_sample_percentage", f"analyze table {NAME}:client_id persistent for all;\n"),
    "indexes": ("innodb_stats_persistent_sample_pages", f"analyze table {NAME}:client_id;\n"),
}
"""Kinds of statistics in MariaDB: the setting that controls their sample, and the statement that gathers them."""
MARIADB = {"statistics": "columns", "sample": "1,10,100", "degree": "1,2,4", "rows": "10000"}


def _plan(options: Mapping[str, str], quick: bool) -> Plan:
    # A table's name cannot be a parameter: only the session's number is put into the text.
    return _make_plan(options, quick, keyed_table, "default_statistics_target", f"analyze {NAME}:client_id;\n")


def _on_mariadb(options: Mapping[str, str], quick: bool, target: str) -> Plan:
    kind = options["statistics"]
    if kind not in KINDS:
        raise PlanError(
            f"{kind!r} is not one of the kinds {' and '.join(KINDS)}",
            where="--set statistics",
            next_step="name one or both of them",
        )
    return plan_on_target(_make_plan(options, quick, mariadb_table, *KINDS[kind]), target)


def _make_plan(
    options: Mapping[str, str], quick: bool, table: Callable[[int, str], WorkloadSetup], setting: str, script: str
) -> Plan:
    rows, degrees = one_number(options["rows"], "rows"), numbers(options["degree"], "degree")
    made = [table(rows, f"{NAME}{number}") for number in range(max(degrees))]
    samples = [Level(str(n), {setting: str(n)}) for n in numbers(options["sample"], "sample")]
    return Plan(
        **STUDY.heading,
        kind="sweep",
        factors=["sample", "degree"],
        arms=combine_levels(curve_levels("sample", samples), concurrency("degree", options["degree"])),
        workload=Workload(
            scripts=[Script("analyze", script)],
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
    question="How do sample size and degree of parallelism change the time to gather statistics?",
    workload="Sessions analyze tables, each one of its own, over and over, with a statistics target from 10 to 100 "
    "(300 rows are sampled for each unit of it). The headline is tables a second.",
    targets=BOTH_ENGINES,
    source="Guy Harrison: GATHER_SCHEMA_STATS by degree of parallelism and sample size (E16)",
    found_there="A smaller sample and a higher degree both cut the time; parallelism makes a large sample affordable.",
    factors=(
        Factor("sample", "statistics targets, to 10000", "10,30,100", quick="10,100", full="10,100,1000"),
        Factor("degree", "sessions at once, each with its own table", "1,2,4", quick="1,2"),
        Factor("rows", "rows of each table", "50000", full="1000000", quick="5000"),
    ),
    make=_plan,
    variants={"mariadb": Variant(MARIADB, _on_mariadb)},
)
