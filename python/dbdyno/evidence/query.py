"""SQL on evidence: DuckDB views over the complete parts of a run."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbdyno.base.errors import EvidenceError
from dbdyno.evidence.memory import file_connection, memory_connection
from dbdyno.evidence.query_limits import require_select, restrict
from dbdyno.evidence.restricted_answer import RestrictedAnswer
from dbdyno.evidence.trace_tables import KIND, create_views, torn_parts
from dbdyno.evidence.trace_tables import TABLES as TRACE_TABLES

if TYPE_CHECKING:
    import duckdb

    from dbdyno.evidence.run import Run

REHEARSAL = "rehearsal"
"""Value of `kind` in the manifest of a rehearsal."""
REHEARSAL_TABLES = ("statements", "rehearsed_blocks")
TABLES = ("calls", "waits", "metrics")
_ADDED = {"calls": {"vendor_code": "usmallint", "message": "varchar", "expected": "boolean"}}
"""Columns that are missing in parts written by earlier versions."""


def complete_parts(
    run: Run, table: str, connection: duckdb.DuckDBPyConnection | None = None
) -> tuple[list[Path], list[str]]:
    """Return the readable parts of complete blocks, and a sentence for each part that is missing or cannot be read.

    `connection` is used for the check if given.
    """
    parts, broken = [], []
    for block in run.blocks():
        path = run.path / table / f"{block.name}.parquet"
        if path.is_file():
            parts.append(path)
        elif table == "calls" and has_calls(run):
            broken.append(f"{path}: the part of block {block.index} is missing")
    with contextlib.ExitStack() as stack:
        probe = connection or stack.enter_context(file_connection())
        torn = torn_parts(probe, parts)
    broken += [f"{path}: not a whole Parquet part: {words}" for path, words in torn.items()]
    return [path for path in parts if path not in torn], broken


def has_calls(run: Run) -> bool:
    """Return True if the run had its own load, so that each of its blocks has a part of calls.

    False for a recording of cells and for a run on cells, whose load is the usual load of their databases.
    """
    if run.manifest.has("reads"):
        return run.manifest.reads.get("evidence") == "operations"
    return run.manifest.kind != "cells"


def connect(run: Run) -> tuple[duckdb.DuckDBPyConnection, list[str]]:
    """Return an in-memory connection with a view per table, restricted to this run, and a sentence per part left out.

    The author of the query can read the evidence and nothing else: no other file, no network.

    Raises:
        EvidenceError: the run has no complete block, or is an import that did not finish.
    """
    connection = memory_connection()
    add_functions(connection)
    warnings: list[str] = []
    if is_trace(run):
        # The C library keeps what is freed, and a query over a trace frees megabytes at a time: with this setting they
        # go back to the system, by default only from 512 MB on.
        connection.execute("set allocator_bulk_deallocation_flush_threshold = '4MB'")
        warnings += create_views(connection, run)
        restrict(connection, run.path)
        return connection, warnings
    if is_rehearsal(run):
        _rehearsal_views(connection, run)
        restrict(connection, run.path)
        return connection, warnings
    for table in TABLES:
        parts, broken = complete_parts(run, table, connection)
        warnings += broken
        if parts:
            names = ", ".join("'" + str(p.resolve()).replace("'", "''") + "'" for p in parts)
            source = f"read_parquet([{names}], union_by_name = true)"
            known = [row[0] for row in connection.execute(f"describe select * from {source}").fetchall()]  # noqa: S608
            added = [f"null::{kind} as {name}" for name, kind in _ADDED.get(table, {}).items() if name not in known]
            columns = ", ".join(["*", *added])
            connection.execute(f"create view {table} as select {columns} from {source}")  # noqa: S608
    if not any(run.blocks()):
        connection.close()
        raise EvidenceError(
            "contains no complete block yet",
            where=str(run.path),
            next_step=f"finish the run with: dbdyno run --resume {run.id}",
        )
    _blocks_table(connection, run)
    restrict(connection, run.path)
    return connection, warnings


def add_functions(connection: duckdb.DuckDBPyConnection) -> None:
    """Add the function prob_r(r, n) to a connection: the two-sided p-value of a correlation `r` over `n` pairs.

    It is NULL if it is not defined. The core computes it, because DuckDB has no t distribution.
    """
    from duckdb.func import SPECIAL

    from dbdyno import _core

    def prob_r(r: float | None, n: int | None) -> float | None:
        return None if r is None or n is None else _core.prob_r(r, n)

    connection.create_function("prob_r", prob_r, ["DOUBLE", "BIGINT"], "DOUBLE", null_handling=SPECIAL)


def _rehearsal_views(connection: duckdb.DuckDBPyConnection, run: Run) -> None:
    """Create a view for each table of a rehearsal."""
    for table in REHEARSAL_TABLES:
        file = str((run.path / f"{table}.parquet").resolve()).replace("'", "''")
        connection.execute(f"create view {table} as select * from read_parquet('{file}')")  # noqa: S608 - our own path


def is_rehearsal(run: Run) -> bool:
    """Return True if the run is a rehearsal."""
    return run.manifest.kind == REHEARSAL


def is_trace(run: Run) -> bool:
    """Return True if the run is an imported trace."""
    return run.manifest.kind == KIND


def tables_of(run: Run) -> str:
    """Return the names of the tables that a query may use, separated by commas."""
    if is_rehearsal(run):
        return ", ".join(REHEARSAL_TABLES)
    return ", ".join(TRACE_TABLES if is_trace(run) else (*TABLES, "slices"))


def table_columns(run: Run) -> dict[str, list[str]]:
    """Return the tables that a query of a run may use, with their columns.

    Raises:
        EvidenceError: the run has no complete block, or is an import that did not finish.
    """
    connection, _ = connect(run)
    with contextlib.closing(connection):
        rows = connection.execute(
            "select table_name, column_name from duckdb_columns() where not internal order by table_name, column_index"
        ).fetchall()
    found: dict[str, list[str]] = {}
    for table, column in rows:
        found.setdefault(table, []).append(column)
    return found


def _blocks_table(connection: duckdb.DuckDBPyConnection, run: Run) -> None:
    """Create the table `slices`: a row per slice with the kind of its block, and whether the slice counts."""
    rows = [
        (block.index, block.kind, s.slice, block.kind == "measure" and s.counts)
        for block in run.blocks()
        for s in block.slices
    ]
    columns = [list(column) for column in zip(*rows, strict=True)] or [[], [], [], []]
    connection.execute(
        "create table slices as select unnest($1::uinteger[]) as block,"
        " unnest($2::varchar[]) as kind,"
        " unnest($3::uinteger[]) as slice, unnest($4::boolean[]) as counts",
        columns,
    )


def sql(text: str, run: Run) -> duckdb.DuckDBPyRelation:
    """Return the result of a SELECT as a DuckDB relation.

    A relation has `.fetchnumpy()`, `.df()`, `.pl()` and the Arrow C stream, and is shown as a table in a notebook.

    Raises:
        EvidenceError: the text is not a single SELECT, or the query fails.
    """
    import duckdb

    connection, _ = connect(run)
    require_select(connection, text)
    try:
        return connection.sql(text)
    except duckdb.Error as error:
        raise EvidenceError(str(error), where=str(run.path)) from error


class Answer(RestrictedAnswer):
    """Result of a SELECT over a run's evidence; raises `EvidenceError` in the same cases as `RestrictedAnswer`."""

    def __init__(self, run: Run, text: str, *, seconds: float | None = None) -> None:
        connection, broken = connect(run)
        super().__init__(
            connection, text, str(run.path), f"tables: {tables_of(run)}; `describe calls` shows columns", seconds
        )
        self.broken = broken


def query(run: Run, sql: str) -> tuple[list[str], list[tuple[Any, ...]], list[str]]:
    """Run a SELECT and return its column names, all rows, and a sentence per part left out.

    Raises:
        EvidenceError: the text is not a single SELECT, or the query fails.
    """
    with Answer(run, sql) as answer:
        return answer.names, list(answer.rows()), answer.broken
