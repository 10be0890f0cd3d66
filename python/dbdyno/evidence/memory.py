"""DuckDB in memory, as every room uses it."""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING

from dbdyno.base.signals import interruptible

if TYPE_CHECKING:
    import duckdb

_OWN_NAMES: dict[str, str | bool | int | float | list[str]] = {"python_enable_replacements": False}
"""DuckDB would look for a name it does not know among the variables of all Python functions that are running: what a
query reads would depend on who calls, and looking costs a tenth of a short query."""


def in_memory() -> duckdb.DuckDBPyConnection:
    """A connection to a database of its own, in which a name is a table or nothing."""
    import duckdb

    return interruptible(duckdb.connect(config=_OWN_NAMES))


def for_files() -> duckdb.DuckDBPyConnection:
    """A connection for a few statements of ours that read and write files, with temporary tables at most.

    It is one to the process's only database of this kind: making a database takes 20 ms of processor time, a
    connection to one that stands a tenth of a millisecond. What is set or created in it, all would see.
    """
    return interruptible(_shared(os.getpid()).cursor())


@cache
def _shared(_process: int) -> duckdb.DuckDBPyConnection:
    import duckdb

    # A process that watches for days is to keep nothing of the files that it read.
    return duckdb.connect(config={**_OWN_NAMES, "enable_external_file_cache": False})
