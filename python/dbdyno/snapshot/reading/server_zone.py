"""The time zone of a server, from its settings."""

from __future__ import annotations

import contextlib

from dbdyno.base.errors import Error
from dbdyno.evidence.memory import file_connection
from dbdyno.snapshot.reading.changed_settings import SETTINGS
from dbdyno.snapshot.store.folder import Snapshot

ZONE_SETTINGS = ("log_timezone", "system_time_zone")
"""Settings with the server's time zone that no session overrides."""


def server_zone(last: Snapshot) -> str:
    """Return the time zone in a snapshot's settings, or "" if there is none."""
    from dbdyno.evidence.duck import duckdb

    for view, value in SETTINGS.items():
        with contextlib.suppress(Error, duckdb.Error):
            source = last.relation(view) if view in last.views else None
            if source is None:
                continue
            with file_connection(in_order=True) as connection:
                sql = f"select {value}::varchar from {source} where lower(name) in {ZONE_SETTINGS!r} and {value} <> ''"
                row = connection.execute(sql).fetchone()
            return str(row[0]) if row else ""
    return ""
