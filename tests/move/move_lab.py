"""What the tests of moving share: a server, commands on it, rows of files by a reader that is not ours."""

from __future__ import annotations

import contextlib
import subprocess
from pathlib import Path
from typing import Any, Self

import duckdb
import psycopg
from psycopg.conninfo import make_conninfo

from command_line import dbdyno
from dbdyno.bench.postgres.embedded import EmbeddedPostgres

SETTINGS: dict[str, Any] = {"autovacuum": False, "fsync": False, "shared_buffers": "32MB"}


class Lab:
    """A server, a folder, and what tests do with both."""

    def __init__(self, engine: EmbeddedPostgres, folder: Path) -> None:
        self.engine = engine
        self.folder = folder
        self.out = folder / "out"
        self.dsn = make_conninfo("", **engine.conninfo())

    def __enter__(self) -> Self:
        self.run("drop schema if exists public cascade", "create schema public")
        return self

    def __exit__(self, *ending: object) -> None:
        return None

    def connect(self) -> psycopg.Connection[Any]:
        """A session in autocommit."""
        return psycopg.connect(self.dsn, autocommit=True)

    def run(self, *statements: str) -> None:
        """Statements in a session of their own."""
        with contextlib.closing(self.connect()) as conn:
            for statement in statements:
                conn.execute(statement.encode())

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Rows of the server."""
        with contextlib.closing(self.connect()) as conn:
            return conn.execute(query.encode()).fetchall()

    def move(self, *words: object) -> subprocess.CompletedProcess[str]:
        """`dbdyno move` of this server into the folder `out`."""
        return dbdyno("move", self.dsn, "--to", self.out, *words)

    def files(self, select: str = "*", where: str = "", pattern: str = "*.parquet") -> list[tuple[Any, ...]]:
        """Rows of the files, by DuckDB."""
        with contextlib.closing(duckdb.connect()) as conn:
            conn.execute("set timezone = 'UTC'")
            return conn.execute(f"select {select} from read_parquet('{self.out}/{pattern}') {where}").fetchall()
