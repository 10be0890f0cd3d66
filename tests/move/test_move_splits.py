"""Tests of pieces: they cover each relation once, have equal sizes, and are more than the workers."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dbdyno.move.reading.splits import PIECE_BYTES_MOST, Relation, split


def relation(blocks: int, *, toast: int = 0) -> Relation:
    return Relation("s", f"r{blocks}", 1, 2, blocks, blocks * 8192 + toast)


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    sizes=st.lists(st.integers(0, 200_000), min_size=1, max_size=5),
    workers=st.integers(1, 16),
    piece=st.one_of(st.none(), st.integers(1, 1 << 30)),
)
def test_every_block_is_in_one_piece(sizes: list[int], workers: int, piece: int | None) -> None:
    relations = [relation(blocks) for blocks in sizes]
    if piece is not None:
        piece = max(piece, 8192 * max(sizes) // 2000)
    chunks = split([("", relations)], workers=workers, size=piece)
    assert [chunk.number for chunk in chunks] == list(range(len(chunks)))
    assert len({chunk.file for chunk in chunks}) == len(chunks)
    for place in range(len(sizes)):
        own = [chunk for chunk in chunks if chunk.relation == place]
        assert own[-1].before is None, "what is added at the end is read as well"
        assert own[0].start in (None, 0)
        assert all(left.before == right.start for left, right in pairwise(own))
        spans = [
            chunk.before - chunk.start for chunk in own[:-1] if chunk.before is not None and chunk.start is not None
        ]
        assert not spans or max(spans) - min(spans) <= 1


def test_there_are_more_pieces_than_workers_and_none_is_huge() -> None:
    assert len(split([("", [relation(30_000)])], workers=4)) == 16
    huge = split([("", [relation(4_000_000)])], workers=2)
    assert max(chunk.bytes for chunk in huge) <= PIECE_BYTES_MOST
    assert len(split([("", [relation(10)])], workers=8)) == 1, "a small table is one piece"


def test_what_cannot_be_cut_is_one_stream() -> None:
    view = Relation("s", "v", stream=True)
    assert [(chunk.start, chunk.before) for chunk in split([("", [view])], workers=8)] == [(None, None)]
    old = split([("", [relation(30_000)])], workers=8, tid_ranges=False)
    assert [(chunk.start, chunk.before) for chunk in old] == [(None, None)]


@pytest.mark.parametrize("prefix", ["", "sales.orders/"])
def test_files_are_numbered_within_their_table(prefix: str) -> None:
    chunks = split([("a/", [relation(1)]), (prefix, [relation(1), relation(2)])], workers=1)
    assert [chunk.file for chunk in chunks] == [
        "a/part-00000.parquet",
        f"{prefix}part-00000.parquet",
        f"{prefix}part-00001.parquet",
    ]
