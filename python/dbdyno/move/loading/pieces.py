"""Pieces of files to load: a whole file, or a range of a large file's row groups.

Pieces let all workers take part, and let a resumed job skip what was already read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path

from dbdyno import _core
from dbdyno.base.core_types import MoveFileCount, MoveFinishedChunk
from dbdyno.move.ledger.folder import MODULUS
from dbdyno.move.reading.splits import piece_bytes

CSV = ".csv"


@dataclass(frozen=True)
class Piece:
    """Whole file, or the range `groups` of its row groups (first included, end excluded)."""

    file: int
    path: Path
    bytes: int
    rows: int | None = None
    groups: tuple[int, int] | None = None
    rows_before: int = 0


def pieces_of(files: Sequence[Path], workers: int) -> list[Piece]:
    """Return the pieces of all files, in the files' order.

    Raises:
        MoveError: A file cannot be read.
    """
    size = piece_bytes(sum(path.stat().st_size for path in files), workers)
    return [piece for number, path in enumerate(files) for piece in _cut(number, path, size)]


def whole_files(files: Sequence[Path]) -> list[Piece]:
    """Return one piece per file."""
    return [Piece(number, path, path.stat().st_size) for number, path in enumerate(files)]


def _cut(number: int, path: Path, size: int) -> Iterable[Piece]:
    """Yield ranges of row groups, each of about `size` bytes unless a single group is larger."""
    whole = path.stat().st_size
    groups = [] if path.suffix == CSV else _core.move_groups(path)
    rows = sum(count for count, _ in groups)
    if whole <= size or len(groups) < 2:
        yield Piece(number, path, whole, rows if groups else None)
        return
    count = min(-(-whole // size), len(groups))
    ends = list(accumulate(each for _, each in groups))
    cuts = [0]
    for at, end in enumerate(ends):
        if end * count >= ends[-1] * len(cuts):
            cuts.append(at + 1)
    cuts[-1] = len(groups)  # ensures that no row is left out, whatever sizes a file claims
    for first, end in pairwise(cuts):
        yield piece_at(number, path, groups, first, end)


def piece_at(number: int, path: Path, groups: Sequence[tuple[int, int]], first: int, end: int) -> Piece:
    """Return the piece that holds row groups `first` (included) to `end` (excluded) of a file."""
    inside = groups[first:end]
    before = sum(rows for rows, _ in groups[:first])
    return Piece(number, path, sum(one for _, one in inside), sum(rows for rows, _ in inside), (first, end), before)


def records_by_file(files: int, placed: Iterable[tuple[int, MoveFinishedChunk]]) -> list[MoveFileCount]:
    """Return one record per file, made from (number of the file, record of a piece) by adding up rows and hashes."""
    found: list[MoveFileCount] = [{"number": n, "rows": 0, "hash": "0", "refused": []} for n in range(files)]
    for file, one in placed:
        known = found[file]
        known["rows"] += one["rows"]
        known["hash"] = f"{(int(known['hash'], 16) + int(one['hash'], 16)) % MODULUS:032x}"
        known["refused"] += one["refused"]
    return found
