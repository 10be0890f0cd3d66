"""DuckDB's reader of PostgreSQL (its extension `postgres`), with rows read into a pandas data frame in two ways.

A query's text is passed to the server (`postgres_query`), or DuckDB plans it over an attached database and reads tables
(`scan`).

DuckDB and its extension are in a separate folder (`make setup-clients`), because they must be of one version, which may
differ from the DuckDB that dbdyno uses. The extension is signed by DuckDB's makers, and DuckDB loads no other.

Limits: the reader wraps each query into a transaction (BEGIN, COPY, COMMIT) and resets its connection afterwards
(DISCARD ALL), so what a session runs first would be lost: only the statement timeout survives, as an option of the
connection. It reports errors in words, without an SQLSTATE.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from dbdyno.bench.clients.builtin import DUCKDB_EXTENSION
from dbdyno.bench.clients.harness import FatalClientError, Job, literal

SCANS = "POSTGRES_SCAN"
MOST_SEEN = 1_000


def attach_server(dsn: str, job: Job) -> Any:
    """Return an in-memory DuckDB to which the server is attached as `pg`.

    Raises:
        CannotGoOnError: The job has SQL that each session runs first, whose effect would be lost.
    """
    if job.session_sql:
        raise FatalClientError(
            "DuckDB's reader resets its connection after each query, so settings of a session would be lost"
        )
    import duckdb

    parts = conninfo_to_dict(dsn)
    if password := parts.pop("password", None):
        # DuckDB's errors repeat the connection string; libpq takes the password from here as well.
        os.environ["PGPASSWORD"] = str(password)
    if job.statement_timeout_ms:
        limit = f"-c statement_timeout={job.statement_timeout_ms}"
        parts["options"] = f"{parts.get('options') or ''} {limit}".strip()
    # Otherwise DuckDB would download missing extensions.
    alone: dict[str, str | bool | int | float | list[str]] = {
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
    }
    connection: Any = duckdb.connect(":memory:", config=alone)
    connection.execute(f"load {literal(str(extension()))}")
    connection.execute(f"attach {literal(make_conninfo('', **parts))} as pg (type postgres)")
    return connection


def extension() -> Path:
    """Return the extension's path among the installed packages.

    Raises:
        CannotGoOnError: The extension is not installed.
    """
    spec = find_spec(DUCKDB_EXTENSION)
    for place in (spec.submodule_search_locations or []) if spec else []:
        for file in sorted(Path(place).glob("extensions/*/postgres_scanner.duckdb_extension")):
            return file
    raise FatalClientError(f"the package {DUCKDB_EXTENSION} does not contain the extension")


def server_reader(connection: Any) -> Callable[[str], int]:
    """Return a function that reads a query that the server runs unchanged."""
    return lambda sql: len(connection.execute("from postgres_query('pg', ?)", [sql.rstrip("; \n")]).df())


def duckdb_reader(connection: Any) -> Callable[[str], int]:
    """Return a function that reads a query that DuckDB plans over the server's tables.

    It raises `FatalClientError` for a query that reads no table, since DuckDB would answer that without the server.
    """
    connection.execute("use pg")
    seen: set[str] = set()

    def fetch(sql: str) -> int:
        if sql not in seen and len(seen) < MOST_SEEN:
            plan = " ".join(row[1] for row in connection.execute(f"explain {sql}").fetchall())
            if SCANS not in plan:
                raise FatalClientError("DuckDB answers this query by itself: the query reads no table of the server")
            seen.add(sql)
        return len(connection.execute(sql).df())

    return fetch
