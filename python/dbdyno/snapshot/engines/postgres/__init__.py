"""PostgreSQL 12 and later: what is read, what its epochs mean, what the report says."""

from __future__ import annotations

from dbdyno.snapshot.engines.postgres.collector import PostgresCollector
from dbdyno.snapshot.engines.postgres.epochs import judge, refine
from dbdyno.snapshot.engines.postgres.metrics import metrics, part_metrics
from dbdyno.snapshot.engines.postgres.sections import sections
from dbdyno.snapshot.engines.view import Options

__all__ = ["ENGINE", "judge", "metrics", "open_collector", "part_metrics", "refine", "sections"]

ENGINE = "postgres"


def open_collector(dsn: str, options: Options) -> PostgresCollector:
    """A collector for a connection string; raises `SnapshotError` where nobody answers."""
    return PostgresCollector(dsn, options)
