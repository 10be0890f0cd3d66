"""Publication of staged rows in a PostgreSQL table, in one transaction: the target does not change before its commit.

The staging table is dropped in the same transaction: if it still exists after a kill, nothing was published.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql

from dbdyno.base.errors import MoveError
from dbdyno.move.engines.postgres import indexes
from dbdyno.move.engines.postgres.merging import MergeCounts, StatementRunner, merge
from dbdyno.move.engines.postgres.rounding import refuse_differing_rows, rounded_columns
from dbdyno.move.loading.rejects import BisectingRunner, Rejects, delete_rejected
from dbdyno.move.loading.request import Column, LoadRequest, LoadResult


@dataclass(frozen=True)
class StagedRows:
    """Staged rows that are to be published, with their target table."""

    stage: sql.Composable
    table: sql.Composable
    oid: int
    kind: str
    columns: Sequence[Column]
    rows: int
    identity: bool


def publish(
    conn: psycopg.Connection[Any],
    staged: StagedRows,
    load_request: LoadRequest,
    rejects: Rejects | None,
    *,
    compare: bool,
    emptied: bool = False,
    first: Callable[[psycopg.Connection[Any]], None] | None = None,
) -> LoadResult:
    """Publish the staged rows in one transaction; the caller adds what was verified to the result.

    Args:
        conn: The session that publishes.
        staged: The staged rows and their target.
        load_request: The mode and the key.
        rejects: Where rows that the table refuses are written; if None, such a row makes the load fail.
        compare: Compare the table with the staged rows before the commit.
        emptied: True if the table was already emptied for mode `replace`.
        first: Called at the start of the transaction, or None.

    Raises:
        MoveError: A check failed.
        psycopg.Error: The server reports an error.
    """
    given = [one for one in staged.columns if not one.generated]
    run: StatementRunner = _whole(conn) if rejects is None else BisectingRunner(conn, rejects)
    since = 0 if rejects is None else len(rejects.rows)
    refused = since
    with conn.transaction():
        if compare and load_request.mode == "insert":
            # Hides rows that others commit meanwhile, so that only rows of this transaction are younger than its
            # snapshot.
            conn.execute("set transaction isolation level repeatable read")
        deferred = begin_writing(conn, staged, load_request, first)
        changes = _write(conn, staged, given, load_request, run, rejects, emptied=emptied)
        if rejects is not None:
            delete_rejected(conn, staged.stage, rejects, since)
            refused = len(rejects.rows)
        made = deferred.recreate(conn)
        differs, not_compared = rounded_columns(conn, staged.stage, given)
        if compare:
            refuse_differing_rows(
                conn,
                staged.stage,
                staged.table,
                given,
                load_request.key,
                all_rows=load_request.mode == "replace" or load_request.create,
                adds=load_request.mode == "merge",
            )
        conn.execute(sql.SQL("drop table {} cascade").format(staged.stage))
        if rejects is not None and rejects.rows:
            # Before the commit: if the process dies during it, rows may be rejected already, and must not be lost.
            rejects.write()
    return LoadResult(
        files=0,
        in_files=staged.rows,
        mode=load_request.mode,
        changes=changes,
        rejected=refused,
        rejects=None if rejects is None else rejects.path,
        rounded=tuple(differs),
        not_compared=tuple(not_compared),
        kept=tuple(deferred.kept),
        made=made,
        created=load_request.create,
        stands=compare,
    )


def begin_writing(
    conn: psycopg.Connection[Any],
    staged: StagedRows,
    load_request: LoadRequest,
    first: Callable[[psycopg.Connection[Any]], None] | None,
) -> indexes.DeferredIndexes:
    """Make constraints immediate in this transaction, call `first`, and drop indexes that are recreated at its end."""
    conn.execute("set constraints all immediate")
    if first is not None:
        first(conn)
    if load_request.defer_indexes:
        return indexes.drop_indexes(conn, staged.oid, staged.table, staged.kind)
    return indexes.DeferredIndexes([], [])


def _whole(conn: psycopg.Connection[Any]) -> StatementRunner:
    return lambda table, make: conn.execute(make(sql.SQL("true"))).rowcount


def _write(
    conn: psycopg.Connection[Any],
    staged: StagedRows,
    columns: Sequence[Column],
    load_request: LoadRequest,
    run: StatementRunner,
    rejects: Rejects | None,
    *,
    emptied: bool,
) -> MergeCounts:
    before = 0 if rejects is None else len(rejects.rows)
    if load_request.mode in ("update", "merge"):
        return merge(
            conn,
            _cast_rows(conn, staged, columns, run) if rejects is not None else None,
            staged.stage,
            staged.table,
            columns,
            load_request.key,
            adds=load_request.mode == "merge",
            staged=staged.rows - before,
            run=run,
            rejected=lambda: 0 if rejects is None else len(rejects.rows) - before,
        )
    if load_request.mode == "replace" and not emptied:
        conn.execute(sql.SQL("truncate {}").format(staged.table))
    names = sql.SQL(", ").join(sql.Identifier(one.name) for one in columns)
    values = sql.SQL(", ").join(one.value("s") for one in columns)
    over = sql.SQL("overriding system value " if staged.identity else "")
    text = sql.SQL("insert into {} ({}) {}select {} from {} s where {}")
    added = run(staged.stage, lambda rows: text.format(staged.table, names, over, values, staged.stage, rows))
    rejected = 0 if rejects is None else len(rejects.rows)
    if added + rejected != staged.rows:
        raise MoveError(
            f"{staged.rows - before:,} rows were staged, but {added:,} were added: a trigger or rule removes rows",
            where=load_request.table,
            next_step="check the table's triggers and rules; nothing was changed",
        )
    return MergeCounts(new=added)


def _cast_rows(
    conn: psycopg.Connection[Any], staged: StagedRows, columns: Sequence[Column], run: StatementRunner
) -> sql.Composable:
    """Return a temporary table with the staged rows in the table's types, rejecting rows that cannot be converted."""
    typed = sql.Identifier("dbdyno_typed")
    parts: list[sql.Composable] = [sql.SQL("dbdyno_file integer, dbdyno_row bigint")]
    parts += [sql.SQL("{} {}").format(sql.Identifier(one.name), sql.SQL(_typed_as(one))) for one in columns]
    conn.execute(sql.SQL("create temp table {} ({}) on commit drop").format(typed, sql.SQL(", ").join(parts)))
    values = sql.SQL(", ").join(one.value("s") for one in columns)
    text = sql.SQL("insert into {} select s.dbdyno_file, s.dbdyno_row, {} from {} s where {}")
    run(staged.stage, lambda rows: text.format(typed, values, staged.stage, rows))
    return typed


def _typed_as(column: Column) -> str:
    return column.becomes if column.is_parsed else column.staged
