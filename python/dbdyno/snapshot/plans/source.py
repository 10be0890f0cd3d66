"""A log as a stream of bytes: a file, plain or gz, or what a server hands out; and what it is known by.

A log is known by the sum of its first line, so that one that has grown, was renamed or was packed since is the
same. Two logs do not begin alike: a time and a process are in their first lines.
"""

from __future__ import annotations

import glob
import gzip
import hashlib
import io
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

from dbdyno.base.errors import SnapshotError

HEAD_BYTES = 2048
_SNIFFED = 64 << 10
_NOT_LOGS = ("current_logfiles",)
"""Files that the server keeps beside its logs."""
TORN = (OSError, EOFError, zlib.error)
"""What reading a packed file that is cut off raises."""


@dataclass
class Source:
    """An open log: `name` for messages and evidence (no folder), `head` its sum, `start` its first bytes."""

    name: str
    stream: io.BufferedReader[Any]
    head: str
    start: bytes


def logs(given: Sequence[Path], said: list[str]) -> Iterator[Source]:
    """The logs that files, folders and patterns name, each opened when its turn comes. One of a folder that cannot be
    read is left out, which goes to `said`. Raises `SnapshotError` for one that was named, and where there is none."""
    groups = [(path, _inside(path)) for path in given]
    for path, inside in groups:
        if not inside:
            opened(path).stream.close()
    return _opened(groups, said)


def _opened(groups: Sequence[tuple[Path, Sequence[Path]]], said: list[str]) -> Iterator[Source]:
    some = False
    for path, inside in groups:
        for one in inside or [path]:
            try:
                source = opened(one)
            except SnapshotError as error:
                said.append(f"{one.name}: {error.message}")
                continue
            some = True
            yield source
    if not some:
        raise SnapshotError("none of these logs can be read", where=str(groups[0][0]), next_step="; ".join(said[:3]))


def _inside(path: Path) -> list[Path]:
    """The logs of a folder or a pattern, the oldest first; none where it is a file."""
    if path.is_dir():
        found = [one for one in path.iterdir() if not one.name.startswith(".") and one.name not in _NOT_LOGS]
    elif not path.exists() and glob.has_magic(str(path)):
        found = [Path(one) for one in glob.glob(str(path), recursive=True)]  # noqa: PTH207 - it may be absolute
    else:
        return []
    files = [one for one in found if one.is_file()]
    if not files:
        raise SnapshotError("holds no file", where=str(path), next_step="name the server's logs, plain or .gz")
    return sorted(files, key=lambda one: (one.stat().st_mtime, one.name))


def opened(path: Path) -> Source:
    """A log file. Raises `SnapshotError` where it cannot be read."""
    file = None
    try:
        file = path.open("rb")
        packed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        return of_stream(path.name, _Unpacked(file) if packed else file)
    except TORN as error:
        if file is not None:
            file.close()
        why = getattr(error, "strerror", None) or str(error)
        raise SnapshotError(
            f"cannot be read: {why}", where=str(path), next_step="name log files, plain or .gz"
        ) from error


class _Unpacked(io.RawIOBase):
    """What a packed file holds; where it is torn, all before that comes first."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._packed = gzip.GzipFile(fileobj=file)
        self._torn: Exception | None = None

    def readable(self) -> bool:
        """It is."""
        return True

    def close(self) -> None:
        """Closes the file, too."""
        self._packed.close()
        self._file.close()
        super().close()

    def readinto(self, into: Any) -> int:
        """As much as there is room for; raises one of `TORN` after the last byte that can be read."""
        if self._torn is not None:
            raise self._torn
        done = 0
        try:
            while done < len(into) and (some := self._packed.read1(len(into) - done)):
                into[done : done + len(some)] = some
                done += len(some)
        except TORN as error:
            self._torn = error
            if not done:
                raise
        return done


def of_stream(name: str, raw: io.RawIOBase | BinaryIO) -> Source:
    """A log of any stream."""
    stream = io.BufferedReader(cast(io.RawIOBase, raw), 1 << 20)
    start = stream.peek(_SNIFFED)[:_SNIFFED]
    first = start.partition(b"\n")[0][:HEAD_BYTES].rstrip()
    return Source(name, stream, hashlib.blake2b(first, digest_size=12).hexdigest(), start)
