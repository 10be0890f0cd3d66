"""A run folder is data: whoever made it says what was seen, never what is to be done or how to connect.

What connects or changes something (restoring plans, going on with a run, writing into the folder) takes only folders
that nobody else can have written. Reading takes any.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from dbdyno.base.errors import EvidenceError

OTHERS_WRITE = 0o022


def refuse_foreign(folder: Path) -> None:
    """Raises `EvidenceError` where somebody else owns the folder or its manifest, or may write them. What belongs to
    root is trusted: root can do anything anyway."""
    for path in (folder, folder / "manifest.json"):
        reason = _reason(path)
        if reason:
            raise EvidenceError(
                f"{reason}: what it says to do is not done",
                where=str(path),
                next_step="read it as you like; to change something or to go on, use a run of your own. If it is"
                f" yours, look at it first, then: chmod -R go-w {folder}",
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
