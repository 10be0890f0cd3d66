"""In-memory DuckDB connections, configured the same way for all packages."""

from __future__ import annotations

import contextlib
import itertools
import os
import weakref
from functools import cache
from typing import TYPE_CHECKING

from dbdyno.base.json_types import TableRow
from dbdyno.base.signals import interruptible

if TYPE_CHECKING:
    import duckdb

_OWN_NAMES: dict[str, str | bool | int | float | list[str]] = {"python_enable_replacements": False}
"""Without this setting DuckDB looks up an unknown table name among the variables of all running Python functions: the
result of a query would depend on its caller, and the lookup costs a tenth of a short query.
"""

_FRUGAL: dict[str, str | bool | int | float | list[str]] = {}
"""Limits that a program has set for its databases."""

ALONE = "memory"
"""Name of the database in which a connection of `memory_connection` creates tables."""


def memory_connection(*, in_order: bool = False) -> duckdb.DuckDBPyConnection:
    """Return a connection to a new private database, in which a name can only refer to a table.

    With `in_order` it uses one thread, so that sums of floats do not depend on which thread was faster. For queries
    over small files, one thread also takes less processor time. DuckDB caches no bytes of files, because the system
    does.
    """
    from dbdyno.evidence.duck import duckdb

    small_files = {"threads": 1, "enable_external_file_cache": False, **_read_at_once()} if in_order else {}
    return interruptible(duckdb.connect(config={**_OWN_NAMES, **small_files, **_FRUGAL}))


def _read_at_once() -> dict[str, int]:
    """Return the DuckDB setting with which each query thread reads files itself.

    Since DuckDB 2.0 eight more threads read them, which for small local files takes more processor time.
    """
    from dbdyno.evidence.duck import duckdb

    return {"async_threads": 0} if int(duckdb.__version__.partition(".")[0]) >= 2 else {}


def row_dicts(cursor: duckdb.DuckDBPyConnection) -> list[TableRow]:
    """Return the rows of an executed query as dicts by column name."""
    names = [column[0] for column in cursor.description or []]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def limit_memory(memory: str) -> None:
    """Limit the databases that this process opens from now on to one thread and this much memory each.

    Data that need more memory are spilled to disk.
    """
    from dbdyno.evidence.query_limits import private_folder

    _FRUGAL.update(threads=1, memory_limit=memory, temp_directory=str(private_folder()))


def file_connection(*, in_order: bool = False) -> duckdb.DuckDBPyConnection:
    """Return a connection for a few internal statements that read and write files, with at most temporary tables.

    All these connections share one database of the process: creating a database takes 20 ms of processor time, a
    connection to an existing one a tenth of a millisecond. Settings made and objects created in it would be visible to
    all of them. With `in_order` it is the database of `tables_connection`, whose queries use one thread.
    """
    return interruptible(_shared_database(os.getpid(), in_order=in_order).cursor())


def tables_connection() -> duckdb.DuckDBPyConnection:
    """Return a connection to private tables, which one thread computes, as for `memory_connection` with `in_order`.

    The tables are in a database that is attached to one that the process shares: this takes a fifth of a millisecond,
    whereas a new database would take 15 ms. Its settings are shared, too: a user's query must not run here.
    `close_tables` frees it.
    """
    shared = _shared_database(os.getpid(), in_order=True)
    connection = interruptible(shared.cursor())
    name = f"tables_{next(_NUMBERS)}"
    connection.execute(f"attach ':memory:' as {name}")
    connection.execute(f"use {name}")
    weakref.finalize(connection, _detach, shared, name).atexit = False
    return connection


def close_tables(connection: duckdb.DuckDBPyConnection) -> None:
    """Close a connection returned by `tables_connection`, and free its tables."""
    name = current_database(connection)
    connection.close()
    _detach(_shared_database(os.getpid(), in_order=True), name)


def current_database(connection: duckdb.DuckDBPyConnection) -> str:
    """Return the name of the database in which the connection creates tables."""
    return str(connection.execute("select current_database()").fetchall()[0][0])


_NUMBERS = itertools.count()


def _detach(shared: duckdb.DuckDBPyConnection, name: str) -> None:
    from dbdyno.evidence.duck import duckdb

    with contextlib.suppress(duckdb.Error), shared.cursor() as connection:
        connection.execute(f"detach database if exists {name}")


@cache
def _shared_database(_process: int, *, in_order: bool) -> duckdb.DuckDBPyConnection:
    from dbdyno.evidence.duck import duckdb

    # A process that runs for days must not cache the files that it has read.
    settings = {**_OWN_NAMES, "enable_external_file_cache": False, **_read_at_once()}
    return duckdb.connect(config={**settings, **({"threads": 1, **_FRUGAL} if in_order else {})})
