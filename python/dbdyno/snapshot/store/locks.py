"""Locks on a store: many processes may add snapshots at once, but only one packs, prunes or repairs.

That process excludes the others only while files are moved, so a long pruning does not cost a watch any snapshot. The
locks are flock's, which the kernel releases however a process ends. If the file system does not support flock, the
store works without locks.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

from dbdyno.base.errors import SnapshotError
from dbdyno.base.files import make_inner_folder, os_errors_as

TIMEOUT_S = 30.0
_CHECK = "check the permissions of the store"
PACKS = "packs"
"""The folder of a store that holds its packs; a process that moves files locks it too."""


@contextlib.contextmanager
def shared_lock(store: Path) -> Iterator[None]:
    """Hold the store's shared lock while a snapshot is written.

    Raises:
        SnapshotError: Another process holds the exclusive lock for more than `TIMEOUT_S` seconds.
    """
    with _held(store, fcntl.LOCK_SH):
        yield


@contextlib.contextmanager
def exclusive_lock(store: Path) -> Iterator[None]:
    """Hold the store's exclusive lock while files are moved.

    Raises:
        SnapshotError: Another process holds a lock for more than `TIMEOUT_S` seconds.
    """
    with _held(store, fcntl.LOCK_EX):
        yield


@contextlib.contextmanager
def maintenance_lock(store: Path) -> Iterator[None]:
    """Hold the lock for packing, pruning or repairing; snapshots may be added meanwhile.

    Raises:
        SnapshotError: Another process packs, prunes or repairs for more than `TIMEOUT_S` seconds.
    """
    with os_errors_as(SnapshotError, "cannot be made", store / PACKS, _CHECK):
        make_inner_folder(store / PACKS, exist_ok=True)
    with _held(store / PACKS, fcntl.LOCK_EX):
        yield


@contextlib.contextmanager
def _held(store: Path, how: int) -> Iterator[None]:
    with os_errors_as(SnapshotError, "cannot be opened", store, _CHECK):
        opened = os.open(store, os.O_RDONLY)
    try:
        _wait(opened, how, store)
        yield
    finally:
        os.close(opened)


def _wait(opened: int, how: int, store: Path) -> None:
    end = time.monotonic() + TIMEOUT_S
    while True:
        try:
            fcntl.flock(opened, how | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EWOULDBLOCK, errno.EAGAIN):
                return
            if time.monotonic() > end:
                raise SnapshotError(
                    f"is in use by another dbdyno process, and was not free within {TIMEOUT_S:.0f} s",
                    where=str(store),
                    next_step="wait until the other process has finished, then try again",
                ) from error
            time.sleep(0.05)
        else:
            return
