"""MariaDB 10.11 and later: what is read, the meaning of its epochs, its sections of the report."""

from __future__ import annotations

from dbdyno.snapshot.engines.mariadb.collector import MariadbCollector
from dbdyno.snapshot.engines.mariadb.epochs import judge, refine
from dbdyno.snapshot.engines.mariadb.sections import metrics, sections
from dbdyno.snapshot.engines.view import Options

__all__ = ["ENGINE", "judge", "metrics", "open_collector", "refine", "sections"]

ENGINE = "mariadb"


def open_collector(dsn: str, options: Options) -> MariadbCollector:
    """Return a collector for a connection string.

    Raises:
        SnapshotError: The server does not answer.
    """
    return MariadbCollector(dsn, options)
