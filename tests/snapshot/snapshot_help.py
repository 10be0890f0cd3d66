"""Helpers for tests of snapshots: a server, its store, and loads whose counts are known exactly."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import psycopg
from psycopg.conninfo import make_conninfo

from dbdyno.base.json_types import JsonObject
from dbdyno.bench.postgres.embedded import EmbeddedPostgres
from dbdyno.snapshot.engines.view import Options
from dbdyno.snapshot.reading.interval import Interval
from dbdyno.snapshot.report import report
from dbdyno.snapshot.store.folder import Snapshot, Store
from dbdyno.snapshot.taking.take import open_collector, take
from together import together

SETTINGS: dict[str, Any] = {
    "shared_preload_libraries": "pg_stat_statements",
    "pg_stat_statements.max": 1000,
    "autovacuum": False,
    "log_temp_files": 0,
    "shared_buffers": "32MB",
}

FACTS = (
    "create table facts (a int, b int)",
    "insert into facts select n % 100, n from generate_series(1, 20000) n",
    "create index facts_a on facts (a)",
    "analyze facts",
    "insert into facts select 500, n from generate_series(1, 40000) n",
)
OTHER_STATISTICS = (
    "create table kept as select * from facts",
    "truncate facts",
    "insert into facts select 1, n from generate_series(1, 20000) n",
    "analyze facts",
    "truncate facts",
    "insert into facts select * from kept",
)
"""Statements that leave the planner with the statistics of other rows of `facts`."""
FAMILY = (
    "create table parent as select n as id from generate_series(1, 30000) n",
    "alter table parent add primary key (id)",
    "create table child as select n as id, 25000 + n % 5000 as parent_id from generate_series(1, 60000) n",
    "vacuum analyze",
)
FOREIGN_KEY = "alter table child add constraint child_parent_fkey foreign key (parent_id) references parent"
"""A key of `FAMILY` that no index of the child serves."""


def settle() -> None:
    """Wait until a session's work is counted, which takes up to a second before version 15."""
    time.sleep(1.1)


class Lab:
    """A server with pg_stat_statements, and snapshots of it by new sessions."""

    def __init__(self, engine: EmbeddedPostgres, folder: Path, **options: Any) -> None:
        self.engine = engine
        self.store = Store(folder)
        self.options = Options(**options)
        self.dsn = make_conninfo("", **engine.conninfo())

    def __enter__(self) -> Self:
        self.run("create extension if not exists pg_stat_statements")
        return self

    def __exit__(self, *ending: object) -> None:
        return None

    def connect(self, **more: str) -> psycopg.Connection[Any]:
        """Open a session in autocommit mode without prepared statements."""
        known = {**self.engine.conninfo(), **more}
        return psycopg.connect(**known, autocommit=True, prepare_threshold=None)  # type: ignore[arg-type]

    def run(self, *statements: str, database: str = "postgres") -> None:
        """Execute statements in a new session and close it, so that its work is counted."""
        with contextlib.closing(self.connect(dbname=database)) as conn:
            for statement in statements:
                conn.execute(statement)  # type: ignore[arg-type]

    def convoy(self, ask: str, waiter: Callable[[], object]) -> None:
        """Three waiters behind a session that holds the locks of a statement for 0.3 s."""
        with self.connect() as holder:
            holder.autocommit = False
            holder.execute(ask)  # type: ignore[arg-type]
            with together(*[waiter] * 3):
                time.sleep(0.3)
                holder.commit()

    def take(self, note: str = "", **options: Any) -> Snapshot:
        """Take a snapshot after all previous work was counted."""
        settle()
        chosen = Options(**options) if options else self.options
        with open_collector(self.dsn, chosen) as collector:
            return take(collector, self.store, engine_name="postgres", note=note)

    def between(self, first: Snapshot, last: Snapshot) -> Interval:
        """Return the interval between two snapshots."""
        return Interval(self.store, first, last)

    def rows(self, first: Snapshot, last: Snapshot, view: str, where: str = "true") -> list[Any]:
        """Return rows of a view's difference between two snapshots."""
        with self.between(first, last) as interval:
            return interval.query(f"select * from {interval.table(view)} where {where}")

    def report(self, first: Snapshot, last: Snapshot) -> JsonObject:
        """Return the model of the report on the interval of two snapshots."""
        with self.between(first, last) as interval:
            return report(interval)


def section(model: JsonObject, name: str) -> JsonObject:
    """A section of a report's model."""
    return next(one for one in model["sections"] if one["name"] == name)


def line(model: JsonObject, name: str, what: str) -> JsonObject:
    """Return the row of a section whose first column is `what`."""
    return next(
        row
        for table in section(model, name)["tables"]
        for row in table["rows"]
        if row[table["columns"][0]["name"]] == what
    )


def never_negative(interval: Interval) -> int:
    """Check that no counter of any view is negative, and that rows without the verdict ok have none (an entry that was
    evicted and returned has a minimum); return how many numbers were checked.
    """
    seen = 0
    for view, record in interval.after.views.items():
        if not interval.has(view) or view in ("activity", "blocked"):
            continue
        counters = [c[0] for c in record["columns"] if c[1] in ("counter", "sum")]
        for row in interval.query(f"select * from {interval.table(view)}") if counters else ():
            for name in counters:
                seen += 1
                assert row[name] is None or row[name] >= 0, (view, row)
                assert row["verdict"] in ("ok", "evicted") or row[name] is None, (view, row)
    return seen
