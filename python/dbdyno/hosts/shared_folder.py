"""Folder shared by this machine and all hosts: hosts put parts of blocks there instead of sending them.

Each command makes a folder of its own in it. A file appears there by a rename, and the reader waits for it: a network
file system may show it late. The command removes its folder at the end; if the command was killed, the hosts remove it.
"""

from __future__ import annotations

import contextlib
import secrets
import shutil
import time
from pathlib import Path
from typing import NamedTuple

from dbdyno.base.closeable import Closeable
from dbdyno.base.errors import TargetError
from dbdyno.base.files import file_replacement

SHOWN_S = 15.0
"""Maximum time until a file written by a host is visible here [s]."""
_PROBE = "probe"


class PlacedPart(NamedTuple):
    """A part that a host has put into the folder: its file name and size; an empty part has no file."""

    name: str
    size: int


class SharedFolder(Closeable):
    """The shared folder of one command; hosts recognise it by a file that contains `word`."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / f"dbdyno-parts-{secrets.token_hex(8)}"
        self.word = secrets.token_hex(8)

    def make(self) -> None:
        """Create the folder, even if disconnected hosts have removed it.

        Raises:
            TargetError: This machine cannot write to the folder.
        """
        try:
            self.path.mkdir(mode=0o700, exist_ok=True)
            (self.path / _PROBE).write_text(self.word)
        except OSError as error:
            raise _unfit(self.path.parent, f"cannot be written here: {error.strerror}") from error

    def close(self) -> None:
        """Remove the folder and its contents."""
        shutil.rmtree(self.path, ignore_errors=True)

    def read(self, placed: PlacedPart) -> bytes:
        """Return the bytes of a part and remove its file.

        Raises:
            TargetError: The file is not visible on this machine.
        """
        if not placed.size:
            return b""
        file, deadline = self.path / placed.name, time.monotonic() + SHOWN_S
        while True:
            with contextlib.suppress(OSError):
                if len(content := file.read_bytes()) == placed.size:
                    file.unlink()
                    return content
            if time.monotonic() > deadline:
                raise _unfit(self.path.parent, f"does not show {placed.name} here, although another host wrote it")
            time.sleep(0.05)


def refuse_unshared_folder(folder: Path, word: str) -> None:
    """Raise an error if a command's folder is not visible or not writable on this host.

    Raises:
        TargetError: The folder on this host is not the same folder, or is not writable.
    """
    try:
        same = (folder / _PROBE).read_text() == word
        own = folder / f"{_PROBE}-{secrets.token_hex(8)}"
        own.touch()
        own.unlink()
    except OSError as error:
        raise _unfit(folder.parent, f"cannot be used on this host: {error.strerror}") from error
    if not same:
        raise _unfit(folder.parent, "is a different folder on this host")


def place_part(part: Path, folder: Path) -> PlacedPart:
    """Write a part into a command's folder under a new name."""
    placed = PlacedPart(f"{part.stem}-{secrets.token_hex(8)}.parquet", part.stat().st_size)
    with file_replacement(folder / placed.name) as file:
        shutil.copyfile(part, file)
    return placed


def _unfit(folder: Path, why: str) -> TargetError:
    return TargetError(
        f"the shared folder {why}",
        where=str(folder),
        next_step="name a folder that has the same path on this machine and all hosts, or omit shared_folder",
    )
