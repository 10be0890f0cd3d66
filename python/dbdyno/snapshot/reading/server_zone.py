"""The time zone of a server, as its settings say."""

from __future__ import annotations

import contextlib

from dbdyno.base.errors import Error
from dbdyno.evidence.memory import for_files
from dbdyno.snapshot.reading.changed_settings import SETTINGS
from dbdyno.snapshot.store.folder import Snapshot

NAMES = ("log_timezone", "system_time_zone")
"""Settings with a zone that no session changes for itself."""


def server_zone(last: Snapshot) -> str:
    """Return the name of the zone that a snapshot's settings name, or "" if they name none."""
    import duckdb

    for view, value in SETTINGS.items():
        with contextlib.suppress(Error, duckdb.Error):
            source = last.relation(view) if view in last.views else None
            if source is None:
                continue
            with for_files() as connection:
                sql = f"select {value}::varchar from {source} where lower(name) in {NAMES!r} and {value} <> ''"
                row = connection.execute(sql).fetchone()
            return str(row[0]) if row else ""
    return ""
