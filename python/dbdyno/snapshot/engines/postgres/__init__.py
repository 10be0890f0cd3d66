"""PostgreSQL 12 and later: what is read, the meaning of its epochs, its sections of the report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbdyno.snapshot.engines.postgres.epochs import judge, refine
from dbdyno.snapshot.engines.postgres.metrics import metrics, part_metrics
from dbdyno.snapshot.engines.postgres.sections import sections

if TYPE_CHECKING:
    from dbdyno.snapshot.engines.postgres.collector import PostgresCollector
    from dbdyno.snapshot.engines.view import Options

__all__ = ["ENGINE", "judge", "metrics", "open_collector", "part_metrics", "refine", "sections"]

ENGINE = "postgres"


def open_collector(dsn: str, options: Options) -> PostgresCollector:
    """Return a collector for a connection string.

    Raises:
        SnapshotError: The server does not answer.
    """
    from dbdyno.snapshot.engines.postgres.collector import PostgresCollector

    return PostgresCollector(dsn, options)
