"""Writing of pages and figures as files that are complete or absent."""

from __future__ import annotations

from pathlib import Path

from dbdyno.base.errors import ReportError
from dbdyno.base.files import os_errors_as, write_output


def write_whole(path: Path, content: bytes) -> None:
    """Write a file completely or not at all, and create the folder above it if needed.

    Raises:
        ReportError: the file cannot be written; a file that was at `path` before is unchanged.
    """
    with os_errors_as(ReportError, "cannot write", path, "free disk space, or choose another path"):
        write_output(path, content)
