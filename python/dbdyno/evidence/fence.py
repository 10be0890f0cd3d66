"""The fence around DuckDB: what a query's author may do is read the evidence of the runs named, and nothing else.

One statement, a SELECT by DuckDB's own parser, and each part of it a question: since DuckDB 2.0 a WITH may hold a COPY
or an INSERT, and the whole still counts as a SELECT. So nothing is written, attached, installed or set. No file but
those of the runs, no network, no variable of ours. Memory is bounded by the machine; what does not fit is spilled into
a private folder, which goes with the process.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbdyno.base.errors import EvidenceError

if TYPE_CHECKING:
    import duckdb

    from dbdyno.evidence.run import Run

CGROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
LEAST_BYTES = 256 << 20
QUESTIONS = ("SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE")
"""The parts of a SELECT that read."""


def lock(connection: duckdb.DuckDBPyConnection, *runs: Run) -> None:
    """Closes a connection to everything but the folders of these runs, for good."""
    scratch = private_folder()
    connection.execute(f"set memory_limit = '{memory_bytes()}B'")
    connection.execute(f"set temp_directory = {_literal(str(scratch))}")
    connection.execute(f"set max_temp_directory_size = '{shutil.disk_usage(scratch).free // 2}B'")
    connection.execute("set python_enable_replacements = false")
    connection.execute("set autoinstall_known_extensions = false")
    connection.execute("set autoload_known_extensions = false")
    folders = ", ".join(_literal(str(run.path.resolve())) for run in runs)
    connection.execute(f"set allowed_directories = [{folders}]")
    connection.execute("set enable_external_access = false")
    connection.execute("set lock_configuration = true")


def only_select(connection: duckdb.DuckDBPyConnection, text: str) -> duckdb.Statement:
    """The one SELECT that the text is; raises `EvidenceError` for anything else. DESCRIBE, SUMMARIZE and SHOW count as
    such: they read."""
    import duckdb

    try:
        statements = connection.extract_statements(text)
    except duckdb.Error as error:
        raise EvidenceError(str(error), where="the query") from error
    kinds = [statement.type.name for statement in statements]
    if kinds != ["SELECT"]:
        found = " and ".join(kinds) if kinds else "nothing"
        raise EvidenceError(
            f"expected one SELECT, found {found}: evidence is read, never changed",
            where="the query",
            next_step="write the rows where you want them with -o FILE.csv, or open the run's Parquet files elsewhere",
        )
    for kind in _parts(connection, text):
        if kind not in QUESTIONS:
            found = kind.removesuffix("_NODE").removesuffix("_QUERY")
            raise EvidenceError(
                f"expected one SELECT, found {found} in it: evidence is read, never changed",
                where="the query",
                next_step="write the rows where you want them with -o FILE.csv",
            )
    connection.execute("begin transaction read only")
    return statements[0]


def _parts(connection: duckdb.DuckDBPyConnection, text: str) -> Iterator[str]:
    """The kinds of the queries that a SELECT is made of, as the parser names them."""
    row = connection.execute("select json_serialize_sql(?)", [text]).fetchone()
    left: list[Any] = [json.loads(row[0]) if row else {"error": True}]
    if left[0].get("error"):
        yield str(left[0].get("error_message", "what cannot be taken apart"))
    while left:
        one = left.pop()
        if isinstance(one, dict):
            if "cte_map" in one:
                yield str(one.get("type"))
            left.extend(one.values())
        elif isinstance(one, list):
            left.extend(one)


def memory_bytes() -> int:
    """How much memory a query may take: half of what the machine, or the group this process is in, has."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for place in CGROUP_LIMITS:
        with contextlib.suppress(OSError, ValueError):  # `max` is no number: no limit
            limits.append(int(Path(place).read_text()))
    return max(min(limits) // 2, LEAST_BYTES)


@functools.cache
def private_folder() -> Path:
    """A folder for what a query spills: nobody else's, and gone with this process."""
    folder = Path(tempfile.mkdtemp(prefix="dbdyno-sql-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
