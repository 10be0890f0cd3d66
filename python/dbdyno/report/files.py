"""Writing of pages and figures as files that are complete or absent."""

from __future__ import annotations

from pathlib import Path

from dbdyno.base.errors import ReportError
from dbdyno.base.files import write_output


def write_whole(path: Path, content: bytes) -> None:
    """Write a file completely or not at all, and create the folder above it if needed.

    Raises:
        ReportError: the file cannot be written; a file that was at `path` before is unchanged.
    """
    try:
        write_output(path, content)
    except OSError as error:
        raise ReportError(
            f"cannot write: {error.strerror or error}",
            where=str(path),
            next_step="choose another place, or free space there",
        ) from error
