"""Ranges of a primary key, cut at the middle of the key range where the server estimates too many rows.

The server estimates the rows of a range from a few index pages without reading rows, so a skewed key is cut where its
rows are, not where its numbers are. The first range has no lower bound and the last no upper bound, so a row with a new
key falls into one of them. A table whose primary key does not start with an integer is read as one stream.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from dbdyno.bench.mariadb.session import rows
from dbdyno.move.engines.mariadb.sql import quote_name
from dbdyno.move.engines.postgres.source import Table
from dbdyno.move.reading.splits import PIECE_BYTES_LEAST, PIECE_BYTES_MOST, PIECES_PER_WORKER, Chunk, Relation

CUTS_MOST = 4_000
SMALL = 0.6
"""A range with less than this share of the wanted number of rows is not cut again."""

Estimate = Callable[[int, int], int]


@dataclass(frozen=True)
class Range:
    """Keys from `start` (included) to `before` (excluded), with the server's row estimate."""

    start: int
    before: int
    rows: int


def cut_keys(first: int, last: int, pieces: int, estimate: Estimate) -> list[Range]:
    """Cut the keys `first` to `last` (both included) into at least `pieces` ranges if possible, fullest range first.

    Neighbouring ranges that together hold no more than the wanted number of rows are joined again.
    """
    whole = Range(first, last + 1, estimate(first, last + 1))
    wanted = max(whole.rows / max(pieces, 1), 1.0)
    heap: list[tuple[int, int, Range]] = [(-whole.rows, first, whole)]
    done: list[Range] = []
    for _ in range(CUTS_MOST):
        if not heap or (-heap[0][0] <= wanted * (1 + SMALL) and len(heap) + len(done) >= pieces):
            break
        _, _, one = heapq.heappop(heap)
        middle = (one.start + one.before) // 2
        if middle in (one.start, one.before) or one.rows <= wanted * SMALL:
            done.append(one)
            continue
        for start, before in ((one.start, middle), (middle, one.before)):
            part = Range(start, before, estimate(start, before))
            heapq.heappush(heap, (-part.rows, start, part))
    done += [one for _, _, one in heap]
    return _join_ranges(sorted(done, key=lambda one: one.start), wanted)


def _join_ranges(ranges: Sequence[Range], wanted: float) -> list[Range]:
    """Join neighbouring ranges that together hold at most the wanted number of rows."""
    joined: list[Range] = []
    for one in ranges:
        if joined and joined[-1].rows + one.rows <= wanted:
            joined[-1] = Range(joined[-1].start, one.before, joined[-1].rows + one.rows)
        else:
            joined.append(one)
    return joined


def chunks_of(
    conn: Any, tables: Sequence[Table], prefixes: Sequence[str], workers: int, piece_bytes: int | None
) -> list[Chunk]:
    """Return the chunks of all tables, of about equal size.

    Args:
        conn: The session in which the server estimates numbers of rows.
        tables: The tables to cut.
        prefixes: The folder of each table's files, empty or ending with a slash.
        workers: Number of workers.
        piece_bytes: Size of a chunk in bytes, or None to choose it by the number of workers.
    """
    total = sum(relation.bytes for table in tables for relation in table.relations)
    equal = -(-total // (workers * PIECES_PER_WORKER)) if workers > 1 else PIECE_BYTES_MOST
    size = piece_bytes or min(max(equal, PIECE_BYTES_LEAST), PIECE_BYTES_MOST)
    chunks: list[Chunk] = []
    for place, (prefix, table) in enumerate(zip(prefixes, tables, strict=True)):
        begun = len(chunks)
        relation = table.relations[0]
        for start, before, share in _ranges(conn, relation, -(-relation.bytes // size)):
            file = f"{prefix}part-{len(chunks) - begun:05}.parquet"
            chunks.append(Chunk(len(chunks), place, 0, file, round(relation.bytes * share), start, before))
    return chunks


def _ranges(conn: Any, relation: Relation, pieces: int) -> list[tuple[int | None, int | None, float]]:
    if relation.stream or pieces < 2:
        return [(None, None, 1.0)]
    key, place = quote_name(relation.key), quote_name(relation.schema, relation.name)
    found = rows(conn, f"select min({key}), max({key}) from {place}")
    first, last = found[0]
    if first is None:
        return [(None, None, 1.0)]

    def estimate(start: int, before: int) -> int:
        text = f"explain select {key} from {place} force index (primary) where {key} >= {start} and {key} < {before}"
        with conn.cursor() as cursor:
            cursor.execute(text)
            heads = [one[0] for one in cursor.description]
            row = dict(zip(heads, cursor.fetchone(), strict=True))
        return int(row["rows"] or 0)

    ranges = cut_keys(int(first), int(last), pieces, estimate)
    rows_in_all = max(sum(one.rows for one in ranges), 1)
    return [
        (
            None if number == 0 else one.start,
            None if number == len(ranges) - 1 else one.before,
            one.rows / rows_in_all,
        )
        for number, one in enumerate(ranges)
    ]
