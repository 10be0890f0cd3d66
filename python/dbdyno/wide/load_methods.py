"""Four methods of loading a Cassandra table, as an engine of the flow benchmark: `python -m dbdyno.wide.load_methods`.

A set of tables is the join of customers, orders and lines: a partition per customer with its segment as a static
column, a row per line. A flow is the name of a method:

    row       a statement per row, waiting for each
    async     a statement per row, by the driver's execute_concurrent_with_args
    batch     rows of a partition in unlogged batches, a limited number in flight, as `dbdyno move` writes
    direct    SSTables, written locally and streamed

The table is emptied before each run, which is not timed, and its rows are counted after each: the count is the answer.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from dbdyno.base.json_types import TableRow
from dbdyno.bench.flows.worker import own_cpu_ns, serve
from dbdyno.wide.address import address, open_session
from dbdyno.wide.catalog import read_keyspace
from dbdyno.wide.load import BATCH_ROWS, Writer
from dbdyno.wide.load_result import LoadResult
from dbdyno.wide.prepared_statements import PreparedInserts

TARGET = "DBDYNO_CASSANDRA"
TABLE = "dbdyno_wide_loader"
AT_ONCE = 100
"""Number of statements in flight, as in the driver's own example."""
CREATE = f"""create table {TABLE} (customer bigint, segment bigint static, order_id bigint, line bigint, cents bigint,
primary key (customer, order_id, line))"""
NAMES = ("customer", "segment", "order_id", "line", "cents")
_JOINED = """select customers.column0, customers.column2, orders.column0, lines.column0, lines.column2
from read_csv(?, header = false) lines
join read_csv(?, header = false) orders on orders.column0 = lines.column1
join read_csv(?, header = false) customers on customers.column0 = orders.column1 order by all"""


class LoadMethods:
    """Engine that loads a private table of a keyspace."""

    def __init__(self) -> None:
        self.where = address(os.environ[TARGET])
        self.held = open_session(self.where)
        self.session = self.held.__enter__()
        self.session.execute(f"drop table if exists {TABLE}")
        self.session.execute(CREATE)
        self.table = read_keyspace(self.session, self.where.keyspace)[TABLE]
        row = self.session.execute("select release_version from system.local").one()
        self.about = f"Cassandra {row[0]}"
        self.sets: dict[str, list[TableRow]] = {}
        self.rows: list[TableRow] = []
        self.ways: dict[str, Callable[[], None]] = {
            "row": self.row,
            "async": self.concurrent,
            "batch": self.batch,
            "direct": self.direct,
        }

    def tables(self, name: str, folder: Path) -> None:
        """Join the files of a set and keep the rows in memory."""
        import duckdb

        with duckdb.connect() as duck:
            files = [str(folder / f"{one}.csv") for one in ("lines", "orders", "customers")]
            self.sets[name] = [dict(zip(NAMES, row, strict=True)) for row in duck.execute(_JOINED, files).fetchall()]

    def prepare(self, name: str, optimizer: bool) -> None:
        """Empty the table and prepare the statements."""
        del optimizer
        self.rows = self.sets[name]
        self.session.execute(f"truncate {TABLE}")
        self.bound = PreparedInserts(self.session, self.table, NAMES, time.time_ns() // 1000)

    def run(self, text: str) -> list[Any]:
        """Load the rows; the result is empty, because `answer` counts them."""
        self.ways[text]()
        return []

    def answer(self, rows: list[Any]) -> list[Any]:
        """Return the number of rows and the sum of their cents; not timed."""
        del rows
        found = self.session.execute(f"select count(*), sum(cents) from {TABLE}").one()  # noqa: S608
        return [list(found)]

    def cpu_ns(self) -> int:
        """Return the CPU time of this process and its finished children, in nanoseconds."""
        return own_cpu_ns()

    def close(self) -> None:
        """Drop the table and close the session."""
        self.session.execute(f"drop table if exists {TABLE}")
        self.held.__exit__(None, None, None)

    def row(self) -> None:
        """Write row by row, waiting for each."""
        for group in self.groups():
            for _, one in self.bound.bound_statements(group):
                self.session.execute(one)

    def concurrent(self) -> None:
        """Write through the driver's function for concurrent statements."""
        from cassandra.concurrent import execute_concurrent

        statements = ((one, None) for group in self.groups() for _, one in self.bound.bound_statements(group))
        execute_concurrent(self.session, statements, concurrency=AT_ONCE, raise_on_first_error=True)

    def batch(self) -> None:
        """Write in batches, as `dbdyno move` does."""
        writer = Writer(self.session, self.where, self.bound, AT_ONCE, LoadResult())
        for group in self.groups():
            writer.send(group)
        writer.drain()

    def direct(self) -> None:
        """Write SSTables and stream them."""
        from dbdyno.wide.sstable_load import write_files

        counted = ((group, at) for at, group in enumerate(self.groups(), 1))
        write_files(self.session, self.where, self.table, self.bound, counted, LoadResult(), lambda _: None)

    def groups(self) -> Iterator[list[TableRow]]:
        """Yield rows of one partition, at most as many as fit in a batch."""
        group: list[TableRow] = []
        for row in self.rows:
            if group and (row["customer"] != group[0]["customer"] or len(group) == BATCH_ROWS):
                yield group
                group = []
            group.append(row)
        if group:
            yield group


def main() -> None:
    """Serve the benchmark until stdin ends."""
    serve(LoadMethods)


if __name__ == "__main__":
    main()
