"""Small tables of a run as Parquet files that are written completely or not at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from dbdyno.base.errors import EvidenceError, errors_as
from dbdyno.base.files import file_replacement
from dbdyno.evidence.memory import file_connection


def write_table(path: Path, columns: Mapping[str, Sequence[str]]) -> None:
    """Write text columns of equal length as one Parquet file, completely or not at all.

    Raises:
        EvidenceError: the file cannot be written.
    """
    import duckdb

    names = ", ".join(f'unnest(${at}::varchar[]) as "{name}"' for at, name in enumerate(columns, 1))
    with file_connection() as connection:
        connection.execute(
            f"create temp table rows as select {names}",
            [list(values) for values in columns.values()],
        )
        refused, step = (duckdb.Error, OSError), "free disk space or check the permissions"
        with errors_as(EvidenceError, refused, "cannot be written", str(path), step), file_replacement(path) as aside:
            connection.table("rows").write_parquet(str(aside), compression="zstd")
