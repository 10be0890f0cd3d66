"""Durable writing of evidence files, and reading of JSON with errors that name the place of a mistake."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

from dbdyno.base import files
from dbdyno.base.errors import EvidenceError, errors_as
from dbdyno.base.json_types import JsonObject


def write_durably(path: Path, text: str) -> None:
    """Write `text` durably, completely or not at all: afterwards it survives a crash of the machine.

    Raises:
        EvidenceError: the file cannot be written.
    """
    step = "free disk space or check the permissions; complete blocks are kept, and --resume continues after them"
    with files.os_errors_as(EvidenceError, "cannot be written", path, step):
        files.write_atomically(path, text.encode(), durable=True)


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file durably, completely or not at all.

    Raises:
        EvidenceError: the file cannot be written.
        ValueError: the value contains NaN or infinity.
    """
    write_durably(path, json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def sync_names(*folders: Path) -> None:
    """Sync the directory entries of these folders; a new folder is durable once its parent folder is synced.

    Raises:
        EvidenceError: a folder cannot be synced.
    """
    for folder in folders:
        with files.os_errors_as(EvidenceError, "cannot be synced", folder, "check the disk and the file system"):
            files.sync_folder(folder)


def read_json(path: Path, objects: type[JsonObject] = dict) -> Any:
    """Return the content of a JSON file, with each JSON object as an instance of the class `objects`.

    Raises:
        EvidenceError: the file cannot be read or is not valid JSON; the error names file, line and column.
    """
    step = "restore the file from a copy: another program changed or truncated it"
    try:
        with (
            errors_as(EvidenceError, ValueError, "is not complete JSON", str(path), step),
            files.os_errors_as(EvidenceError, "cannot be read", path, files.CHECK_FILE),
            os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file,
        ):
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise EvidenceError("is not a file", where=str(path), next_step="restore the file from a copy")
            return json.loads(file.read(), object_hook=objects)
    except RecursionError as error:
        raise EvidenceError(
            "is nested more deeply than any JSON file that dbdyno writes",
            where=str(path),
            next_step="restore the file from a copy",
        ) from error
