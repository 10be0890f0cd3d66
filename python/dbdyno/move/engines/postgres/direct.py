"""Load of files straight into the table: one session, one transaction, no staging table.

A row is written once instead of twice, so this is as fast as `COPY` from a binary file. It is used for one worker if
rows need no conversion, no separate counting and no second reading: modes `insert` and `replace`, columns whose bytes
the table accepts as they are, no rejects. Its cost: the table is locked while the load runs (`replace`: nobody can read
it), and a load that fails leaves dead rows for vacuum.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from dbdyno import _core
from dbdyno.base.core_types import MoveCount
from dbdyno.base.errors import MoveError
from dbdyno.move.engines.postgres.merging import MergeCounts
from dbdyno.move.engines.postgres.publish import StagedRows, begin_writing
from dbdyno.move.engines.postgres.rounding import may_differ
from dbdyno.move.loading.pieces import whole_files
from dbdyno.move.loading.request import LoadRequest, LoadResult
from dbdyno.move.reading.progress import FileProgress
from dbdyno.move.reading.run import JobOptions

BATCHES = 16
"""The largest size of a batch is the memory limit divided by this number."""
RULED_SQL = """
select c.relrowsecurity or c.relhasrules from pg_catalog.pg_class c where c.oid = %s::oid
"""


def can_load_directly(
    conn: psycopg.Connection[Any], staged: StagedRows, load_request: LoadRequest, options: JobOptions
) -> bool:
    """Return True if mode, workers and the table's rules let one session load the files straight into the table."""
    if options.workers != 1 or load_request.mode not in ("insert", "replace"):
        return False
    row = None if load_request.create else conn.execute(RULED_SQL, [staged.oid]).fetchone()
    return not (row and row[0])


def wal_sentence(conn: psycopg.Connection[Any], load_request: LoadRequest) -> str:
    """Return a phrase that says whether the server writes the rows to its write-ahead log."""
    row = conn.execute("show wal_level").fetchone()
    fresh = load_request.create or load_request.mode == "replace"
    # A table created or emptied in the same transaction is synced instead, if no replica needs the log.
    return "not logged, because wal_level is minimal" if fresh and row == ("minimal",) else "logged"


def accepts_bytes(staged: StagedRows, files: Sequence[Path], came: Mapping[str, str | None]) -> bool:
    """Return True if the table accepts the bytes of the files as they are.

    Args:
        staged: The target table and its columns.
        files: The files.
        came: The type that each column had at its source, for files written by a job of this user.
    """
    if files[0].suffix == ".csv":
        return False
    if any(one.generated or one.is_parsed or not _same_bytes(one) for one in staged.columns):
        return False
    return not any(may_differ(one) and came.get(one.name) != one.declared for one in staged.columns)


def _same_bytes(column: Any) -> bool:
    """Return True if incoming values have the binary form of the table's type."""
    texts = ("text", "character varying", "character", "bpchar", "name")
    names = {"timestamptz": "timestamp with time zone", "timestamp": "timestamp without time zone"}
    came = str(column.staged.split("(")[0])
    came = {**names, "time": "time without time zone"}.get(came, came)
    return bool(came == column.becomes or (came == "text" and column.becomes in texts))


def load(
    conn: psycopg.Connection[Any],
    staged: StagedRows,
    load_request: LoadRequest,
    files: Sequence[Path],
    options: JobOptions,
    *,
    check: Callable[[Sequence[MoveCount]], None],
    first: Callable[[psycopg.Connection[Any]], None] | None,
    publishing: Callable[[], None],
) -> LoadResult:
    """Load all files in one transaction.

    Args:
        conn: The session that loads.
        staged: The target table and its columns.
        load_request: The target and the mode.
        files: The files.
        options: Memory, rate and progress.
        check: Called with the row count and hash of each file.
        first: Called at the start of the transaction, or None.
        publishing: Called before the commit.

    Raises:
        MoveError: A file cannot be read, or a check failed.
        psycopg.Error: The server reports an error.
    """
    with conn.transaction():
        deferred = begin_writing(conn, staged, load_request, first)
        if load_request.mode == "replace":
            conn.execute(sql.SQL("truncate {}").format(staged.table))
        done = _copy(conn, staged, files, options)
        check(done)
        made = deferred.recreate(conn)
        publishing()
    rows = sum(one["rows"] for one in done)
    return LoadResult(
        len(files),
        rows,
        load_request.mode,
        MergeCounts(new=rows),
        kept=tuple(deferred.kept),
        made=made,
        created=load_request.create,
    )


def _copy(
    conn: psycopg.Connection[Any], staged: StagedRows, files: Sequence[Path], options: JobOptions
) -> list[MoveCount]:
    """Copy all files in one statement, because the server would wait between two statements."""
    names = sql.SQL(", ").join(sql.Identifier(one.name) for one in staged.columns)
    text = sql.SQL("copy {} ({}) from stdin (format binary)").format(staged.table, names)
    source = _core.MoveBytes(files, options.memory_bytes // BATCHES)
    progress = FileProgress(options.progress, whole_files(files))
    begun, sent = time.monotonic(), 0
    with conn.cursor() as cursor:
        with cursor.copy(text) as copy:
            while (piece := _next_bytes(source, files)) is not None:
                copy.write(piece)
                sent += len(piece)
                _wait(options, begun, sent)
                if options.progress is not None:
                    progress.show(sent, source.tallies()[0])
        rows, each = source.tallies()
        if cursor.rowcount != rows:
            raise MoveError(
                f"the server counted {cursor.rowcount:,} rows, but {rows:,} were sent",
                where=str(files[0].parent),
                next_step="check the table's triggers and rules",
            )
    progress.show(sent, rows, whole=True)
    return [{"number": number, "rows": rows, "hash": found} for number, (rows, found) in enumerate(each)]


def _next_bytes(source: _core.MoveBytes, files: Sequence[Path]) -> bytes | None:
    try:
        return source.next()
    except MoveError as error:
        # All files before this one were read to their end.
        raise MoveError(error.message, where=str(files[len(source.tallies()[1])])) from None


def _wait(options: JobOptions, begun: float, sent: int) -> None:
    if options.rate_bytes_per_s:
        early = begun + sent / options.rate_bytes_per_s - time.monotonic()
        if early > 0:
            time.sleep(early)
