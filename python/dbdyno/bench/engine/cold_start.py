"""Cold starts of turns: the embedded server is restarted and its data removed from the file system's cache.

A restart empties the database's cache, and writes and syncs changed pages; then the kernel is asked to drop the pages
of the server's data files (posix_fadvise), which it does for clean pages of files that nobody has mapped. No other file
of the machine is touched. Only a server that dbdyno started is restarted.

Limits: a cache below the file system (in a storage controller, or in the host of a virtual machine) is not emptied; a
first read is then faster than the device. Not available on systems without posix_fadvise.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from dbdyno.base.errors import TargetError

if TYPE_CHECKING:
    from dbdyno.bench.engine.embedded_server import EmbeddedServer


class ColdStartTarget(Protocol):
    """A target that may be a server that dbdyno started; `engine` is None if it is not."""

    @property
    def engine(self) -> EmbeddedServer | None: ...

    @property
    def safe_dsn(self) -> str: ...


def refusal(target: ColdStartTarget) -> str | None:
    """Return the reason why a turn on this target cannot begin cold, or None if it can."""
    if target.engine is None:
        return "only servers that dbdyno starts can begin a turn cold"
    if not hasattr(os, "posix_fadvise"):
        return "this system has no posix_fadvise, so nothing leaves the file system's cache"
    return None


def restart_cold(target: ColdStartTarget, start: Callable[[], None] | None = None) -> None:
    """Restart the server with none of its data cached; `start` replaces the engine's own start.

    Raises:
        TargetError: The target cannot begin cold, or its data cannot be removed from the cache.
    """
    if (reason := refusal(target)) or target.engine is None:
        raise TargetError(str(reason), where=target.safe_dsn)
    target.engine.stop()
    try:
        for file in target.engine.data_files():
            drop_from_cache(file)
    except OSError as error:
        raise TargetError(
            f"the server's data cannot be removed from the file system cache: {error.strerror}",
            where=str(target.engine.data_dir),
        ) from error
    finally:
        (start or target.engine.start)()


def drop_from_cache(file: Path) -> None:
    """Sync a file and ask the kernel to drop its clean pages from the cache.

    Raises:
        OSError: The file cannot be opened or synced, or the kernel refuses.
    """
    descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        os.fdatasync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)
