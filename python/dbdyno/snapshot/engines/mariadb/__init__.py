"""MariaDB 10.11 and later: what is read, what its epochs mean, what the report says."""

from __future__ import annotations

from dbdyno.snapshot.engines.mariadb.collector import MariadbCollector
from dbdyno.snapshot.engines.mariadb.epochs import judge, refine
from dbdyno.snapshot.engines.mariadb.sections import metrics, sections
from dbdyno.snapshot.engines.view import Options

__all__ = ["ENGINE", "judge", "metrics", "open_collector", "refine", "sections"]

ENGINE = "mariadb"


def open_collector(dsn: str, options: Options) -> MariadbCollector:
    """A collector for a connection string; raises `SnapshotError` where nobody answers."""
    return MariadbCollector(dsn, options)
