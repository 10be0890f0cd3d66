"""Study hit-ratio: whether the buffer cache's hit ratio is a measure of performance.

A mix of about fifty statements runs on eight tables of 500 to 400,000 rows, which together are larger than the cache.
The engine counts calls, time, blocks found in the cache and blocks read for each statement (pg_stat_statements). Across
the statements, the study computes how the mean time of a call is correlated with the hit ratio, and with other possible
explanations: blocks touched, blocks read, blocks sorted to disk, rows.

With `--set workload=watch` the only load is one idle session; the statements are those that other sessions run on the
engine during the study.

Limits: statements are treated as independent observations, although those of one application are not fully independent;
a "read" block may come from the operating system's cache; only statements that run in this database, and end while the
study runs, are seen.
"""

from __future__ import annotations

from collections.abc import Mapping

from dbdyno.base.errors import PlanError
from dbdyno.study.plan.plan import Arm, Judge, Plan, Schedule, Script, Watch, Workload
from dbdyno.study.plan.study import Factor, Study

ROWS = (500, 2_000, 8_000, 25_000, 50_000, 100_000, 200_000, 400_000)
_SLOW = 50_000
"""Number of rows of a table above which statements that read the whole table are rarer in the mix."""

_TEMPLATES: tuple[tuple[str, int, str], ...] = (
    ("key lookup", 20, "select amount from {table} where id = :at;"),
    ("short range", 20, "select sum(amount) from {table} where id between :at and :at + 20;"),
    (
        "long range",
        6,
        "select count(*), sum(amount), max(amount) from {table} where id between :at and :at + 5000;",
    ),
    ("update by key", 10, "update {table} set amount = amount + 1 where id = :at;"),
    ("grouping", 2, "select kind, avg(amount) from {table} group by kind;"),
    (
        "sort",
        1,
        "select max(place) from (select row_number() over (order by filler desc, amount) as place"
        " from {table} where id > :at - 30000 and id <= :at) s;",
    ),
)


_TABLE = """create table dbdyno.hit_{number} as
select i as id, i % 25 as kind, random() * 1000 as amount, repeat(md5(i::text), 3) as filler
from generate_series(1, {rows}) i"""


def _script(number: int, rows: int, name: str, weight: int, sql: str) -> Script:
    table = f"dbdyno.hit_{number}"
    rare = rows >= _SLOW and name in ("grouping", "sort")
    return Script(
        f"{name} on {rows} rows",
        f"\\set at random(1, {rows})\n{sql.format(table=table)}\n",
        1 if rare else weight * 4,
    )


def _table(number: int, rows: int) -> list[str]:
    return [
        _TABLE.format(number=number, rows=rows),
        f"create unique index on dbdyno.hit_{number} (id)",
        f"vacuum analyze dbdyno.hit_{number}",
    ]


def _workload(kind: str) -> Workload:
    if kind == "watch":
        return Workload([Script("idle", "select pg_sleep(0.1);\n")])
    if kind != "mix":
        raise PlanError(
            f"{kind!r} is not a workload of this study",
            where="--set workload",
            next_step="use mix for a load made by dbdyno, or watch for the statements that others run",
        )
    scripts = [_script(number, rows, *template) for number, rows in enumerate(ROWS) for template in _TEMPLATES]
    tables = [sql for number, rows in enumerate(ROWS) for sql in _table(number, rows)]
    return Workload(
        scripts,
        setup=["create schema dbdyno", *tables],
        teardown=["drop schema if exists dbdyno cascade"],
    )


def _plan(options: Mapping[str, str], quick: bool) -> Plan:
    try:
        sessions = int(options["sessions"])
    except ValueError as error:
        raise PlanError(
            f"{options['sessions']!r} is not a number",
            where="--set sessions",
            next_step="write for example --set sessions=8",
        ) from error
    watching = options["workload"] == "watch"
    arm = Arm("statements", settings={} if watching else {"work_mem": "256kB"})
    return Plan(
        **STUDY.heading,
        kind="correlation",
        arms=[arm],
        workload=_workload(options["workload"]),
        sessions=1 if watching else sessions,
        schedule=Schedule(
            blocks=6 if quick else 20,
            warmup_blocks=1,
            turn_ns=2_000_000_000 if quick else 3_000_000_000,
            settle_ns=0,
            switch="turns",
        ),
        watch=Watch(overhead_blocks=0, statements=True),
        judge=Judge(headline="mean"),
        embedded_settings={"shared_buffers": options["shared_buffers"]},
    )


STUDY = Study(
    name="hit-ratio",
    question="Is the hit ratio of the buffer cache a measure of performance?",
    workload="Forty-eight statements (key lookups, ranges, updates, groupings, sorts that spill) "
    "on eight tables of 500 to 400,000 rows, drawn at random; pg_stat_statements counts calls, "
    "time and blocks of each. Correlations are over statements.",
    targets="postgres with pg_stat_statements: embedded where the installed server has the "
    "extension, or --target postgresql://... (the extension loaded and created there)",
    source="Guy Harrison: the hit ratio and other statistics of statements against their elapsed "
    "time, with R's cor.test (E24)",
    found_there="No significant correlation between hit ratio and elapsed time; sorts correlated "
    "significantly (r = .33).",
    factors=(
        Factor("workload", "mix: a built-in load; watch: what others run at that time", "mix"),
        Factor("sessions", "concurrent sessions of the mix", "4"),
        Factor("shared_buffers", "the cache of an embedded engine", "32MB"),
    ),
    make=_plan,
)
