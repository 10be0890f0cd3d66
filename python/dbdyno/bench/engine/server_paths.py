"""Locations for an embedded server: a folder, a path for its Unix socket that is short enough, and a free port."""

from __future__ import annotations

import errno
import os
import socket
import tempfile
from pathlib import Path

from dbdyno.base.errors import TargetError
from dbdyno.bench.engine.os_user import Account, can_enter

SOCKET_PATH_MAX_BYTES = 107
"""Longest path of a Unix socket in bytes (sun_path of Linux, without the terminating zero byte)."""

SOCKET_NAME = "/.s.PGSQL.65535"


def base_folder(account: Account, workdir: Path | None) -> Path:
    """Return the folder in which the server's folder is created: `workdir`, or TMPDIR, /var/tmp or the default.

    Raises:
        TargetError: The account cannot enter `workdir`, or can enter none of the other folders.
    """
    if workdir is not None:
        if not can_enter(account, workdir.resolve()):
            raise TargetError(
                f"the engine's user '{account.name}' cannot enter {workdir}",
                next_step="name a folder that all users can enter; dbdyno does not change its mode",
            )
        return workdir.resolve()
    wanted = [Path(os.environ["TMPDIR"])] if os.environ.get("TMPDIR") else []
    for folder in (*wanted, Path("/var/tmp"), Path(tempfile.gettempdir())):  # noqa: S108
        if os.access(folder, os.W_OK | os.X_OK) and can_enter(account, folder.resolve()):
            return folder.resolve()
    raise TargetError(
        "the engine's user can enter none of the folders for temporary files",
        next_step="set TMPDIR to a folder that this user can enter, on a disk with free space",
    )


def socket_folder(folder: Path) -> Path:
    """Return the folder for the server's socket: in the server's folder, or in /tmp if sockets cannot be there.

    Sockets cannot be in the server's folder if its path is too long, or its file system has no sockets, such as a
    mounted device.
    """
    inside = folder / "s"
    if len(os.fsencode(inside)) + len(SOCKET_NAME) <= SOCKET_PATH_MAX_BYTES and _takes_sockets(folder):
        return inside
    return Path("/tmp") / folder.name  # noqa: S108  # made 0700 under a random name


def _takes_sockets(folder: Path) -> bool:
    """Return False if the folder's file system does not support sockets, and True if the folder does not exist."""
    place = folder / f".{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.bind(str(place))
        except OSError as error:
            return error.errno not in (errno.ENOSYS, errno.EOPNOTSUPP)
    place.unlink(missing_ok=True)
    return True


def free_port() -> int:
    """Return a TCP port of 127.0.0.1 that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
