"""DuckDB's reader of PostgreSQL (its extension `postgres`), rows into a pandas data frame, two ways: a query's text is
handed to the server (`postgres_query`), or DuckDB plans it over an attached database and reads tables (`scan`).

DuckDB comes with its extension in a folder of its own (`make setup-clients`), since the two are of one version, which
need not be that of the DuckDB that dbdyno asks. The extension is signed by DuckDB's makers, and DuckDB loads no other.

Limits: the reader wraps each query into a transaction of its own (BEGIN, COPY, COMMIT) and resets its connection after
it (DISCARD ALL), so what a session runs first would be gone: only the limit of statements stays, as an option of the
connection. It tells errors in words, without an SQLSTATE.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from dbdyno.bench.clients.builtin import DUCKDB_EXTENSION
from dbdyno.bench.clients.harness import CannotGoOnError, Job, literal

SCANS = "POSTGRES_SCAN"
MOST_SEEN = 1_000


def attached(dsn: str, job: Job) -> Any:
    """A DuckDB in memory that the server is attached to, as `pg`."""
    if job.session_sql:
        raise CannotGoOnError(
            "DuckDB's reader resets its connection after each query: no setting of a session would stay"
        )
    import duckdb

    parts = conninfo_to_dict(dsn)
    if password := parts.pop("password", None):
        # DuckDB's errors repeat the connection string; libpq takes the password from here as well.
        os.environ["PGPASSWORD"] = str(password)
    if job.statement_timeout_ms:
        limit = f"-c statement_timeout={job.statement_timeout_ms}"
        parts["options"] = f"{parts.get('options') or ''} {limit}".strip()
    # What DuckDB does not have it would download.
    alone: dict[str, str | bool | int | float | list[str]] = {
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
    }
    connection: Any = duckdb.connect(":memory:", config=alone)
    connection.execute(f"load {literal(str(extension()))}")
    connection.execute(f"attach {literal(make_conninfo('', **parts))} as pg (type postgres)")
    return connection


def extension() -> Path:
    """The extension's file, among the packages of this process."""
    spec = find_spec(DUCKDB_EXTENSION)
    for place in (spec.submodule_search_locations or []) if spec else []:
        for file in sorted(Path(place).glob("extensions/*/postgres_scanner.duckdb_extension")):
            return file
    raise CannotGoOnError(f"the package {DUCKDB_EXTENSION} has no extension in it")


def handed(connection: Any) -> Callable[[str], int]:
    """Reads a query that the server runs as it is."""
    return lambda sql: len(connection.execute("from postgres_query('pg', ?)", [sql.rstrip("; \n")]).df())


def scanned(connection: Any) -> Callable[[str], int]:
    """Reads a query that DuckDB plans over tables of the server; one that reads none is refused, since DuckDB would
    answer it alone."""
    connection.execute("use pg")
    seen: set[str] = set()

    def fetch(sql: str) -> int:
        if sql not in seen and len(seen) < MOST_SEEN:
            plan = " ".join(row[1] for row in connection.execute(f"explain {sql}").fetchall())
            if SCANS not in plan:
                raise CannotGoOnError("DuckDB answers this query alone: it reads no table of the server")
            seen.add(sql)
        return len(connection.execute(sql).df())

    return fetch
