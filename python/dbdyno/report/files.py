"""Pages and figures as files that are complete or not there."""

from __future__ import annotations

from pathlib import Path

from dbdyno.base.errors import ReportError
from dbdyno.base.files import write_output


def write_whole(path: Path, content: bytes) -> None:
    """Writes a file, and the directory above it where needed.

    Raises:
        ReportError: it cannot be written; what was at `path` before is still there.
    """
    try:
        write_output(path, content)
    except OSError as error:
        raise ReportError(
            f"cannot write: {error.strerror or error}",
            where=str(path),
            next_step="choose another place, or make room there",
        ) from error
