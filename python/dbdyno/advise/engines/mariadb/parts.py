"""What a MariaDB counts: status, statements by digest, files. Counters are those since the start or since a reset."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Status:
    """The global status, names in lower case, numbers only; `span_s`: how long it was counted."""

    values: Mapping[str, int]
    span_s: float

    def get(self, name: str) -> int | None:
        """A counter; None where this version has none of that name."""
        return self.values.get(name)


@dataclass(frozen=True, slots=True)
class Digest:
    """Statements of one digest (performance_schema). `without_index`: executions that read a table whole."""

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
    """Reads and writes of one kind of file (performance_schema): `wait/io/file/innodb/innodb_data_file`."""

    event: str
    reads: int
    read_ms: float
    ms: float
