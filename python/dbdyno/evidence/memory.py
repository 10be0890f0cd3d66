"""DuckDB in memory, as every room uses it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb


def in_memory() -> duckdb.DuckDBPyConnection:
    """A connection to a database of its own, in which a name is a table or nothing.

    DuckDB would look for a name it does not know among the variables of all Python functions that are running: what a
    query reads would depend on who calls, and looking costs a tenth of a short query.
    """
    import duckdb

    return duckdb.connect(config={"python_enable_replacements": False})
