"""Load of files into a PostgreSQL table, all or nothing.

Workers load the files into a private staging table (unlogged, beside the target) by binary COPY. One transaction then
publishes it: until its commit the target does not change, whatever fails. Values that a file holds as text because
Parquet has no such type are converted in that transaction by the type's input function.

    insert     adds the rows
    replace    empties the table first (TRUNCATE) and adds the rows
    replace-partitions   replaces the partitions that have new rows, as a whole
    update     changes rows with the same key, through a table of the rows that differ
    merge      the same, and adds rows whose key is new
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg

from dbdyno.base.errors import MoveError
from dbdyno.bench.postgres.server import Postgres
from dbdyno.move.engines.postgres.source import LOCK_TIMEOUT_MS, application_name, failure, session_settings
from dbdyno.move.engines.postgres.target import match_target
from dbdyno.move.loading.files import describe_files, files_of, rejects_of
from dbdyno.move.loading.methods import FileLoad
from dbdyno.move.loading.pieces import CSV
from dbdyno.move.loading.rejects import is_row_error
from dbdyno.move.loading.request import LoadRequest, LoadResult
from dbdyno.move.reading.run import JobOptions

DUPLICATE_KEY = "23505"
_UNKNOWN = "the rows were published: either all of them are in the table, or none"
_COUNT = "count the rows of the table before you run the load again"


def load_files(
    target: Postgres,
    folder: Path,
    load_request: LoadRequest,
    options: JobOptions,
    level: str = "counts",
) -> LoadResult:
    """Load one file or the files of a folder into a table.

    If the load fails, the table is unchanged, unless the error says otherwise: after a connection lost during the
    commit the outcome is unknown.

    Args:
        target: The PostgreSQL server to load into.
        folder: A file, or a folder of files.
        load_request: The target table, the mode and the key.
        options: Number of workers, memory and other limits.
        level: The level of verification: "source" and "target" read the staged rows again and compare their hash with
            that of the files; "target" also compares the table with the staged rows before the commit.

    Raises:
        MoveError: The load was refused or failed.
    """
    files, records = files_of(folder)
    heads = describe_files(files)[0][0]
    rejects = rejects_of(load_request, files)
    loading: FileLoad | None = None
    try:
        with open_session(target, load_request) as conn:
            goal = match_target(conn, load_request, heads)
            loading = FileLoad(target, conn, files, records, load_request, options, goal, heads, rejects, level)
            loaded = loading.run()
    except psycopg.Error as error:
        lost = error.sqlstate is None or error.sqlstate.startswith(("57P", "08"))
        if loading is not None and loading.publishing and lost:
            raise MoveError(
                f"the connection was lost while {_UNKNOWN}", where=load_request.table, next_step=_COUNT
            ) from None
        raise _refusal(error, load_request) from None
    except KeyboardInterrupt as stop:
        publishing = loading is not None and loading.publishing
        words = f"{_UNKNOWN}: {_COUNT}" if publishing else f"nothing of {load_request.table} was changed"
        raise KeyboardInterrupt(words) from stop
    read_again = level in ("source", "target") and files[0].suffix != CSV
    return replace(loaded, files=len(files), records=records is not None, read_again=read_again)


def _refusal(error: psycopg.Error, load_request: LoadRequest) -> MoveError:
    """Return the server's error with a next step; if the error is in a single row, the step suggests --rejects."""
    found = failure(error, load_request.table)
    if load_request.rejects is None and is_row_error(error) and error.sqlstate != DUPLICATE_KEY:
        step = "repair the rows or the table, or write such rows to a file with --rejects; nothing was changed"
        return MoveError(found.message, where=found.where, next_step=step)
    return found


@contextlib.contextmanager
def open_session(target: Postgres, load_request: LoadRequest) -> Iterator[psycopg.Connection[Any]]:
    """Open the session that prepares the load and publishes its rows, and close it on exit.

    Raises:
        TargetError: The user's configuration names the server as live, or it does not answer.
    """
    target.refuse_live()
    name = application_name(f"into {load_request.table}"[:40])
    with contextlib.closing(target.connect(application_name=name, statement_timeout_ms=0)) as conn:
        conn.execute("select set_config('lock_timeout', %s, false)", [str(LOCK_TIMEOUT_MS)])
        conn.execute(session_settings(conn, lasting=True))
        yield conn
