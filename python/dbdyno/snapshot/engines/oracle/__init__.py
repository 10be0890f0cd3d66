"""Oracle from 12.1 on, by its V$ views: what is read, what its epochs mean, what the report says.

Not run against an instance: see the limits in `collector`.
"""

from __future__ import annotations

from dbdyno.snapshot.engines.oracle.collector import OracleCollector
from dbdyno.snapshot.engines.oracle.epochs import judge
from dbdyno.snapshot.engines.oracle.sections import metrics, sections
from dbdyno.snapshot.engines.view import Options

__all__ = ["ENGINE", "judge", "metrics", "open_collector", "sections"]

ENGINE = "oracle"


def open_collector(dsn: str, options: Options) -> OracleCollector:
    """A collector for a connection string; raises `SnapshotError` where nobody answers."""
    return OracleCollector(dsn, options)
