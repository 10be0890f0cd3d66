"""Compressed answers that expand to far more than the limit: refused while they are being read."""

from __future__ import annotations

import bz2
import gzip
import lzma
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from dbdyno.base.errors import CellsError
from dbdyno.cells import files
from dbdyno.cells.files import text_of


@pytest.mark.parametrize("pack", [bz2.compress, gzip.compress, lzma.compress], ids=["bz2", "gz", "xz"])
def test_a_small_bomb_is_refused_before_it_fills_the_memory(tmp_path: Path, pack: Callable[[bytes], bytes]):
    path = tmp_path / "bomb"
    path.write_bytes(pack(bytes(40 << 20)))
    tracemalloc.start()
    try:
        with pytest.raises(CellsError, match="unpack to more than"):
            text_of(path)
        assert tracemalloc.get_traced_memory()[1] < 32 << 20
    finally:
        tracemalloc.stop()


def test_too_much_text_is_refused_packed_or_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(files, "MOST_BYTES", 2 << 20)
    plain, packed = tmp_path / "plain", tmp_path / "packed"
    plain.write_bytes(b"x" * (3 << 20))
    packed.write_bytes(gzip.compress(b"x" * (3 << 20)))
    with pytest.raises(CellsError, match="larger than 2 MiB"):
        text_of(plain)
    with pytest.raises(CellsError, match="when unpacked"):
        text_of(packed)


def test_an_ordinary_archive_is_read(tmp_path: Path):
    text = "\n".join(f"CL_CPUT cell01 {n} %" for n in range(100_000))
    (tmp_path / "a.bz2").write_bytes(bz2.compress(text.encode()))
    assert text_of(tmp_path / "a.bz2") == text
