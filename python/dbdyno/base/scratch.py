"""Private folders for temporary files, removed when their process ends, or later if the process was killed.

    folder = ScratchFolder("sql")     # <temporary folder>/dbdyno-scratch-sql-3fk2x9ab, of this user only
    folder.path
    folder.remove()                   # or when the object is gone, or when the process exits

If a process is killed, its folder remains. It is removed by the next process of this user that creates a folder of the
same kind: a folder is in use as long as some process holds the lock on it, which the system releases when the process
ends.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
import weakref
from pathlib import Path

_NEW_S = 10.0
"""Age of the last change [s] below which a folder is not removed, because its process may be about to lock it."""


class ScratchFolder:
    """A new, empty folder, locked as long as it exists.

    Args:
        kind: A word for the folder's content; part of the folder's name.
    """

    def __init__(self, kind: str) -> None:
        prefix = f"dbdyno-scratch-{kind}-"
        _remove_left(Path(tempfile.gettempdir()), prefix)
        self.path = Path(tempfile.mkdtemp(prefix=prefix))
        lock = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        with contextlib.suppress(OSError):  # this file system has no locks
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        self._end = weakref.finalize(self, _remove, self.path, lock, os.getpid())

    def remove(self) -> None:
        """Remove the folder with its content; do nothing the second time."""
        self._end()


def _remove(path: Path, lock: int, owner: int) -> None:
    """Unlock a folder, and remove it if this is the process that created it and not one forked from that process."""
    os.close(lock)
    if os.getpid() == owner:
        shutil.rmtree(path, ignore_errors=True)


def _remove_left(place: Path, prefix: str) -> None:
    """Remove this user's folders that no process has locked."""
    for folder in place.glob(f"{prefix}*"):
        with contextlib.suppress(OSError):
            found = os.lstat(folder)
            if found.st_uid == os.geteuid() and time.time() - found.st_mtime > _NEW_S and _is_unlocked(folder):
                shutil.rmtree(folder, ignore_errors=True)


def _is_unlocked(folder: Path) -> bool:
    """Return True if no process holds the lock of a folder."""
    probe = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(probe, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(probe)
    return True
