"""Study batch-split: how much faster a batch is if it is split over several processes.

The batch is a table of rows. Each of N sessions processes every Nth chunk of it, one transaction of 200 rows at a time,
as a payroll run processes its employees: read a row, compute, write it back. The chunks of two sessions never share a
row, so they are limited only by the server and the machine: cores, the log, latches. A batch of R rows takes R / 200
transactions, whichever session runs them: the elapsed time is that number divided by the throughput.

Limits: one table; the chunks' index entries and pages are next to each other, as in a real batch.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from dbdyno.base.errors import PlanError
from dbdyno.study.library.data import TABLE, keyed_table
from dbdyno.study.plan.factors import Level, combine_levels, curve_levels, numbers, one_number
from dbdyno.study.plan.plan import Judge, Plan, Schedule, Script, Watch, Workload
from dbdyno.study.plan.study import Factor, Study

CHUNK = 200
PAYROLL = f"""\\set turn :turn + 1
\\set first mod(:client_id + :processes * :turn, :chunks) * {CHUNK}
begin;
update {TABLE} set amount = 1 + mod((amount * 7919 + length(md5(filler || amount::text)))::int, 100000)
  where id > :first and id <= :first + {CHUNK};
commit;
"""  # noqa: S608


def _plan(options: Mapping[str, str], quick: bool) -> Plan:
    rows = one_number(options["rows"], "rows")
    processes = numbers(options["processes"], "processes")
    return Plan(
        **STUDY.heading,
        kind="sweep",
        factors=["processes"],
        arms=combine_levels(
            curve_levels("processes", [Level(str(n), sessions=n, variables={"processes": str(n)}) for n in processes])
        ),
        workload=Workload(
            scripts=[Script(f"{CHUNK} rows", PAYROLL)],
            # Every number of processes divides the number of chunks, so that two never meet at the table's end.
            variables={"turn": "-1", "chunks": str(_chunks(rows, processes))},
            **keyed_table(rows),
        ),
        schedule=Schedule(blocks=6 if quick else 15, warmup_blocks=1, turn_ns=300_000_000 if quick else None),
        watch=Watch(overhead_blocks=0),
        judge=Judge(headline="throughput", threshold=0.05, equal_work=True),
    )


def _chunks(rows: int, processes: list[int]) -> int:
    common = math.lcm(*processes)
    chunks = rows // CHUNK // common * common
    if chunks == 0:
        raise PlanError(
            f"{rows} rows are {rows // CHUNK} chunks of {CHUNK}, too few to be divided evenly among "
            f"each number of processes",
            where="--set rows",
            next_step=f"use at least {common * CHUNK:,} rows",
        )
    return chunks


STUDY = Study(
    name="batch-split",
    question="How much sooner does a batch finish if several processes share it?",
    workload=f"Sessions share a batch of rows in chunks of {CHUNK}, each chunk one transaction that computes and "
    "updates its rows; no two share a row. The fitted scalability law says what limits it.",
    targets="PostgreSQL: embedded, or one named by --target",
    source="Glenn Fawcett: a payroll batch on a processor with many threads (E17)",
    found_there="31.53 minutes with 4 processes, 4.63 with 64: 6.8 times as fast with 16 times as many processes.",
    factors=(
        Factor("processes", "sessions that share the batch", "1,2,4,8,16", quick="1,2,4"),
        Factor("rows", "rows of the batch", "100000", full="1000000", quick="20000"),
    ),
    make=_plan,
)
