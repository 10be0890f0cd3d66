"""Begins a turn cold: the embedded server restarted, its data out of the file system's cache.

A restart empties shared_buffers, and writes and syncs what was changed; then the kernel is asked to forget the pages
of the server's data files (posix_fadvise), which it does with clean pages of files that nobody has mapped. No other
file of the machine is touched. Only a server that dbdyno started is restarted.

Limits: a cache below the file system (of a controller, of a host under a virtual machine) keeps what it has; a first
read after it is then faster than the device. Not on systems without posix_fadvise.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from dbdyno.errors import TargetError

if TYPE_CHECKING:
    from dbdyno.bench.postgres.server import Postgres


def refusal(target: Postgres) -> str | None:
    """Why a turn on this target cannot begin cold; None where it can."""
    if target.engine is None:
        return "a turn begins cold on servers that dbdyno starts, and this one is not"
    if not hasattr(os, "posix_fadvise"):
        return "this system has no posix_fadvise, so nothing leaves the file system's cache"
    return None


def chill(target: Postgres) -> None:
    """Restarts the server with nothing of its data in memory. Raises `TargetError`."""
    if (reason := refusal(target)) or target.engine is None:
        raise TargetError(str(reason), where=target.safe_dsn)
    target.engine.stop()
    try:
        for file in data_files(target.engine.data_dir):
            forget(file)
    except OSError as error:
        raise TargetError(
            f"the server's data cannot leave the file system's cache: {error.strerror}",
            where=str(target.engine.data_dir),
        ) from error
    finally:
        target.engine.start()


def data_files(data_dir: Path) -> Iterator[Path]:
    """The files of all databases of a server."""
    yield from (path for path in sorted((data_dir / "base").rglob("*")) if path.is_file() and not path.is_symlink())


def forget(file: Path) -> None:
    """Asks the kernel to drop a file's clean pages; raises `OSError`."""
    descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        os.fdatasync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)
