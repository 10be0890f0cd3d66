"""Rows as an Arrow stream (IPC) for data frames: typed, in batches, to a file or a pipe."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, BinaryIO

from dbdyno.base import visible
from dbdyno.base.errors import Error
from dbdyno.base.files import written_by_name


def put_batches(reader: Any, names: Sequence[str], output: Path | None) -> None:
    """Write a `pyarrow.RecordBatchReader` batch by batch, its columns under these names."""
    pa = library()
    schema = pa.schema([field.with_name(name) for field, name in zip(reader.schema, names, strict=True)])
    with _sink(output) as sink, pa.ipc.new_stream(sink, schema) as writer:
        for batch in reader:
            writer.write_batch(pa.record_batch(batch.columns, schema=schema))


def put_rows(rows: Sequence[Mapping[str, object]], output: Path | None) -> None:
    """Write rows with the same keys; a column with both numbers and text becomes text."""
    pa = library()
    columns = {name: _column(pa, [row[name] for row in rows]) for name in (rows[0] if rows else {})}
    table = pa.table(columns)
    with _sink(output) as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)


def library() -> ModuleType:
    """Return the module pyarrow.

    Raises:
        Error: pyarrow is not installed.
    """
    try:
        import pyarrow as pa
        import pyarrow.ipc
    except ImportError as error:
        raise Error("Arrow needs the package pyarrow", next_step="pip install 'dbdyno[arrow]'") from error
    return pa  # type: ignore[no-any-return]


def _column(pa: ModuleType, values: list[Any]) -> Any:
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.array([None if value is None else str(value) for value in values], pa.string())


@contextlib.contextmanager
def _sink(output: Path | None) -> Iterator[BinaryIO]:
    if output is None:
        if sys.stdout.isatty():
            raise Error(
                "Arrow is a binary format: it is not written to a terminal",
                next_step="name a file by -o, or pipe it into another program",
            )
        sys.stdout.flush()
        yield visible.unwrapped(sys.stdout).buffer
        return
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        with written_by_name(output) as aside, aside.open("wb") as file:
            yield file
    except OSError as error:
        raise Error(
            f"cannot be written: {error.strerror}", where=str(output), next_step="choose another place, or make room"
        ) from error
