"""Columns of tables, and what the planner knows of them: rows that seldom change, so that a watch reads them when the
catalog that they come from was written."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dbdyno.snapshot.postgres.views import COLUMNS, PLANNER, Source

if TYPE_CHECKING:
    from dbdyno.snapshot.postgres.reader import Part, Reader

_CATALOGS = ((COLUMNS, 1249), (PLANNER, 2619))
"""What is read so, and the number of its catalog in every version: pg_attribute, pg_statistic."""
_WRITTEN = (
    "select /* dbdyno */ pg_stat_get_tuples_inserted(%(of)s), pg_stat_get_tuples_updated(%(of)s),"
    " pg_stat_get_tuples_deleted(%(of)s)"
)


class Seldom:
    """Reads a view of a database, or gives what was read last while its catalog was not written.

    The server counts a session's writes when its transaction ends, up to a second late: a change is seen by the
    snapshot after it, or by the next one.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, int], tuple[object, Part]] = {}

    def catalog(self, source: Source) -> int | None:
        """The number of the catalog that a view comes from; None where it is read each time."""
        return next((number for one, number in _CATALOGS if one is source), None)

    def read(self, reader: Reader, source: Source, database: tuple[int, str]) -> Part:
        """The part of a database; its `elapsed_ns` is 0 where nothing was read."""
        key = (source.name, database[0])
        written = reader.connection.execute(_WRITTEN, {"of": self.catalog(source)}).fetchone()
        before = self._known.get(key)
        if before is not None and before[0] == written:
            return replace(before[1], elapsed_ns=0)
        part = reader.read(source, database)
        if part.problem is None:
            self._known[key] = (written, part)
        return part
