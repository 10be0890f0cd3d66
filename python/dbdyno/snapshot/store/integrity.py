"""Check that a Parquet file of a store is as it was written.

A flipped byte inside a page is not an error for a reader, but another number. Therefore a file's checksum is compared
before its rows are used. The checksum of a snapshot's own file is in its manifest, the checksums of a pack's files are
in the file `sums.json` of their folder.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from dbdyno.base.errors import EvidenceError
from dbdyno.evidence.files import read_json
from dbdyno.snapshot.store.parquet import file_sum

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
    known = known or beside(path)
    try:
        stamp = (*_stamp(path), known)
    except OSError:
        return torn(path)
    if stamp not in _known:
        if len(_known) >= _KNOWN_MOST:
            _known.clear()
        _known[stamp] = torn(path) or _changed(path, known)
    return _known[stamp]


def _changed(path: Path, known: str | None) -> str | None:
    if known is None or file_sum(path) == known:
        return None
    return f"its file {path.parent.name}/{path.name} {CHANGED}"


def beside(path: Path) -> str | None:
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


def torn(path: Path) -> str | None:
    """Return what is visibly wrong with a Parquet file (missing, cut off, not Parquet), or None."""
    try:
        # Opening a pipe in its place would block forever.
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return f"its file {path.parent.name}/{path.name} is not a file"
            head = file.read(4)
            size = file.seek(0, 2)
            file.seek(max(0, size - 8))
            tail = file.read(8)
    except OSError as error:
        return f"its file {path.parent.name}/{path.name} cannot be read: {error.strerror}"
    footer = int.from_bytes(tail[:4], "little")
    if head != b"PAR1" or tail[4:] != b"PAR1" or footer + 12 > size:
        return f"its file {path.parent.name}/{path.name} is torn"
    return None
