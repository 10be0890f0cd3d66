"""Columns of tables: many rows that seldom change, so that a watch reads them when the catalog was written."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dbdyno.snapshot.postgres.views import COLUMNS

if TYPE_CHECKING:
    from dbdyno.snapshot.postgres.reader import Part, Reader

_CATALOG = 1249
"""The number of pg_attribute, in every version."""
_WRITTEN = (
    "select /* dbdyno */ pg_stat_get_tuples_inserted(%(of)s), pg_stat_get_tuples_updated(%(of)s),"
    " pg_stat_get_tuples_deleted(%(of)s)"
)


class TableColumns:
    """Reads the columns of a database's tables, or gives those of the last reading while pg_attribute was not written.

    The server counts a session's writes when its transaction ends, up to a second late: a change is seen by the
    snapshot after it, or by the next one.
    """

    def __init__(self) -> None:
        self._known: dict[int, tuple[object, Part]] = {}

    def read(self, reader: Reader, database: tuple[int, str]) -> Part:
        """The part of a database; its `elapsed_ns` is 0 where nothing was read."""
        written = reader.connection.execute(_WRITTEN, {"of": _CATALOG}).fetchone()
        before = self._known.get(database[0])
        if before is not None and before[0] == written:
            return replace(before[1], elapsed_ns=0)
        part = reader.read(COLUMNS, database)
        if part.problem is None:
            self._known[database[0]] = (written, part)
        return part
