"""PostgreSQL 12 and later: what is read, what its epochs mean, what the report says."""

from __future__ import annotations

from dbdyno.snapshot.postgres.collector import PostgresCollector
from dbdyno.snapshot.view import Options

ENGINE = "postgres"


def open_collector(dsn: str, options: Options) -> PostgresCollector:
    """A collector for a connection string; raises `SnapshotError` where nobody answers."""
    return PostgresCollector(dsn, options)
