"""Summaries by Spark compared with those of the core on the same files; all tests share one session."""

from __future__ import annotations

import os
import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import stats

from dbdyno.base.errors import StatsError
from dbdyno.stats.description import Description, describe_parquet
from dbdyno.stats.group_tests import compare_groups, compare_in_blocks
from dbdyno.stats.spark import bounds, describe_by_spark

# pyspark leaves the sockets of its results to the garbage collector.
pytestmark = [
    pytest.mark.soak,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
pytest.importorskip("pyspark", reason="pyspark is not installed")
if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
    pytest.skip("no Java", allow_module_level=True)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Write three Parquet parts with arms, blocks, integers, floats of both signs, and missing values."""
    folder = tmp_path_factory.mktemp("evidence")
    rng = np.random.default_rng(11)
    made = []
    for at in range(3):
        n = 20_000
        arm = rng.choice(["a", "b"], n)
        values = rng.lognormal(6, 1, n) * np.where(arm == "b", 1.07, 1.0)
        missing = rng.random(n) < 0.01
        powers = 2.0 ** rng.integers(-30, 60, n) * rng.choice([-1, 1], n)
        table = pa.table(
            {
                "arm": arm,
                "block": pa.array(rng.integers(4 * at, 4 * at + 4, n), pa.int32()),
                "us": pa.array(values.astype(np.int64), mask=missing),
                "real": pa.array(np.where(missing, np.nan, values - 500)),
                "edge": pa.array(np.where(rng.random(n) < 0.1, 0.0, powers)),
            }
        )
        made.append(folder / f"part-{at}.parquet")
        pq.write_table(table, made[-1])
    return made


@pytest.fixture(scope="module", autouse=True)
def spark() -> Iterator[None]:
    """Stop the Spark session after the last test of the module."""
    yield
    from pyspark.sql import SparkSession

    there = SparkSession.getActiveSession()
    if there is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            there.stop()


def both(files: list[Path], column: str, by: str | None = "arm") -> tuple[Description, Description]:
    here = describe_parquet([("", files)], column, by, "block", longest=50)
    assert isinstance(here, Description)
    there, used, block = describe_by_spark(files, "parquet", column, by, longest=50)
    assert (used, block) == (column, "block")
    return here, there


@pytest.mark.parametrize("column", ["us", "real", "edge"])
def test_the_summary_is_the_same(files: list[Path], column: str) -> None:
    here, there = both(files, column)
    assert [g.name for g in there.groups] == ["a", "b"]
    for g, h in zip(here.groups, there.groups, strict=True):
        assert (g.n, g.missing, g.min, g.max) == (h.n, h.missing, h.min, h.max)
        assert (h.mean, h.sd) == pytest.approx((g.mean, g.sd), rel=1e-10)
        assert h.histogram == g.histogram, "bucket by bucket"
        for q, r in zip(g.quantiles, h.quantiles, strict=True):
            # A rank in a bucket: its middle is within 1/256; between two ranks, of either.
            assert r.value == pytest.approx(q.value, rel=2 / 256, nan_ok=True)
    assert [e.value for e in there.longest] == [e.value for e in here.longest]


def test_the_tests_are_the_same(files: list[Path]) -> None:
    here, there = both(files, "us")
    for found, expected in zip(compare_groups(there), compare_groups(here), strict=True):
        exact = found.test == "Welch t"
        assert found.statistic == pytest.approx(expected.statistic, rel=1e-9 if exact else 5e-3)
        assert found.log10_p == pytest.approx(expected.log10_p, rel=1e-9 if exact else 0.05)
    answers = [compare_in_blocks(described) for described in (there, here)]
    assert [a.metric for a in answers[0]] == [a.metric for a in answers[1]]
    for a, b in zip(*answers, strict=True):
        near = 1e-9 if a.metric == "mean" else 8e-3
        assert (a.ratio, a.low, a.high) == pytest.approx((b.ratio, b.low, b.high), rel=near)


def test_where_is_spark_sql_and_what_is_wrong_is_said(files: list[Path]) -> None:
    found, _, _ = describe_by_spark(files, "parquet", "us", where="arm = 'a' and us < 400")
    assert found.groups[0].max < 400
    with pytest.raises(StatsError, match="no column"):
        describe_by_spark(files, "parquet", "none")
    with pytest.raises(StatsError, match="not a number"):
        describe_by_spark(files, "parquet", "arm")
    with pytest.raises(StatsError, match="Spark: "):
        describe_by_spark(files, "parquet", "us", where="nonsense(")


def test_csv_and_three_groups(files: list[Path], tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("g,v\nx,1\nx,2\ny,2\ny,5\nz,\nz,7\nz,7\n")
    found, _, _ = describe_by_spark([path], "csv", "v", "g")
    assert [(g.name, g.n, g.missing) for g in found.groups] == [
        ("x", 2, 0),
        ("y", 2, 0),
        ("z", 2, 1),
    ]
    kruskal = compare_groups(found)[-1]
    assert kruskal.statistic == pytest.approx(stats.kruskal([1, 2], [2, 5], [7, 7]).statistic)


def test_buckets_have_the_core_s_ends(files: list[Path]) -> None:
    here = describe_parquet([("", files)], "edge")
    assert isinstance(here, Description)
    middle, reach = 1 << 18, (1023 + 64) * 128
    known = {bounds(bucket) for bucket in range(middle - reach, middle + reach)}
    assert {(low, high) for low, high, _ in here.groups[0].histogram} <= known


def test_the_command_line_takes_the_same_way(files: list[Path]) -> None:
    from dbdyno.cli.stats.options import Input
    from dbdyno.cli.stats.read import describe_operands

    folder = str(files[0].parent)
    given = Input((folder,), Path("runs"))
    there, column, block = describe_operands(given, column="us", by="arm", block=None, engine="spark")
    assert (column, block) == ("us", "block")
    assert there.groups[0].n == both(files, "us")[0].groups[0].n
    with pytest.raises(StatsError, match="one operand"):
        describe_operands(Input((folder, folder), Path("runs")), column="us", by=None, engine="spark")
