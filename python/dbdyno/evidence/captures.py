"""Captured runs: runs that keep the clients' messages, so that these can be sent again."""

from __future__ import annotations

from pathlib import Path

from dbdyno.base.errors import TraceError
from dbdyno.evidence.run import Run
from dbdyno.evidence.trace_tables import require_complete
from dbdyno.evidence.trust import refuse_foreign

FORMAT = "postgresql wire"
MARIADB = "mariadb"
"""Value of `dialect` in the manifest of a capture of MariaDB statements; they are stored as PostgreSQL messages."""
LIMITS = "-c statement_timeout=1h -c lock_timeout=60s"
"""Connection options (timeouts) that each session of a replay starts with."""


def open_capture(folder: Path) -> Run:
    """Open a captured run; it must belong to this user, because its statements will be executed.

    Raises:
        TraceError: the run was made neither by `dbdyno trace proxy` nor by an import of logs.
        EvidenceError: the folder is not a run, is incomplete, or another user could have written it.
    """
    run = Run.open(folder)
    require_complete(run)
    refuse_foreign(run.path)
    if run.manifest.to_json().get("format") != FORMAT:
        raise TraceError(
            "contains no messages from clients",
            where=str(folder),
            next_step="capture messages with `dbdyno trace proxy --target HOST:PORT --binds`, or import a log "
            "with `dbdyno trace import --log FILE`",
        )
    return run


def is_of_mariadb(run: Run) -> bool:
    """Return True if a captured run has statements of MariaDB."""
    return run.manifest.to_json().get("dialect") == MARIADB
