"""Columns of tables, what the planner knows of them, functions, keys, triggers, views, settings: rows that seldom
change, so that a watch reads them when the catalog that they come from was written, or the server's files were read
again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, LiteralString

from dbdyno.snapshot.engines.postgres.catalog import (
    COLUMNS,
    FOREIGN_KEYS,
    FUNCTIONS,
    PLANNER,
    SEQUENCES,
    STATISTICS,
    TRIGGERS,
    VIEWS,
)
from dbdyno.snapshot.engines.postgres.reader import joined
from dbdyno.snapshot.engines.postgres.source import Source

if TYPE_CHECKING:
    from dbdyno.snapshot.engines.postgres.reader import Part, Reader
    from dbdyno.snapshot.engines.view import View

_CATALOGS = (
    (COLUMNS, 1249),
    (PLANNER, 2619),
    (FUNCTIONS, 1255),
    (FOREIGN_KEYS, 2606),
    (TRIGGERS, 2620),
    (VIEWS, 2618),
    (STATISTICS, 3381),
    (SEQUENCES, 2224),
)
"""What is read so, and the number of its catalog in every version: pg_attribute, pg_statistic, ..."""
_WRITTEN: LiteralString = "select /* dbdyno */ " + ", ".join(
    [f"pg_stat_get_tuples_{what}({number})" for _, number in _CATALOGS for what in ("inserted", "updated", "deleted")]
)
_COUNTS = 3


class Seldom:
    """Reads a view of a database, or gives what was read last while its catalog was not written.

    The server counts a session's writes when its transaction ends, up to a second late: a change is seen by the
    snapshot after it, or by the next one.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, int], tuple[object, Part]] = {}

    def written(self, reader: Reader) -> tuple[object, ...]:
        """How often the catalogs of a database were written until now."""
        return tuple(reader.connection.execute(_WRITTEN).fetchone() or ())

    def read(self, reader: Reader, source: Source, database: tuple[int, str], written: tuple[object, ...]) -> Part:
        """The part of a database, `written` when its catalogs were looked at; its `elapsed_ns` is 0 where nothing was
        read. What is no view of these catalogs is always read."""
        places = [at for at, (one, _) in enumerate(_CATALOGS) if one is source]
        if not places:
            return reader.read(source, database)
        counts = written[places[0] * _COUNTS :][:_COUNTS]
        key = (source.name, database[0])
        before = self._known.get(key)
        if before is not None and before[0] == counts:
            return replace(before[1], elapsed_ns=0)
        part = reader.read(source, database)
        if part.problem is None:
            self._known[key] = (counts, part)
        return part


class Settings:
    """Reads the settings, or gives what was read last.

    A session's view of them changes where it reads the server's files again, which is what `pg_conf_load_time` tells of
    it (`loaded_us` of the facts), or where a standby is promoted; its own SETs are the same each time.
    """

    def __init__(self) -> None:
        self._known: tuple[object, View] | None = None

    def read(self, reader: Reader, source: Source, facts: Mapping[str, object]) -> View:
        """The view; its `elapsed_ns` is 0 where nothing was read."""
        life = (reader.connection.info.backend_pid, facts.get("loaded_us"), facts.get("in_recovery"))
        if self._known is not None and self._known[0] == life and None not in life:
            return replace(self._known[1], elapsed_ns=0)
        view = joined(source, [reader.read(source)])
        self._known = None if view.problem is not None else (life, view)
        return view
