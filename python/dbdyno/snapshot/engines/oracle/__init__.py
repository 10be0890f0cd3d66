"""Oracle 12.1 and later, read through its V$ views: what is read, the meaning of its epochs, its report sections.

This code has not been run against an instance: see the limits in `collector`.
"""

from __future__ import annotations

from dbdyno.snapshot.engines.oracle.collector import OracleCollector
from dbdyno.snapshot.engines.oracle.epochs import judge
from dbdyno.snapshot.engines.oracle.sections import metrics, sections
from dbdyno.snapshot.engines.view import Options

__all__ = ["ENGINE", "judge", "metrics", "open_collector", "sections"]

ENGINE = "oracle"


def open_collector(dsn: str, options: Options) -> OracleCollector:
    """Return a collector for a connection string.

    Raises:
        SnapshotError: The instance does not answer.
    """
    return OracleCollector(dsn, options)
