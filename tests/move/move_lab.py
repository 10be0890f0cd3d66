"""Helpers of the tests of moves: a server, commands on it, and files read by DuckDB instead of our reader."""

from __future__ import annotations

import contextlib
import multiprocessing
import subprocess
import sys
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Self

import duckdb
import psycopg
from psycopg.conninfo import make_conninfo

from command_line import dbdyno, succeeded
from dbdyno.bench.postgres.embedded import EmbeddedPostgres

SETTINGS: dict[str, Any] = {"autovacuum": False, "fsync": False, "shared_buffers": "32MB"}
ROWS = 20_000
"""Number of rows of the fixture `table`."""


def started(*words: object) -> BaseProcess:
    """Start `dbdyno move` in a forked process, which saves a second start of the interpreter."""
    process = multiprocessing.get_context("fork").Process(target=_move, args=(words,), daemon=True)
    process.start()
    return process


def _move(words: tuple[object, ...]) -> None:
    sys.exit(dbdyno("move", *words).returncode)


class Lab:
    """A server and a folder, with the operations that tests need."""

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
        """Open a session in autocommit mode."""
        return psycopg.connect(self.dsn, autocommit=True)

    def run(self, *statements: str) -> None:
        """Execute statements in a new session and close it."""
        with contextlib.closing(self.connect()) as conn:
            for statement in statements:
                conn.execute(statement.encode())

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        with contextlib.closing(self.connect()) as conn:
            return conn.execute(query.encode()).fetchall()

    def move(self, *words: object) -> subprocess.CompletedProcess[str]:
        """Run `dbdyno move` from this server into the folder `out`."""
        return dbdyno("move", self.dsn, "--to", self.out, *words)

    def moved(self, *words: object) -> subprocess.CompletedProcess[str]:
        """Move from this server into the folder `out`, which must succeed."""
        return succeeded("move", self.dsn, "--to", self.out, *words)

    def write(self, select: str) -> None:
        """Write the rows of a query of DuckDB as a file that no job wrote."""
        self.out.mkdir(exist_ok=True)
        with contextlib.closing(duckdb.connect()) as conn:
            conn.execute(f"copy ({select}) to '{self.out}/a.parquet' (format parquet)")

    def files(self, select: str = "*", where: str = "", pattern: str = "*.parquet") -> list[tuple[Any, ...]]:
        """Return rows of the files, read by DuckDB."""
        with contextlib.closing(duckdb.connect()) as conn:
            conn.execute("set timezone = 'UTC'")
            return conn.execute(f"select {select} from read_parquet('{self.out}/{pattern}') {where}").fetchall()
