"""Runs of which the messages of clients were kept, so that they can be sent again."""

from __future__ import annotations

from pathlib import Path

from dbdyno.base.errors import TraceError
from dbdyno.evidence.run import Run
from dbdyno.evidence.trace_tables import require_whole
from dbdyno.evidence.trust import refuse_foreign

FORMAT = "postgresql wire"
LIMITS = "-c statement_timeout=1h -c lock_timeout=60s"
"""What each session of a replay is given when it connects."""


def captured(folder: Path) -> Run:
    """The captured run, which must be this user's own: its statements are run. Raises `TraceError` where it is none."""
    run = Run.open(folder)
    require_whole(run)
    refuse_foreign(run.path)
    if run.manifest.to_json().get("format") != FORMAT:
        raise TraceError(
            "is no run of dbdyno trace proxy, which alone keeps what clients sent",
            where=str(folder),
            next_step="capture one: dbdyno trace proxy --to HOST:PORT --binds",
        )
    return run
