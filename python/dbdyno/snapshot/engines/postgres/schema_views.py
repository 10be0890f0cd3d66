"""Rows that seldom change, which a watch reads only when they may have changed.

Columns of tables, the planner's statistics, functions, keys, triggers and views are read when their catalog was
written, settings when the server reloaded its configuration files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, LiteralString

from dbdyno.snapshot.engines.postgres.catalog import CATALOGS
from dbdyno.snapshot.engines.postgres.reader import join_parts
from dbdyno.snapshot.engines.postgres.source import Source

if TYPE_CHECKING:
    from dbdyno.snapshot.engines.postgres.reader import Part, Reader
    from dbdyno.snapshot.engines.view import View

_WRITTEN: LiteralString = "select /* dbdyno */ " + ", ".join(
    [f"pg_stat_get_tuples_{what}({number})" for _, number in CATALOGS for what in ("inserted", "updated", "deleted")]
)
_COUNTS = 3


class CatalogCache:
    """Reader of a database's views that reads a view again only if its catalog has been written since.

    The server counts the writes of a transaction up to a second after its end. So a change may be missing in the first
    snapshot after it, and is then in the second.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, int], tuple[object, Part]] = {}

    def write_count(self, reader: Reader) -> tuple[object, ...]:
        """Return how often the catalogs of a database have been written."""
        return tuple(reader.connection.execute(_WRITTEN).fetchone() or ())

    def read(self, reader: Reader, source: Source, database: tuple[int, str], written: tuple[object, ...]) -> Part:
        """Return the view's part for a database; `elapsed_ns` is 0 if nothing was read.

        `written` are the counts of writes to the catalogs. A view that does not depend on these catalogs is always
        read.
        """
        places = [at for at, (one, _) in enumerate(CATALOGS) if one is source]
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


class SettingsCache:
    """Reader of the settings that reads them again only if they may have changed.

    A session's settings change when it reloads the configuration files (`pg_conf_load_time`, `loaded_us` in the facts),
    or when a standby is promoted. The SETs of dbdyno's session are always the same.
    """

    def __init__(self) -> None:
        self._known: tuple[object, View] | None = None

    def read(self, reader: Reader, source: Source, facts: Mapping[str, object]) -> View:
        """Return the view of settings; `elapsed_ns` is 0 if nothing was read."""
        life = (reader.connection.info.backend_pid, facts.get("loaded_us"), facts.get("in_recovery"))
        if self._known is not None and self._known[0] == life and None not in life:
            return replace(self._known[1], elapsed_ns=0)
        view = join_parts(source, [reader.read(source)])
        self._known = None if view.problem is not None else (life, view)
        return view
