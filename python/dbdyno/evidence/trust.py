"""Trust in run folders: a folder says what was observed, but never what to execute or how to connect.

Operations that connect or change something (restoring plans, resuming a run, writing into the folder) accept only
folders that no other user can have written. Reading accepts any folder.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from dbdyno.base.errors import EvidenceError

OTHERS_WRITE = 0o022


def refuse_foreign(folder: Path) -> None:
    """Raise an error if another user may have written a folder, judging by owner and mode of folder and manifest.

    Files of root are trusted, since root can do anything anyway.

    Raises:
        EvidenceError: another user owns the folder or its manifest, or may write one of them, or the manifest is a
            link.
    """
    for path in (folder, folder / "manifest.json"):
        reason = _reason(path)
        if reason:
            raise EvidenceError(
                f"{reason}: dbdyno does not execute its contents",
                where=str(path),
                next_step=f"change or continue only runs of your own; if this run is yours, check its "
                f"contents, then run `chmod -R go-w {folder}`",
            )


def _reason(path: Path) -> str | None:
    try:
        found = path.lstat()
        if stat.S_ISLNK(found.st_mode) and path.name != "manifest.json":
            found = path.stat()
    except FileNotFoundError:
        return None
    if stat.S_ISLNK(found.st_mode):
        return "is a link"
    if found.st_uid not in (0, os.geteuid()):
        return f"belongs to another user (uid {found.st_uid})"
    if found.st_mode & OTHERS_WRITE:
        return f"can be written by others (mode {stat.S_IMODE(found.st_mode):04o})"
    return None
