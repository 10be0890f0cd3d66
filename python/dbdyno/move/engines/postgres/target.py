"""The PostgreSQL table that receives rows, and the match of incoming columns with its columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql

from dbdyno.base.core_types import FileColumn
from dbdyno.base.errors import MoveError
from dbdyno.move.engines.postgres.create_table import create
from dbdyno.move.engines.postgres.publish import StagedRows
from dbdyno.move.engines.postgres.source import resolve_table
from dbdyno.move.loading.request import Column, LoadRequest

TARGET_SQL = """
select a.attname::text, format_type(a.atttypid, -1), a.attgenerated <> '', a.attidentity = 'a',
       format_type(a.atttypid, a.atttypmod)
from pg_catalog.pg_attribute a where a.attrelid = %s::oid and a.attnum > 0 and not a.attisdropped order by a.attnum
"""
Heads = Sequence[FileColumn]


@dataclass(frozen=True)
class TargetTable:
    """Target table, and the columns that are loaded into it."""

    oid: int
    schema: str
    name: str
    kind: str
    columns: tuple[Column, ...]
    identity: bool

    def staged_rows(self, stage: sql.Composable, rows: int) -> StagedRows:
        """Return the staged rows together with this target, for publication."""
        table = sql.Identifier(self.schema, self.name)
        return StagedRows(stage, table, self.oid, self.kind, self.columns, rows, self.identity)


def match_target(conn: psycopg.Connection[Any], load_request: LoadRequest, heads: Heads) -> TargetTable:
    """Match the files' columns with the target table.

    If the load creates the table, it is created here in a transaction that is rolled back.

    Raises:
        MoveError: A column is missing or cannot be loaded, or the target is not a table.
    """
    with conn.transaction(force_rollback=True):
        if load_request.create:
            create(conn, load_request.table, heads)
        oid, name, kind = resolve_table(conn, load_request.table)
        if kind not in ("r", "p"):
            raise MoveError("is not a table", where=load_request.table, next_step="name a table or a partitioned table")
        known = {row[0]: row for row in conn.execute(TARGET_SQL, [oid])}
        columns = [_column(one, known, load_request) for one in heads]
    missing = [key for key in load_request.key if key not in {column.name for column in columns}]
    if missing:
        raise MoveError(
            f"the files have no column {missing[0]!r}", where="--key", next_step="name columns of the files"
        )
    return TargetTable(oid, *name, kind, tuple(columns), any(known[one.name][3] for one in columns))


def _column(file_column: FileColumn, known: Mapping[str, Sequence[Any]], load_request: LoadRequest) -> Column:
    name = file_column["name"]
    if file_column["holds"] is None:
        raise MoveError(
            f"is of type {file_column['arrow']}, which cannot be loaded",
            where=f"column {name} of the files",
            next_step="convert it to text, or to a type that docs/how-to/move.md lists",
        )
    row = known.get(name)
    if row is None:
        raise MoveError(
            f"has no column {name!r}, but the files have one",
            where=load_request.table,
            next_step=f"add it with: alter table {load_request.table} add column ... "
            f"{file_column['pg_type'] or file_column['holds']}",
        )
    return Column(name, file_column["holds"], row[1], row[2], row[4], file_column.get("came", ""))


def table_creator(load_request: LoadRequest, heads: Heads) -> Callable[[psycopg.Connection[Any]], None] | None:
    """Return a function that creates the table, or None if it is not to be created."""
    return (lambda conn: create(conn, load_request.table, heads)) if load_request.create else None
