"""Descriptions: accepted inputs in every form, and the results."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dbdyno.base.errors import EvidenceError, StatsError
from dbdyno.stats import describe as public_describe
from dbdyno.stats.arrays import column, complete_rows, labels
from dbdyno.stats.description import Description, describe, describe_parquet


class OnlyArrow:
    """An object that has only Arrow's C stream interface."""

    def __init__(self, values: pa.ChunkedArray) -> None:
        self._values = values

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._values.__arrow_c_stream__(requested_schema)


def table(rows: int, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    arm = rng.choice(["base", "other"], rows)
    values = np.round(rng.lognormal(6, 1, rows) * np.where(arm == "other", 1.1, 1.0)).astype(int)
    missing = rng.random(rows) < 0.05
    return pa.table(
        {
            "arm": pa.array(arm, mask=rng.random(rows) < 0.02),
            "block": pa.array(rng.integers(0, 12, rows), pa.uint32()),
            "whole": pa.array(values, mask=missing),
            "real": pa.array(np.where(missing, np.nan, values / 7 - 100)),
        }
    )


def same(a: Description, b: Description) -> None:
    """Check that two descriptions are equal, except for where the longest values were found."""
    assert [g.name for g in a.groups] == [g.name for g in b.groups]
    for g, h in zip(a.groups, b.groups, strict=True):
        assert (g.n, g.missing, g.min, g.max) == (h.n, h.missing, h.min, h.max)
        assert (g.mean, g.m2) == pytest.approx((h.mean, h.m2), rel=1e-12)
        assert g.histogram == h.histogram
        for q, r in zip(g.quantiles, h.quantiles, strict=True):
            assert (q.value, q.low, q.high) == pytest.approx((r.value, r.low, r.high), nan_ok=True)
    assert a.ranks == b.ranks
    blocks = [sorted((v.block, v.group, v.n, round(v.mean, 6)) for v in d.blocks) for d in (a, b)]
    assert blocks[0] == blocks[1]
    assert [e.value for e in a.longest] == [e.value for e in b.longest]


@pytest.mark.parametrize("name", ["whole", "real"])
def test_parquet_arrays_and_any_split_give_the_same(tmp_path: Path, name: str) -> None:
    whole = table(20_000)
    of_arrays = describe(whole[name], whole["arm"], whole["block"], longest=7)
    files = []
    for at, (start, length) in enumerate([(0, 1), (1, 12_000), (12_001, 0), (12_001, 7_999)]):
        files.append(tmp_path / f"p{at}.parquet")
        part = whole.slice(start, length)
        if at % 2:
            part = part.set_column(0, "arm", part["arm"].dictionary_encode())
        compression = ["snappy", "zstd", "none", "snappy"][at]
        pq.write_table(part, files[-1], compression=compression, row_group_size=3_000)
    of_files = describe_parquet([("", files)], name, "arm", "block", longest=7)
    assert isinstance(of_files, Description)
    same(of_files, of_arrays)
    for entry in of_files.longest:
        part = pq.read_table(str(entry.file))
        assert part[name][entry.row].as_py() == entry.value
        assert (part["arm"][entry.row].as_py() or "NULL") == entry.group


def test_the_figures_are_those_of_numpy() -> None:
    rng = np.random.default_rng(1)
    values = rng.normal(-3, 50, 12_345)
    found = describe(values, fences=True).groups[0]
    assert found.mean == pytest.approx(values.mean(), rel=1e-12)
    assert found.sd == pytest.approx(values.std(ddof=1), rel=1e-12)
    for q in found.quantiles:
        if not math.isnan(q.value):
            assert q.value == pytest.approx(np.quantile(values, q.q), rel=1e-12)
            assert q.low <= q.value <= q.high
    assert math.isnan(found.quantile(0.9999).value), "one value beyond is no quantile"
    assert sum(count for *_, count in found.histogram) == values.size
    q1, q3 = np.quantile(values, [0.25, 0.75])
    fences = found.fences
    assert fences is not None
    assert fences.ends == pytest.approx([q1 + k * (q3 - q1) for k in (-3, -1.5, 2.5, 4)])
    assert fences.beyond[1] == (values < fences.ends[1]).sum()
    assert fences.beyond[2] == (values > fences.ends[2]).sum()
    mad = np.median(np.abs(values - np.median(values)))
    assert fences.mad == pytest.approx(mad)
    z = 0.6745 * np.abs(values - np.median(values)) / mad
    assert fences.modified_z == (z > 3.5).sum()


def test_columns_of_every_kind() -> None:
    values = [3, 1, 2]
    stream = OnlyArrow(pa.chunked_array([[3, 1], [2]]))
    for data in (values, np.array(values), pa.array(values), stream, pa.chunked_array([values])):
        assert column(data).tolist() == values
    assert column(np.array([True, False])).dtype == np.int64
    assert column(np.array([1, 2], np.uint64)).dtype == np.int64
    assert column(np.array([2**63], np.uint64)).dtype == np.float64
    assert np.isnan(column(pa.array([1, None]))[1])
    assert np.isnan(column(np.ma.masked_array([1, 2], [False, True]))[1])
    with pytest.raises(StatsError, match="not contain numbers"):
        column(["a", "b"])
    with pytest.raises(StatsError, match="one dimension"):
        column(np.zeros((2, 2)))


@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_columns_of_data_frames(library: str) -> None:
    frames = pytest.importorskip(library)
    frame = frames.DataFrame({"g": ["b", "a", "b"], "v": [1.0, 2.0, None]})
    found = describe(frame["v"], frame["g"])
    assert [(g.name, g.n, g.missing) for g in found.groups] == [("a", 1, 0), ("b", 1, 1)]


def test_groups_stand_in_natural_order() -> None:
    assert labels([10, 9, 100])[1] == ["9", "10", "100"]
    numbers, names = labels(pa.array(["b", None, "a"]))
    assert (numbers.tolist(), names) == ([2, 0, 1], ["NULL", "a", "b"])


def test_rows_without_a_value_are_left_out_together() -> None:
    x, y = complete_rows([1, 2, None, 4], [1.0, math.inf, 3.0, 8.0])
    assert (x.tolist(), y.tolist()) == ([1, 4], [1, 8])
    with pytest.raises(StatsError, match="numbers of rows: 3, 2"):
        complete_rows([1, 2, 3], [1, 2])


def test_what_cannot_be_described_is_said(tmp_path: Path) -> None:
    with pytest.raises(StatsError, match="differ in length"):
        describe([1, 2, 3], ["a", "b"])
    with pytest.raises(StatsError, match="quantile"):
        describe([1], quantiles=[1.5])
    torn = tmp_path / "torn.parquet"
    torn.write_bytes(b"PAR1 and nothing more")
    with pytest.raises(EvidenceError, match=r"torn\.parquet"):
        describe_parquet([("", [torn])], "x")
    text = tmp_path / "text.parquet"
    pq.write_table(pa.table({"x": ["a"]}), text)
    assert "Utf8" in str(describe_parquet([("", [text])], "x"))


def test_an_empty_column_is_described_as_empty() -> None:
    group = public_describe([]).groups[0]
    assert (group.n, group.missing) == (0, 0)
    assert math.isnan(group.mean)
    assert math.isnan(group.quantile(0.5).value)


def test_whole_numbers_keep_their_digits_where_they_are_large() -> None:
    """Nanoseconds since 1970 differ in their last digits; a double holds every 256th."""
    start = 1_795_000_000_000_000_000
    found = describe([start, start + 1, start + 2, start + 3])
    assert found.groups[0].sd == pytest.approx(math.sqrt(5 / 3), rel=1e-12)
