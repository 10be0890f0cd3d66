"""Files that appear whole or not at all, and JSON that names its place when it is wrong."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any

from dbdyno.errors import EvidenceError


def write_whole(path: Path, text: str) -> None:
    """Writes `text` aside, syncs it, renames it to `path` and syncs its folder: after that it is
    there even if the machine stops. Raises `EvidenceError`."""
    aside = path.with_name(path.name + ".tmp")
    try:
        with aside.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        aside.unlink(missing_ok=True)
        raise EvidenceError(
            f"cannot be written: {error.strerror}",
            where=str(path),
            next_step="free space or rights there; whole blocks are kept, and `dbdyno run --resume` goes on after them",
        ) from error


def sync_folder(folder: Path) -> None:
    """Waits until the names in a folder are on disk; raises OSError. A folder that may be written
    and not read cannot be waited for."""
    with contextlib.suppress(PermissionError):
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


def write_json(path: Path, value: Any) -> None:
    """Writes a JSON file whole; NaN and infinity are refused."""
    write_whole(path, json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def read_json(path: Path) -> Any:
    """Reads a JSON file; raises `EvidenceError` with file, line and column."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise EvidenceError(f"cannot be read: {error.strerror}", where=str(path)) from error
    except ValueError as error:
        raise EvidenceError(
            f"is not whole JSON: {error}",
            where=str(path),
            next_step="the file was changed or torn by something else; restore it from a copy",
        ) from error
