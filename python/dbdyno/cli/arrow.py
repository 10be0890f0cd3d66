"""Rows as an Arrow stream (IPC) for data frames: typed, in batches, to a file or a pipe."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from dbdyno.base import escaping
from dbdyno.base.errors import Error
from dbdyno.base.files import file_replacement, os_errors_as
from dbdyno.report.tabular import arrow_library, write_arrow


def write_batches(reader: Any, names: Sequence[str], output: Path | None) -> None:
    """Write a `pyarrow.RecordBatchReader` batch by batch, with its columns renamed to `names`."""
    pa = arrow_library()
    schema = pa.schema([field.with_name(name) for field, name in zip(reader.schema, names, strict=True)])
    with _sink(output) as sink, pa.ipc.new_stream(sink, schema) as writer:
        for batch in reader:
            writer.write_batch(pa.record_batch(batch.columns, schema=schema))


def write_rows(rows: Sequence[Mapping[str, object]], output: Path | None) -> None:
    """Write rows with the same keys; a column with both numbers and text becomes text."""
    arrow_library()
    with _sink(output) as sink:
        write_arrow(rows, sink)


@contextlib.contextmanager
def _sink(output: Path | None) -> Iterator[BinaryIO]:
    if output is None:
        if sys.stdout.isatty():
            raise Error(
                "Arrow is a binary format, which cannot be shown in a terminal",
                next_step="name a file with -o, or pipe the output into another program",
            )
        sys.stdout.flush()
        yield escaping.unwrap_stream(sys.stdout).buffer
        return
    with os_errors_as(Error, "cannot be written", output, "free disk space, or choose another path"):
        output.parent.mkdir(parents=True, exist_ok=True)
        with file_replacement(output) as aside, aside.open("wb") as file:
            yield file
