"""Private staging table beside the target, and workers that load files into it.

The table is unlogged and dropped afterwards. If bad rows are to be rejected, it has two more columns: the file's number
and the row's number in the file.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from dbdyno.base.core_types import MoveFileCount, MoveFinishedChunk
from dbdyno.bench.postgres.server import Postgres
from dbdyno.move.engines.postgres.source import application_name, session_settings
from dbdyno.move.loading.pieces import CSV, pieces_of, records_by_file, whole_files
from dbdyno.move.loading.request import Column
from dbdyno.move.loading.workers import run_workers
from dbdyno.move.reading.run import JobOptions, new_id

PREFIX = "dbdyno_move_"
FILE, ROW = "dbdyno_file", "dbdyno_row"
REPAIR = "repair the value, or write such rows to a file with --rejects"


@contextlib.contextmanager
def staging_table(
    conn: psycopg.Connection[Any], name: tuple[str, str], columns: Sequence[Column], *, placed: bool, csv: bool
) -> Iterator[sql.Identifier]:
    """Create the staging table, and drop it on exit even if its rows were not published.

    Args:
        conn: The session.
        name: Schema and name of the table.
        columns: The columns.
        placed: Add columns for each row's file number and row number.
        csv: True if the rows come from a CSV, whose rows the server numbers.
    """
    stage = sql.Identifier(*name)
    parts: list[sql.Composable] = []
    if placed:
        row = "generated always as identity" if csv else ""
        parts += [sql.SQL("dbdyno_file integer default 0"), sql.SQL("dbdyno_row bigint {}").format(sql.SQL(row))]
    parts += [sql.SQL("{} {}").format(sql.Identifier(one.name), sql.SQL(one.staged)) for one in columns]
    conn.execute(sql.SQL("create unlogged table {} ({})").format(stage, sql.SQL(", ").join(parts)))
    with dropped_at_exit(conn, stage):
        yield stage


@contextlib.contextmanager
def dropped_at_exit(conn: psycopg.Connection[Any], stage: sql.Identifier) -> Iterator[None]:
    """Drop the table on exit, if a table of this name still exists."""
    try:
        yield
    finally:
        with contextlib.suppress(psycopg.Error):
            conn.rollback()
            conn.execute(sql.SQL("drop table if exists {} cascade").format(stage))


def fill(
    target: Postgres,
    conn: psycopg.Connection[Any],
    files: Sequence[Path],
    stage: sql.Identifier,
    columns: Sequence[Column],
    options: JobOptions,
    job: str,
    *,
    placed: bool,
) -> list[MoveFileCount]:
    """Load the files into the staging table and return one record per file, in the files' order.

    Raises:
        MoveError: A file could not be loaded.
    """
    copy = copy_statement(stage, columns, csv=files[0].suffix == CSV, placed=placed).as_string(conn)
    pieces = pieces_of(files, options.workers) if options.workers > 1 else whole_files(files)
    done: list[MoveFinishedChunk] = []
    copies = dict.fromkeys(range(len(pieces)), copy)
    server = server_spec(target, conn, job)
    run_workers(server, dict(enumerate(pieces)), copies, options, done.append, placed=placed, repair=REPAIR)
    return records_by_file(len(files), ((pieces[one["number"]].file, one) for one in done))


def copy_statement(stage: sql.Identifier, columns: Sequence[Column], *, csv: bool, placed: bool) -> sql.Composed:
    """Return the COPY statement that receives the rows of a file."""
    names = [sql.Identifier(name) for name in (FILE, ROW) if placed and not csv]
    names += [sql.Identifier(one.name) for one in columns]
    form = "csv, header" if csv else "binary"
    return sql.SQL("copy {} ({}) from stdin (format {})").format(stage, sql.SQL(", ").join(names), sql.SQL(form))


def server_spec(target: Postgres, conn: psycopg.Connection[Any], job: str, *more: str) -> dict[str, Any]:
    """Return the core's specification of the server that receives rows; `more` statements begin its sessions."""
    return {
        "connection": {**target.conninfo(), "application_name": application_name(job)},
        "session_sql": [session_settings(conn, lasting=True), *more],
    }


def stage_name(schema: str) -> tuple[str, tuple[str, str]]:
    """Return a new job id, and the schema and name of its staging table."""
    job = new_id()
    return job, (schema, f"{PREFIX}{job}")
