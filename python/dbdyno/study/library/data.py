"""Parts that several studies share: words, factors, and a table with a key and any number of identical rows."""

from __future__ import annotations

from dataclasses import replace
from typing import TypedDict

from dbdyno.study.plan.plan import Plan, Watch
from dbdyno.study.plan.study import Factor

TABLE = "dbdyno_rows"
TURN_NS = 1_000_000_000
"""Length of a turn of commits on an engine [ns]."""
ROW_BYTES = 128
"""Approximate size of a row of the table on a page [bytes]."""

BOTH_ENGINES = "PostgreSQL: embedded, or one named by --target. MariaDB: --target mariadb, or one named so"
REDO_BYTES = Factor("redo_bytes", "redo of a transaction: a size, range or list", "512")


class WorkloadSetup(TypedDict):
    """Set-up and teardown of a workload."""

    setup: list[str]
    teardown: list[str]


def keyed_table(rows: int, table: str = TABLE) -> WorkloadSetup:
    """Return the set-up of a table with a key `id` from 1 to `rows`, an `amount` to read or update, and padding.

    A row has about 128 bytes. The table is vacuumed, so that the first reader writes no hint bits.
    """
    return {
        "setup": [
            f"create table {table} as select i as id, i % 1000 as amount, repeat(md5(i::text), 2) as filler"  # noqa: S608
            f" from generate_series(1, {rows}) i",
            f"create unique index on {table} (id)",
            f"vacuum freeze analyze {table}",
        ],
        "teardown": [f"drop table {table}"],
    }


def mariadb_table(rows: int, table: str = TABLE) -> WorkloadSetup:
    """Return the set-up of the same table on MariaDB, where `seq_1_to_N` generates the rows."""
    return {
        "setup": [
            f"create table {table} (id int primary key, amount int, filler varchar(64))",
            f"insert into {table} select seq, seq % 1000, repeat(md5(seq), 2) from seq_1_to_{rows}",  # noqa: S608
            f"analyze table {table}",
        ],
        "teardown": [f"drop table {table}"],
    }


def lookup_of(table: str) -> str:
    """Return a script that looks up a random row among the first `:rows` by its key."""
    return f"\\set at random(1, :rows)\nselect amount from {table} where id = :at;\n"


def update_of(table: str) -> str:
    """Return a script that updates a random row among the first `:rows` by its key."""
    return f"\\set at random(1, :rows)\nupdate {table} set amount = amount + 1 where id = :at;\n"


def scan_of(table: str) -> str:
    """Return a script that reads every row."""
    return f"select sum(amount) from {table};\n"  # noqa: S608


def table_read_statements(table: str) -> list[str]:
    """Return set-up statements that bring a table and its index into the buffers by reading both once.

    The rows that a scan read stay in shared_buffers unless the table is larger than a quarter of shared_buffers.
    """
    return [
        scan_of(table).rstrip(),
        "set enable_seqscan = off",
        f"select count(*) from {table} where id > 0",  # noqa: S608
        "reset enable_seqscan",
    ]


def timed_commits(plan: Plan) -> Plan:
    """Return a model's plan of commits adapted to a real engine: turns of one second, in which commits are timed."""
    schedule, judge = replace(plan.schedule, turn_ns=TURN_NS), replace(plan.judge, operation="commit")
    return replace(plan, schedule=schedule, judge=judge, watch=Watch(overhead_blocks=0))
