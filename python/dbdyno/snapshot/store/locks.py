"""Who works in a store: many may add snapshots at once; one process packs, prunes or repairs, and keeps the others
out only while files move, so that a long pruning costs a watch no snapshot.

By flock, which the kernel gives back however a process ends. Where the file system knows none, the
store works without, as it always did.
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
from dbdyno.base.files import make_inner_folder

PATIENCE_S = 30.0
PACKS = "packs"
"""The folder of a store that holds its packs; who moves files holds it too."""


@contextlib.contextmanager
def adding(store: Path) -> Iterator[None]:
    """While a snapshot is written. Raises `SnapshotError` where another process keeps the store."""
    with _held(store, fcntl.LOCK_SH):
        yield


@contextlib.contextmanager
def alone(store: Path) -> Iterator[None]:
    """While files of the store move. Raises `SnapshotError` where somebody works in it."""
    with _held(store, fcntl.LOCK_EX):
        yield


@contextlib.contextmanager
def moving(store: Path) -> Iterator[None]:
    """While a process packs, prunes or repairs: snapshots may be added meanwhile. Raises `SnapshotError` where another
    process does."""
    try:
        make_inner_folder(store / PACKS, exist_ok=True)
    except OSError as error:
        raise SnapshotError(f"cannot be made: {error.strerror}", where=str(store / PACKS)) from error
    with _held(store / PACKS, fcntl.LOCK_EX):
        yield


@contextlib.contextmanager
def _held(store: Path, how: int) -> Iterator[None]:
    try:
        opened = os.open(store, os.O_RDONLY)
    except OSError as error:
        raise SnapshotError(f"cannot be opened: {error.strerror}", where=str(store)) from error
    try:
        _wait(opened, how, store)
        yield
    finally:
        os.close(opened)


def _wait(opened: int, how: int, store: Path) -> None:
    end = time.monotonic() + PATIENCE_S
    while True:
        try:
            fcntl.flock(opened, how | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EWOULDBLOCK, errno.EAGAIN):
                return
            if time.monotonic() > end:
                raise SnapshotError(
                    f"is in use by another dbdyno since {PATIENCE_S:.0f} s",
                    where=str(store),
                    next_step="wait until it has taken its snapshot, packed or pruned, and try again",
                ) from error
            time.sleep(0.05)
        else:
            return
