"""SQL on evidence: DuckDB views over the whole parts of a run."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from dbdyno.base.errors import EvidenceError
from dbdyno.evidence.fence import lock, only_select
from dbdyno.evidence.memory import for_files, in_memory
from dbdyno.evidence.trace_tables import KIND, create_views
from dbdyno.evidence.trace_tables import TABLES as TRACE_TABLES

if TYPE_CHECKING:
    import duckdb

    from dbdyno.evidence.run import Run

TABLES = ("calls", "waits", "metrics")
_ADDED = {"calls": {"vendor_code": "usmallint", "message": "varchar", "expected": "boolean"}}
"""Columns that parts of earlier versions have not."""
FETCH = 4096
"""Rows that are fetched at a time."""


def whole_parts(
    run: Run, table: str, connection: duckdb.DuckDBPyConnection | None = None
) -> tuple[list[Path], list[str]]:
    """Parts of whole blocks that can be read, and a sentence for each that cannot. `connection`: one to ask with."""

    parts, broken = [], []
    for block in run.blocks():
        path = run.path / table / f"{block.name}.parquet"
        if path.is_file():
            parts.append(path)
        elif table == "calls" and has_calls(run):
            broken.append(f"{path}: the part of block {block.index} is missing")
    with contextlib.ExitStack() as stack:
        probe = connection or stack.enter_context(for_files())
        torn = _torn(probe, parts)
    broken += [f"{path}: not a whole Parquet part: {words}" for path, words in torn.items()]
    return [path for path in parts if path not in torn], broken


def _torn(probe: duckdb.DuckDBPyConnection, parts: list[Path]) -> dict[Path, str]:
    """Those of the parts that cannot be read, with the reason: all are tried at once, each alone only where that
    fails."""
    import duckdb

    count = "select count(*) from read_parquet(?)"
    try:
        if parts:
            probe.execute(count, [list(map(str, parts))])
    except duckdb.Error as error:
        if len(parts) == 1:
            return {parts[0]: str(error).splitlines()[0]}
        return {path: words for part in parts for path, words in _torn(probe, [part]).items()}
    return {}


def has_calls(run: Run) -> bool:
    """Whether the run had a load of its own, every block of which then has a part of calls: not a recording of
    cells, nor a run on cells, whose load is their databases' own."""
    if run.manifest.says("reads"):
        return run.manifest.reads.get("evidence") == "operations"
    return run.manifest.kind != "cells"


def connect(run: Run) -> tuple[duckdb.DuckDBPyConnection, list[str]]:
    """An in-memory connection with a view per table, closed to everything but this run.

    Returns the connection and the parts that were left out. The query's author may read the
    evidence and nothing else: no other file, no network.
    """

    connection = in_memory()
    add_functions(connection)
    warnings: list[str] = []
    if is_trace(run):
        warnings += create_views(connection, run)
        lock(connection, run)
        return connection, warnings
    for table in TABLES:
        parts, broken = whole_parts(run, table, connection)
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
            "holds no whole block yet",
            where=str(run.path),
            next_step=f"finish it: dbdyno run --resume {run.id}",
        )
    _blocks_table(connection, run)
    lock(connection, run)
    return connection, warnings


def add_functions(connection: duckdb.DuckDBPyConnection) -> None:
    """Gives a connection the function prob_r(r, n): the two-sided p of a correlation `r` over `n`
    pairs, NULL where it is not defined. DuckDB has no t distribution, so the core works it out."""
    from duckdb.func import SPECIAL

    from dbdyno import _core

    def prob_r(r: float | None, n: int | None) -> float | None:
        return None if r is None or n is None else _core.prob_r(r, n)

    connection.create_function("prob_r", prob_r, ["DOUBLE", "BIGINT"], "DOUBLE", null_handling=SPECIAL)


def is_trace(run: Run) -> bool:
    """Whether the run is an imported trace."""
    return run.manifest.kind == KIND


def tables_of(run: Run) -> str:
    """The tables that a query may name."""
    return ", ".join(TRACE_TABLES if is_trace(run) else (*TABLES, "slices"))


def _blocks_table(connection: duckdb.DuckDBPyConnection, run: Run) -> None:
    """A table `slices`: which slices of which block count, and the block's kind."""
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
    """A SELECT's result as a DuckDB relation: `.fetchnumpy()`, `.df()`, `.pl()`, the Arrow C stream,
    and a table in a notebook. Raises `EvidenceError`."""
    import duckdb

    connection, _ = connect(run)
    only_select(connection, text)
    try:
        return connection.sql(text)
    except duckdb.Error as error:
        raise EvidenceError(str(error), where=str(run.path)) from error


class Answer:
    """What a SELECT answers: names of columns, rows as they are asked for, and the parts left out. A context manager:
    the connection behind it is closed at its end."""

    def __init__(self, run: Run, text: str) -> None:
        self.run = run
        self._connection, self.broken = connect(run)
        try:
            with self._in_words():
                self._cursor = self._connection.execute(only_select(self._connection, text))
        except BaseException:
            self._connection.close()
            raise
        self.names = _each_once([column[0] for column in self._cursor.description or []])

    def rows(self, most: int | None = None) -> Iterator[tuple[Any, ...]]:
        """The rows, the first `most` of them where that is given; never more in memory than a few thousand."""
        left = sys.maxsize if most is None else most
        while left > 0:
            with self._in_words():
                found = self._cursor.fetchmany(min(FETCH, left))
            if not found:
                return
            yield from found
            left -= len(found)

    def batches(self) -> Any:
        """The rows as a `pyarrow.RecordBatchReader`, typed; needs the package pyarrow. Instead of `rows`."""
        import warnings

        with self._in_words(), warnings.catch_warnings():
            # The copy is of one batch, and saves a second run of the query.
            warnings.simplefilter("ignore", UserWarning)
            return self._cursor.to_arrow_reader(FETCH)

    @contextlib.contextmanager
    def _in_words(self) -> Iterator[None]:
        import duckdb

        try:
            yield
        except duckdb.Error as error:
            raise EvidenceError(
                str(error),
                where=str(self.run.path),
                next_step=f"tables: {tables_of(self.run)}; `describe calls` shows columns",
            ) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *ending: object) -> None:
        self._connection.close()


def _each_once(names: list[str]) -> list[str]:
    """Names of columns, told apart where two are alike: `a`, `a_2`."""
    found: list[str] = []
    for name in names:
        number, each = 2, name
        while each in found:
            number, each = number + 1, f"{name}_{number}"
        found.append(each)
    return found


def query(run: Run, sql: str) -> tuple[list[str], list[tuple[Any, ...]], list[str]]:
    """Runs a SELECT; returns column names, all rows and the parts left out."""
    with Answer(run, sql) as answer:
        return answer.names, list(answer.rows()), answer.broken
