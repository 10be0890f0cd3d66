"""Progress of a job in bytes, including the bytes of chunks that are not finished yet.

A chunk's size on disk differs from the size of its rows on the wire; finished chunks show the ratio. Parquet files
contain their number of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from dbdyno import _core
from dbdyno.move.loading.pieces import CSV, Piece

if TYPE_CHECKING:
    from dbdyno.base.core_types import MoveFinishedChunk

Show = Callable[[float, int, int], None]
"""Function called from time to time with the finished share, the bytes so far, the expected bytes (0 if unknown)."""
NEARLY = 0.995
"""Largest share that is shown while the job is not finished."""


class ChunkProgress:
    """Progress of chunks whose sizes on disk are known; `finished` are those of an earlier attempt."""

    def __init__(self, show: Show | None, sizes: Mapping[int, int], finished: Collection[int] = ()) -> None:
        self._show, self._sizes = show, sizes
        self._before = sum(sizes[number] for number in finished)
        self._left = len(sizes) - len(finished)
        self._of = self._came = 0

    def done(self, chunk: MoveFinishedChunk) -> None:
        """Count a chunk as finished."""
        self._left -= 1
        self._of += self._sizes.get(chunk["number"], 0)
        self._came += chunk["copy_bytes"]

    def show(self, copied: int) -> None:
        """Show progress after `copied` bytes were received in this attempt."""
        if self._show is None:
            return
        expected = (sum(self._sizes.values()) - self._before) * (self._came / self._of if self._of else 1)
        self._show(*_share(copied, expected, whole=self._left == 0))


class FileProgress:
    """Progress of pieces of files that are loaded."""

    def __init__(self, show: Show | None, pieces: Sequence[Piece]) -> None:
        self._show = show
        self._rows, self._bytes = 0, 0
        if self._show is not None:
            rows = [_rows(one) for one in pieces]
            self._rows = sum(rows) if all(rows) else 0  # type: ignore[arg-type]
            self._bytes = sum(one.bytes for one in pieces)

    def show(self, copied: int, rows: int, *, whole: bool = False) -> None:
        """Show progress after `copied` bytes with `rows` rows were sent."""
        if self._show is not None:
            expected = copied * self._rows / rows if self._rows and rows else self._bytes
            self._show(*_share(copied, expected, whole=whole))


def _rows(piece: Piece) -> int | None:
    if piece.rows is not None or piece.path.suffix == CSV:
        return piece.rows
    return _core.move_describe(piece.path)[1]


def _share(copied: int, expected: float, *, whole: bool) -> tuple[float, int, int]:
    """Return the finished share, the finished bytes, and the expected bytes."""
    if whole:
        return 1.0, copied, copied
    if not expected:
        return 0.0, copied, 0
    return min(copied / expected, NEARLY), copied, max(round(expected), copied)
