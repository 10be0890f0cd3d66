"""Writing of views as Parquet by DuckDB; if the engine sends CSV, no Python code runs per value.

A folder whose writer was killed has no manifest and does not count, so files need no renaming.
"""

from __future__ import annotations

import hashlib
from io import FileIO
from pathlib import Path
from typing import Any, Protocol, cast

from dbdyno.base.closeable import Closeable
from dbdyno.base.errors import SnapshotError
from dbdyno.base.files import restrict_mode
from dbdyno.base.sql_text import literal, quoted
from dbdyno.evidence.memory import file_connection
from dbdyno.snapshot.engines.view import View
from dbdyno.snapshot.store.records import ViewRecord

_SUM_BYTES = 12
PIECE = 1 << 18
"""Number of bytes that are read at once for a checksum."""
_SMALL_ROWS, _SMALL_BYTES = 64, 8192
"""Limits of a view for which a context of zstd for each column takes more time than its rows, and saves no space."""
REUSED_KEYS = ("file", "in", "rows", "digest", "file_sum")
"""Keys of the previous record that are reused if the view did not change."""


class PreviousSnapshot(Protocol):
    """Interface to the target's previous snapshot, as far as a writer needs it."""

    @property
    def views(self) -> dict[str, ViewRecord]:
        """Return the records of the views by name."""
        ...

    def problem(self, view: str) -> tuple[str, str | None] | None:
        """Return why a view cannot be read, and the next step; None if it can be read."""
        ...


class Writer(Closeable):
    """Writer of views into one folder; a context manager over one DuckDB connection."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._connection = file_connection()

    def write(self, view: View, before: PreviousSnapshot | None) -> ViewRecord:
        """Write one view and return its record for the manifest.

        `before` is the previous snapshot: if nothing changed and its file is intact, that file is named instead.

        Raises:
            SnapshotError: The view cannot be written.
        """
        record: ViewRecord = {
            "scope": view.scope,
            "scope_by": view.scope_by,
            "appearance": view.appearance,
            "elapsed_ns": view.elapsed_ns,
            "columns": [[c.name, c.kind, c.unit, c.type] for c in view.columns],
            "rows": 0,
        }
        if view.problem is not None:
            return {**record, "problem": view.problem, "next_step": view.next_step}
        digest = _digest(view)
        old: ViewRecord = before.views.get(view.name, {}) if before else {}
        same = old.get("digest") == digest and old["columns"] == record["columns"]
        if same and before is not None and before.problem(view.name) is None:
            return cast("ViewRecord", record | {key: value for key, value in old.items() if key in REUSED_KEYS})
        path = self.folder / f"{view.name}.parquet"
        rows = self._put(view, path)
        file = f"{self.folder.name}/{path.name}"
        return {**record, "file": file, "rows": rows, "digest": digest, "file_sum": file_checksum(path)}

    def _put(self, view: View, path: Path) -> int:
        from dbdyno.evidence.duck import duckdb

        try:
            if isinstance(view.rows, bytes):
                try:
                    return self._from_csv(view, view.rows, path)
                except duckdb.InvalidInputException:  # bytes that are not UTF-8
                    return self._from_csv(view, view.rows.decode(errors="replace").encode(), path)
            return self._from_rows(view, view.rows, path)
        except (duckdb.Error, OSError) as error:
            raise SnapshotError(
                f"cannot be written: {str(error).splitlines()[0]}",
                where=str(path),
                next_step="free disk space or check the permissions, or name another folder with --store",
            ) from error

    def _from_csv(self, view: View, data: bytes, path: Path) -> int:
        aside = path.with_suffix(".csv")
        columns = ", ".join(f"{quoted(c.name)}: '{c.type}'" for c in view.columns)
        try:
            aside.write_bytes(data)
            return write_query(
                self._connection,
                f"select * from read_csv({literal(str(aside))}, header=false, delim=',',"
                f" quote='\"', escape='\"', nullstr='', allow_quoted_nulls=false, new_line='\\n',"
                f" auto_detect=false, max_line_size=200000000, parallel=false,"
                f" columns={{{columns}}}){_ordered(view.order_by)}",
                path,
                small=len(data) <= _SMALL_BYTES,
            )
        finally:
            aside.unlink(missing_ok=True)

    def _from_rows(self, view: View, rows: list[tuple[Any, ...]], path: Path) -> int:
        values = [list(v) for v in zip(*rows, strict=True)] or [[] for _ in view.columns]
        names = ", ".join(f"unnest(${at}::{c.type}[]) as {quoted(c.name)}" for at, c in enumerate(view.columns, 1))
        return write_query(self._connection, f"select {names}", path, values, small=len(rows) <= _SMALL_ROWS)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def _ordered(names: tuple[str, ...]) -> str:
    return f" order by {', '.join(map(quoted, names))}" if names else ""


def write_query(
    connection: Any, query: str, path: Path, values: list[list[Any]] | None = None, *, small: bool = False
) -> int:
    """Write the rows of a query to a Parquet file, and return their number.

    `values` are the values of the query's parameters. `small` says that there are too few rows for zstd.
    """
    codec = "snappy" if small else "zstd"
    copy = f"copy ({query}) to {literal(str(path))} (format parquet, compression {codec})"
    row = connection.execute(copy, values).fetchone()
    restrict_mode(path)
    return int(row[0]) if row else 0


def _digest(view: View) -> str:
    data = view.rows if isinstance(view.rows, bytes) else repr(view.rows).encode()
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def file_checksum(path: Path) -> str:
    """Return the checksum of a file on disk."""
    with path.open("rb", buffering=0) as file:
        return checksum_of(file, path.stat().st_size)


def checksum_of(file: FileIO, size: int) -> str:
    """Return the checksum of an open file of about this size."""
    digest = hashlib.blake2b(digest_size=_SUM_BYTES)
    while piece := file.read(min(size + 1, PIECE)):
        digest.update(piece)
    return digest.hexdigest()


def checksum_of_bytes(whole: bytes) -> str:
    """Return the checksum of a file's bytes."""
    return hashlib.blake2b(whole, digest_size=_SUM_BYTES).hexdigest()
