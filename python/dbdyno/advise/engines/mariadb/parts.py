"""Kinds of evidence about MariaDB: status, statements by digest, files; counters count from server start or a reset."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Status:
    """Numeric values of the global status, with names in lower case; `span_s` is the number of seconds covered."""

    values: Mapping[str, int]
    span_s: float

    def get(self, name: str) -> int | None:
        """Return a counter, or None if this version does not have it."""
        return self.values.get(name)


@dataclass(frozen=True, slots=True)
class Digest:
    """Statements with one digest (performance_schema); `without_index` counts executions that read a whole table."""

    identifier: str
    text: str
    calls: int
    ms: float
    examined: int
    sent: int
    temp_tables: int
    temp_disk_tables: int
    without_index: int


@dataclass(frozen=True, slots=True)
class FileIo:
    """Reads and writes of one kind of file (performance_schema), such as `wait/io/file/innodb/innodb_data_file`."""

    event: str
    reads: int
    read_ms: float
    ms: float
