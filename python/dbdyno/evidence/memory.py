"""In-memory DuckDB connections, configured the same way for all packages."""

from __future__ import annotations

import os
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
"""Limits that a program has set for its private databases."""


def memory_connection(*, in_order: bool = False) -> duckdb.DuckDBPyConnection:
    """Return a connection to a new private database, in which a name can only refer to a table.

    With `in_order` it uses one thread, so that sums of floats do not depend on which thread was faster. For queries
    over small files that also takes less processor time; the system caches their bytes, so DuckDB does not.
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
    """Return the rows of an executed query by column name."""
    names = [column[0] for column in cursor.description or []]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def limit_memory(memory: str) -> None:
    """Limit each private database of this process to one thread and this much memory; more is spilled to disk."""
    from dbdyno.evidence.query_limits import private_folder

    _FRUGAL.update(threads=1, memory_limit=memory, temp_directory=str(private_folder()))


def file_connection() -> duckdb.DuckDBPyConnection:
    """Return a connection for a few internal statements that read and write files, with at most temporary tables.

    All these connections share the process's only database of this kind: creating a database takes 20 ms of processor
    time, a connection to an existing one a tenth of a millisecond. Settings made and objects created in it would be
    visible to all of them.
    """
    return interruptible(_shared_connection(os.getpid()).cursor())


@cache
def _shared_connection(_process: int) -> duckdb.DuckDBPyConnection:
    from dbdyno.evidence.duck import duckdb

    # A process that runs for days must not cache the files that it has read.
    return duckdb.connect(config={**_OWN_NAMES, "enable_external_file_cache": False, **_read_at_once()})
