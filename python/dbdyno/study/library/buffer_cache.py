"""Study buffer-cache: whether memory is better used for the database's cache or for the file system's.

PostgreSQL reads through the file system's cache: a page that is not in shared_buffers is copied from there by a system
call. Separate servers run side by side, with shared_buffers from a part of the table to five times its size. The data
are in memory in any case; only the cache that holds them differs. System CPU and system calls per transaction are
reported. With `--set begin=hot,cold` turns also start hot or cold: for a cold turn the servers are restarted and the
data are dropped from the file system's cache. (By PostgreSQL's own rule, a scan of a table larger than a quarter of
shared_buffers does not stay there, which is why the largest size is so large.)

On MariaDB (`--target mariadb`) InnoDB's buffer pool reads past the file system's cache (`innodb_flush_method=O_DIRECT`,
its default since 10.6) or through it (`fsync`); there the question is the cost of a page that is not in the pool.

Limits: the machine's memory must hold the table twice; each cold turn takes a restart, a few seconds of a run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from dbdyno.study.library.data import TABLE, WorkloadSetup, keyed_table, lookup_of, mariadb_table, scan_of
from dbdyno.study.plan.factors import Level, choose_levels, combine_levels, curve_levels, one_number, option_values
from dbdyno.study.plan.plan import Arm, Judge, Plan, Schedule, Script, Server, Watch, Workload
from dbdyno.study.plan.study import Factor, Study, Variant
from dbdyno.study.plan.targets import plan_on_target

LOADS = {
    "scan": Level("scan", scripts=[Script("scan", scan_of(TABLE))]),
    "lookups": Level("lookups", scripts=[Script("100 lookups", lookup_of(TABLE) * 100)]),
}
BEGINNINGS = {"hot": Level("hot"), "cold": Level("cold", cold=True)}
PLAIN = {"max_parallel_workers_per_gather": "0", "synchronize_seqscans": "off", "autovacuum": "off"}
"""Settings with which one process scans, always from the start of the table, and autovacuum is off."""


def _server(arm: Arm) -> Server:
    """Return the arm's own server; cold turns restart their server, so hot turns have a different one."""
    begin, size = arm.levels["begin"], arm.levels["shared_buffers"]
    return Server(settings={"shared_buffers": size, "cluster_name": begin, **PLAIN})


MARIADB = {
    "flush": "O_DIRECT,fsync",
    "pool": "8M,256M",
    "load": "scan,lookups",
    "begin": "hot",
    "rows": "400000",
}
NUMBERS = {"hot": "1", "cold": "2"}
"""Server numbers that give cold turns separate servers, so that their restarts do not affect hot turns."""


def _mariadb_server(arm: Arm) -> Server:
    begin, size, method = (arm.levels[name] for name in ("begin", "pool", "flush"))
    own = {"innodb_buffer_pool_size": size, "innodb_flush_method": method, "server_id": NUMBERS[begin]}
    return Server(settings=own)


def _plan(options: Mapping[str, str], quick: bool) -> Plan:
    return _make_plan(options, quick, ["shared_buffers"], _server, keyed_table)


def _on_mariadb(options: Mapping[str, str], quick: bool, target: str) -> Plan:
    factors = ["pool", "flush"]
    return plan_on_target(_make_plan(options, quick, factors, _mariadb_server, mariadb_table), target)


def _make_plan(
    options: Mapping[str, str],
    quick: bool,
    memory: Sequence[str],
    server: Callable[[Arm], Server],
    table: Callable[[int], WorkloadSetup],
) -> Plan:
    """Return the plan whose factors are the load, the start (hot or cold), and the server's memory."""
    rows = one_number(options["rows"], "rows")
    beginnings = choose_levels(BEGINNINGS, options["begin"], "begin")
    cold = any(level.cold for level in beginnings)
    return Plan(
        **STUDY.heading,
        kind="sweep",
        factors=["load", "begin", *memory],
        arms=[
            replace(arm, server=server(arm))
            for arm in combine_levels(
                curve_levels("load", choose_levels(LOADS, options["load"], "load")),
                curve_levels("begin", beginnings),
                *(
                    curve_levels(name, [Level(value) for value in option_values(options[name], name)])
                    for name in memory
                ),
                within=True,
            )
        ],
        workload=Workload(variables={"rows": str(rows)}, **table(rows)),
        schedule=Schedule(
            blocks=6 if quick else 12,
            warmup_blocks=1,
            turn_ns=400_000_000 if quick and not cold else None,
            turn_transactions=5 if cold else None,
        ),
        watch=Watch(overhead_blocks=0),
        judge=Judge(headline="mean", threshold=0.05, equal_work=True),
    )


STUDY = Study(
    name="buffer-cache",
    question="Is memory better used for the database's cache or for the file system's?",
    workload="One session scans a table, or looks up 100 rows by their keys, with shared_buffers from a part of the "
    "table to more than all of it, on a server each. What is not in shared_buffers is in the file system's cache.",
    targets="PostgreSQL: embedded servers that the study starts, on this host. MariaDB: --target mariadb, likewise, "
    "with the factors flush=O_DIRECT,fsync (innodb_flush_method), pool=8M,256M (innodb_buffer_pool_size), load, begin, "
    "rows",
    source="Glenn Fawcett: Oracle's cache on raw devices compared with the file system's cache (E21)",
    found_there="695,700 against 287,114 rows per second (2.4 times); system CPU 5 % against 28 %.",
    factors=(
        Factor("shared_buffers", "sizes to compare", "4MB,32MB,256MB", quick="4MB,64MB", full="4MB,64MB,1GB"),
        Factor("load", "scan, lookups", "scan,lookups"),
        Factor(
            "begin", "hot: data in memory; cold: nothing in memory at the start of each turn", "hot", full="hot,cold"
        ),
        Factor("rows", "rows of the table, about 128 bytes each", "400000", full="1600000", quick="100000"),
    ),
    make=_plan,
    variants={"mariadb": Variant(MARIADB, _on_mariadb)},
)
