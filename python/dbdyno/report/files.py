"""Files that are complete or not there: written aside, then renamed into place."""

from __future__ import annotations

import contextlib
from pathlib import Path

from dbdyno.errors import ReportError


def write_whole(path: Path, content: bytes) -> None:
    """Writes a file, and the directory above it where needed.

    Raises:
        ReportError: it cannot be written; what was at `path` before is still there.
    """
    aside = path.with_name(f".{path.name}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        aside.write_bytes(content)
        aside.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            aside.unlink()
        raise ReportError(
            f"cannot write: {error.strerror or error}",
            where=str(path),
            next_step="choose another place, or make room there",
        ) from error
