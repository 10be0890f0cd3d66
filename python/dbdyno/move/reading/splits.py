"""Pieces of equal size, more than there are workers: each worker takes the next one when it becomes free.

A table is cut by the blocks of its file: a piece is a range of `ctid`, for which PostgreSQL 14 or
newer reads only that part of the file; it needs no index or key, and skew or NULLs do not matter. The last piece of a
relation has no upper bound. All pieces are read in one snapshot, so a row that moves meanwhile is seen once.

Before version 14 the server would read the whole table for each piece, so each relation is one stream. Relations
without a file (a view, a query, a foreign table) are also one stream.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

PIECES_PER_WORKER = 4
PIECE_BYTES_MOST = 256 << 20
PIECE_BYTES_LEAST = 1 << 20
TID_RANGES_SINCE = 140000


@dataclass(frozen=True)
class Relation:
    """Source of rows: a table, a partition or a materialized view; or one stream of a view or a query."""

    schema: str
    name: str
    oid: int = 0
    file: int = 0
    blocks: int = 0
    bytes: int = 0
    stream: bool = False
    key: str = ""
    """Column whose ranges divide the relation into pieces if the relation has no blocks."""


@dataclass(frozen=True)
class Chunk:
    """One piece of a relation, from `start` (included) to `before` (excluded).

    If only `before` is None, the chunk ends at the end of the relation; if both are None, it is the whole relation.
    """

    number: int
    table: int
    relation: int
    file: str
    bytes: int
    start: int | None = None
    before: int | None = None

    def to_json(self) -> dict[str, object]:
        """Return the chunk as a dictionary for the manifest."""
        return asdict(self)


def piece_bytes(total: int, workers: int) -> int:
    """Return the size of a piece in bytes for a total of `total` bytes."""
    equal = -(-total // (max(workers, 1) * PIECES_PER_WORKER)) if workers > 1 else PIECE_BYTES_MOST
    return min(max(equal, PIECE_BYTES_LEAST), PIECE_BYTES_MOST)


def split(
    tables: Sequence[tuple[str, Sequence[Relation]]],
    *,
    workers: int,
    size: int | None = None,
    tid_ranges: bool = True,
) -> list[Chunk]:
    """Return the pieces of all tables.

    Args:
        tables: The prefix of each table's files, and its relations.
        workers: Number of workers.
        size: Size of a piece in bytes, or None to choose it by the number of workers.
        tid_ranges: True if the server reads ranges of blocks efficiently (from version 14 on).
    """
    total = sum(relation.bytes for _, relations in tables for relation in relations)
    size = size or piece_bytes(total, workers)
    chunks: list[Chunk] = []
    for table, (prefix, relations) in enumerate(tables):
        begun = len(chunks)
        for place, relation in enumerate(relations):
            count = 1
            if tid_ranges and not relation.stream and relation.blocks:
                count = min(max(-(-relation.bytes // size), 1), relation.blocks)
            ends = [relation.blocks * piece // count for piece in range(count + 1)]
            for piece in range(count):
                number = len(chunks)
                whole = count == 1
                chunks.append(
                    Chunk(
                        number,
                        table,
                        place,
                        f"{prefix}part-{number - begun:05}.parquet",
                        relation.bytes // count,
                        None if whole else ends[piece],
                        None if piece == count - 1 else ends[piece + 1],
                    )
                )
    return chunks
