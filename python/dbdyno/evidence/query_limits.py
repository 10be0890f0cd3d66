"""Restriction of DuckDB connections: the author of a query can read the evidence of the named runs and nothing else.

A query is one statement, a SELECT according to DuckDB's own parser, and each part of it must only read: since DuckDB
2.0 a WITH clause may contain a COPY or an INSERT, and the whole still counts as a SELECT. So nothing is written,
attached, installed or set. The query reads no files but those of the runs, has no network access and sees no Python
variables. Its memory is limited to a part of the machine's memory; what does not fit is spilled to a private folder
that is removed when the process ends.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbdyno.base.errors import EvidenceError
from dbdyno.base.scratch import ScratchFolder
from dbdyno.base.sql_text import literal

if TYPE_CHECKING:
    import duckdb

CGROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
LEAST_BYTES = 256 << 20
READING_NODES = ("SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE")
"""Node types of DuckDB's parser that only read."""

READ_ONLY = "a query cannot change evidence"


def restrict(connection: duckdb.DuckDBPyConnection, *folders: Path) -> None:
    """Restrict a connection to the files in these folders; this cannot be undone."""
    scratch = private_folder()
    connection.execute(f"set memory_limit = '{memory_bytes()}B'")
    connection.execute(f"set temp_directory = {literal(str(scratch))}")
    connection.execute(f"set max_temp_directory_size = '{shutil.disk_usage(scratch).free // 2}B'")
    connection.execute("set python_enable_replacements = false")
    connection.execute("set autoinstall_known_extensions = false")
    connection.execute("set autoload_known_extensions = false")
    allowed = ", ".join(literal(str(folder.resolve())) for folder in folders)
    connection.execute(f"set allowed_directories = [{allowed}]")
    connection.execute("set enable_external_access = false")
    connection.execute("set lock_configuration = true")


def require_select(connection: duckdb.DuckDBPyConnection, text: str) -> duckdb.Statement:
    """Return the single SELECT statement that the text consists of, and begin a read-only transaction.

    DESCRIBE, SUMMARIZE and SHOW count as SELECT, since they only read.

    Raises:
        EvidenceError: the text is anything else, or cannot be parsed.
    """
    import duckdb

    try:
        statements = connection.extract_statements(text)
    except duckdb.Error as error:
        raise EvidenceError(str(error), where="the query") from error
    kinds = [statement.type.name for statement in statements]
    if kinds != ["SELECT"]:
        found = " and ".join(kinds) if kinds else "nothing"
        raise EvidenceError(
            f"expected one SELECT, found {found}: {READ_ONLY}",
            where="the query",
            next_step="give one SELECT; to store its rows, add -o FILE.csv",
        )
    for kind in _parts(connection, text):
        if kind not in READING_NODES:
            found = kind.removesuffix("_NODE").removesuffix("_QUERY")
            raise EvidenceError(
                f"expected one SELECT, found {found} in it: {READ_ONLY}",
                where="the query",
                next_step="give one SELECT; to store its rows, add -o FILE.csv",
            )
    connection.execute("begin transaction read only")
    return statements[0]


def _parts(connection: duckdb.DuckDBPyConnection, text: str) -> Iterator[str]:
    """Yield the node types of the queries that a SELECT is made of, as the parser names them."""
    row = connection.execute("select json_serialize_sql(?)", [text]).fetchone()
    left: list[Any] = [json.loads(row[0]) if row else {"error": True}]
    if left[0].get("error"):
        yield str(left[0].get("error_message", "what cannot be parsed"))
    while left:
        one = left.pop()
        if isinstance(one, dict):
            if "cte_map" in one:
                yield str(one.get("type"))
            left.extend(one.values())
        elif isinstance(one, list):
            left.extend(one)


def memory_bytes() -> int:
    """Return the memory limit for a query: half of the memory of the machine or of this process's cgroup, in bytes.

    The limit is never below `LEAST_BYTES`.
    """
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for place in CGROUP_LIMITS:
        with contextlib.suppress(OSError, ValueError):  # the text `max` means no limit
            limits.append(int(Path(place).read_text()))
    return max(min(limits) // 2, LEAST_BYTES)


def private_folder() -> Path:
    """Return this process's folder for spilled query data; only this user can read it, and it is removed at exit."""
    return _scratch().path


@functools.cache
def _scratch() -> ScratchFolder:
    return ScratchFolder("sql")
