"""Counters per statement, from the extension pg_stat_statements.

The counters are rows of the `metrics` evidence: one object per statement, named by its query identifier, with the
columns that this version of the extension has. Only the current database and only top-level statements are read;
nothing is reset. Texts are read once, at the end, and only for the requested identifiers: on a busy server all texts
together can be many megabytes.

Limits: a statement that the extension evicted and added again starts at zero; the difference of its counters is then
unknown, and the reader must leave it out.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from dbdyno.base.errors import TargetError
from dbdyno.bench.metrics import Metric

if TYPE_CHECKING:
    import psycopg

    from dbdyno.bench.postgres.server import Postgres

    Connection = psycopg.Connection[tuple[Any, ...]]

SOURCE = "pg_stat_statements"

COLUMNS = (
    ("calls", "calls", "count", 1),
    ("total_exec_time", "elapsed", "ns", 1_000_000),
    ("total_time", "elapsed", "ns", 1_000_000),
    ("plans", "plans", "count", 1),
    ("total_plan_time", "planning", "ns", 1_000_000),
    ("rows", "rows", "count", 1),
    ("shared_blks_hit", "shared_hits", "count", 1),
    ("shared_blks_read", "shared_reads", "count", 1),
    ("shared_blks_dirtied", "shared_dirtied", "count", 1),
    ("temp_blks_read", "temp_reads", "count", 1),
    ("temp_blks_written", "temp_writes", "count", 1),
    ("blk_read_time", "read_time", "ns", 1_000_000),
    ("shared_blk_read_time", "read_time", "ns", 1_000_000),
)
"""Columns as (column of the view, metric, unit, factor); the names changed in PostgreSQL 13 and 17.

Planning is counted only if `pg_stat_statements.track_planning` is on.
"""


def preload_setting() -> dict[str, str]:
    """Return the setting that makes an embedded engine count statements.

    Raises:
        TargetError: The server's binaries come without the extension.
    """
    from dbdyno.bench.postgres.binaries import find_binaries

    found = find_binaries()
    home = found.bindir.resolve().parent
    if not any(home.glob(f"lib/**/{SOURCE}.*")):
        raise TargetError(
            f"the PostgreSQL {found.version} ({found.source}) that dbdyno would start does not have the "
            f"extension {SOURCE}",
            where="embedded",
            next_step="install a PostgreSQL server with its contrib modules, or name a server that "
            "has the extension: --target postgresql://...",
        )
    return {"shared_preload_libraries": SOURCE}


def make_readable(target: Postgres, where: str) -> None:
    """Make sure that the counters can be read; the extension is created only in an engine that dbdyno started.

    Raises:
        TargetError: The counters cannot be read; the error names the missing step.
    """
    import psycopg

    with contextlib.closing(target.connect()) as conn:
        try:
            if target.is_embedded:
                conn.execute(f"create extension if not exists {SOURCE}")
            conn.execute(f"select 1 from {SOURCE} limit 1").fetchall()  # noqa: S608
        except psycopg.Error as error:
            raise TargetError(
                f"{SOURCE} cannot be read: {str(error).splitlines()[0]}",
                where=where,
                next_step=_STEPS.get(error.sqlstate or "", "read the server's log"),
            ) from error


_STEPS = {
    "42P01": f"run as a superuser in this database: create extension {SOURCE};",
    "55000": f"put {SOURCE} into shared_preload_libraries and restart the server",
    "42501": "grant pg_read_all_stats to the role",
}


def statement_counters(conn: Connection, clock: Callable[[], int] = time.time_ns) -> list[Metric]:
    """Read all statements' counters now; return an empty list if the extension cannot be read."""
    import psycopg

    try:
        cursor = conn.execute(
            f"select * from {SOURCE}(false) where queryid is not null"  # noqa: S608
            " and dbid = (select oid from pg_database where datname = current_database())"
        )
    except psycopg.Error:
        return []
    at_ns = clock()
    places = {column.name: at for at, column in enumerate(cursor.description or ())}
    present = [c for c in COLUMNS if c[0] in places]
    top = places.get("toplevel")
    totals: dict[tuple[str, str, str], int] = {}
    for row in cursor:
        if top is not None and not row[top]:
            continue
        statement = str(row[places["queryid"]])
        for column, metric, unit, factor in present:
            key = (statement, metric, unit)
            totals[key] = totals.get(key, 0) + round(row[places[column]] * factor)
    return [
        Metric(SOURCE, "statement", statement, metric, at_ns, value, unit, "counter")
        for (statement, metric, unit), value in totals.items()
    ]


def statement_texts(conn: Connection, statements: Iterable[str]) -> dict[str, str]:
    """Return the texts of these statements, with the engine's placeholders; evicted statements are missing."""
    import psycopg

    wanted = [int(statement) for statement in statements]
    try:
        rows = conn.execute(
            f"select queryid, min(query) from {SOURCE} where queryid = any(%s) group by queryid",  # noqa: S608
            [wanted],
        ).fetchall()
    except psycopg.Error:
        return {}
    return {str(queryid): " ".join(str(text).split()) for queryid, text in rows}
