"""A log as a stream of bytes, from a plain file, a gzip file or a server, and the hash that identifies it.

A log is identified by the hash of its first line, so one that has grown, was renamed or was compressed is recognized.
Two logs do not begin with the same line, because it contains a time and a process.
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
"""Names of files that are in a server's log folder but are not logs."""
TORN_ERRORS = (OSError, EOFError, zlib.error)
"""Errors raised on reading a compressed file that is cut off."""


@dataclass
class Source:
    """An open log.

    Attributes:
        name: Name without the folder, for messages and evidence.
        stream: The bytes.
        head: Hash of the first line.
        start: The first bytes.
    """

    name: str
    stream: io.BufferedReader[Any]
    head: str
    start: bytes


def logs(paths: Sequence[Path], warnings: list[str]) -> Iterator[Source]:
    """Return the logs in files, folders and patterns, each opened when it is needed; see `logs_with_places`."""
    found = logs_with_places(paths, warnings)
    return (source for _, source in found)


def logs_with_places(paths: Sequence[Path], warnings: list[str]) -> Iterator[tuple[Path, Source]]:
    """Yield the place of each log in files, folders and patterns, and the log, opened when it is needed.

    A file in a folder that cannot be read is skipped, with a note added to `warnings`.

    Raises:
        SnapshotError: A named file cannot be read, a folder has no file, or no log can be read.
    """
    groups = [(path, _inside(path)) for path in paths]
    for path, inside in groups:
        if not inside:
            open_log(path).stream.close()
    return _opened(groups, warnings)


def _opened(groups: Sequence[tuple[Path, Sequence[Path]]], warnings: list[str]) -> Iterator[tuple[Path, Source]]:
    some = False
    for path, inside in groups:
        for one in inside or [path]:
            try:
                source = open_log(one)
            except SnapshotError as error:
                warnings.append(f"{one.name}: {error.message}")
                continue
            some = True
            yield one, source
    if not some:
        raise SnapshotError(
            "none of these logs can be read", where=str(groups[0][0]), next_step="; ".join(warnings[:3])
        )


def _inside(path: Path) -> list[Path]:
    """Return the logs in a folder or those that match a pattern, oldest first; an empty list for a file."""
    if path.is_dir():
        found = [one for one in path.iterdir() if not one.name.startswith(".") and one.name not in _NOT_LOGS]
    elif not path.exists() and glob.has_magic(str(path)):
        found = [Path(one) for one in glob.glob(str(path), recursive=True)]  # noqa: PTH207 - it may be absolute
    else:
        return []
    files = [one for one in found if one.is_file()]
    if not files:
        raise SnapshotError("contains no file", where=str(path), next_step="name the server's logs, plain or .gz")
    return sorted(files, key=lambda one: (one.stat().st_mtime, one.name))


def open_log(path: Path) -> Source:
    """Open a log file, and return it as a source.

    Raises:
        SnapshotError: The file cannot be read.
    """
    file = None
    try:
        file = path.open("rb")
        packed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        return log_of_stream(path.name, _Unpacked(file) if packed else file)
    except TORN_ERRORS as error:
        if file is not None:
            file.close()
        why = getattr(error, "strerror", None) or str(error)
        raise SnapshotError(
            f"cannot be read: {why}", where=str(path), next_step="name log files, plain or .gz"
        ) from error


class _Unpacked(io.RawIOBase):
    """The content of a gzip file; if the file is damaged, everything before the damage is read first."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._packed = gzip.GzipFile(fileobj=file)
        self._torn: Exception | None = None

    def readable(self) -> bool:
        """Return True, as `io.BufferedReader` requires of a stream that can be read."""
        return True

    def close(self) -> None:
        """Close the stream and its file."""
        self._packed.close()
        self._file.close()
        super().close()

    def readinto(self, into: Any) -> int:
        """Fill the buffer as far as possible and return the number of bytes.

        Raises one of `TORN_ERRORS` after the last byte that can be read.
        """
        if self._torn is not None:
            raise self._torn
        done = 0
        try:
            while done < len(into) and (some := self._packed.read1(len(into) - done)):
                into[done : done + len(some)] = some
                done += len(some)
        except TORN_ERRORS as error:
            self._torn = error
            if not done:
                raise
        return done


def log_of_stream(name: str, raw: io.RawIOBase | BinaryIO) -> Source:
    """Return the source for any stream of bytes."""
    stream = io.BufferedReader(cast(io.RawIOBase, raw), 1 << 20)
    start = stream.peek(_SNIFFED)[:_SNIFFED]
    first = start.partition(b"\n")[0][:HEAD_BYTES].rstrip()
    return Source(name, stream, hashlib.blake2b(first, digest_size=12).hexdigest(), start)
