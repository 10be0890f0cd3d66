"""Begins a turn cold: the embedded server restarted, its data out of the file system's cache.

A restart empties the database's own cache, and writes and syncs what was changed; then the kernel is asked to forget
the pages of the server's data files (posix_fadvise), which it does with clean pages of files that nobody has mapped. No
other file of the machine is touched. Only a server that dbdyno started is restarted.

Limits: a cache below the file system (of a controller, of a host under a virtual machine) keeps what it has; a first
read after it is then faster than the device. Not on systems without posix_fadvise.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from dbdyno.base.errors import TargetError

if TYPE_CHECKING:
    from dbdyno.bench.engine.own_server import OwnServer


class Owned(Protocol):
    """A target that may be a server of ours."""

    @property
    def engine(self) -> OwnServer | None: ...

    @property
    def safe_dsn(self) -> str: ...


def refusal(target: Owned) -> str | None:
    """Why a turn on this target cannot begin cold; None where it can."""
    if target.engine is None:
        return "a turn begins cold on servers that dbdyno starts, and this one is not"
    if not hasattr(os, "posix_fadvise"):
        return "this system has no posix_fadvise, so nothing leaves the file system's cache"
    return None


def chill(target: Owned, start: Callable[[], None] | None = None) -> None:
    """Restarts the server, as `start` does it, with nothing of its data in memory. Raises `TargetError`."""
    if (reason := refusal(target)) or target.engine is None:
        raise TargetError(str(reason), where=target.safe_dsn)
    target.engine.stop()
    try:
        for file in target.engine.data_files():
            forget(file)
    except OSError as error:
        raise TargetError(
            f"the server's data cannot leave the file system's cache: {error.strerror}",
            where=str(target.engine.data_dir),
        ) from error
    finally:
        (start or target.engine.start)()


def forget(file: Path) -> None:
    """Asks the kernel to drop a file's clean pages; raises `OSError`."""
    descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        os.fdatasync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)
