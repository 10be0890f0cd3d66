"""Check that a Parquet file of a store is as it was written.

A reader does not notice a flipped byte inside a page: it returns another number. Therefore a file's checksum is
compared before its rows are used. The checksum of a snapshot's own file is in its manifest, the checksums of a pack's
files are in the file `sums.json` of their folder.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from dbdyno.base.errors import EvidenceError
from dbdyno.evidence.files import read_json
from dbdyno.snapshot.store.parquet import PIECE, checksum_of, checksum_of_bytes

SUMS = "sums.json"
"""File with the checksums of the other files in its folder."""
CHANGED = "was changed after it was written"
_KNOWN_MOST = 1 << 16
_Stamp = tuple[str, int, int, str | None]
_known: dict[_Stamp, str | None] = {}
"""Cache of results by path, size and time, because a report reads many figures from one file."""
_sums: dict[tuple[str, int, int], Mapping[str, object]] = {}


def damage(path: Path, known: str | None = None) -> str | None:
    """Return what is wrong with a file, or None if it is intact as far as known.

    `known` is the checksum that it had; without it, the one in `sums.json` of its folder is used.
    """
    known = known or pack_checksum(path)
    try:
        stamp = (*_stamp(path), known)
    except OSError:
        return _wrong(path, None)
    if stamp not in _known:
        if len(_known) >= _KNOWN_MOST:
            _known.clear()
        _known[stamp] = _wrong(path, known)
    return _known[stamp]


def pack_checksum(path: Path) -> str | None:
    """Return the checksum of a pack's file, or None if it is not known."""
    place = path.parent / SUMS
    try:
        stamp = _stamp(place)
        if stamp not in _sums:
            if len(_sums) >= _KNOWN_MOST:
                _sums.clear()
            found = read_json(place)
            _sums[stamp] = found if isinstance(found, dict) else {}
    except (OSError, EvidenceError):
        return None
    kept = _sums[stamp].get(path.name)
    return kept if isinstance(kept, str) else None


def _stamp(path: Path) -> tuple[str, int, int]:
    found = path.stat()
    return str(path), found.st_size, found.st_mtime_ns


def _wrong(path: Path, known: str | None) -> str | None:
    """Return what is wrong with a Parquet file (missing, cut off, not Parquet, wrong checksum), or None.

    It is opened once and read once, because a report checks hundreds of small files.
    """
    name = f"{path.parent.name}/{path.name}"
    try:
        # Opening a pipe in its place would block forever.
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb", buffering=0) as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                return f"its file {name} is not a file"
            whole = file.read(found.st_size + 1) if found.st_size <= PIECE else None
            if whole is not None and len(whole) == found.st_size:
                head, tail = whole[:4], whole[-8:]
                given = None if known is None else checksum_of_bytes(whole)
            else:
                head = os.pread(file.fileno(), 4, 0)
                tail = os.pread(file.fileno(), 8, max(0, found.st_size - 8))
                file.seek(0)
                given = None if known is None else checksum_of(file, found.st_size)
    except OSError as error:
        return f"its file {name} cannot be read: {error.strerror}"
    footer = int.from_bytes(tail[:4], "little")
    if head != b"PAR1" or tail[4:] != b"PAR1" or footer + 12 > found.st_size:
        return f"its file {name} is torn"
    return None if given == known else f"its file {name} {CHANGED}"
