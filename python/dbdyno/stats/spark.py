"""Summary of a column computed by Spark, for evidence that is larger than one machine.

Spark computes the mergeable summary in SQL: counts and moments by group and block, counts per log bucket (the same
buckets as `dyno_stats::signed`), and the K largest values. The functions that finish the core's summary finish this
one, too. Counts, moments, extremes, buckets and the largest values are exact; quantiles and rank statistics use the
middles of the buckets, within 1/256 of each value.

An existing session is used. Otherwise one is started on SPARK_MASTER or local[*]; a local one is bound to addresses of
this machine only.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dbdyno.base.errors import StatsError
from dbdyno.base.json_types import JsonObject
from dbdyno.stats.arrays import natural_order
from dbdyno.stats.description import (
    NOTE,
    QUANTILES,
    QUARTILES,
    BlockValue,
    Description,
    Group,
    LongestValue,
    Ranks,
)
from dbdyno.stats.quantiles import Quantile, is_supported, quantile, quantile_interval
from dbdyno.stats.samples import Counts

APPROXIMATE = "quantiles and ranks are from log buckets, within 0.4 % of each value"
_ZERO = 1 << 18
_STEPS = 128
_BIAS = 1023

# The bucket of a value: sign, exponent and seven binary digits of its fraction. The logarithm may be slightly off at a
# power of two, so the exponent is corrected with exact powers.
_BUCKET = f"""
select g, b, count(*) as n, bucket from (
  select g, b, case when v = 0 then {_ZERO}
    when v > 0 then {_ZERO} + place else {_ZERO} - 1 - place end as bucket
  from (
    select g, b, v,
      cast((e + {_BIAS}) * {_STEPS} + floor((abs(v) / pow(2D, e) - 1) * {_STEPS}) as bigint)
        as place
    from (
      select g, b, v, case when pow(2D, e0) > abs(v) then e0 - 1
        when pow(2D, e0 + 1) <= abs(v) then e0 + 1 else e0 end as e
      from (
        select g, b, v, case when v = 0 then 0D else cast(floor(log2(abs(v))) as double) end as e0
        from picked where v is not null
      )
    )
  )
) group by g, b, bucket
"""  # noqa: S608 - numbers of this file
_MOMENTS = """
select g, b, count(v) as n, count(*) - count(v) as missing, avg(v) as mean,
  var_pop(v) * count(v) as m2, min(v) as low, max(v) as high
from picked group by g, b
"""


def bounds(bucket: int) -> tuple[float, float]:
    """Return the lower and upper end of a bucket; the bucket of zero is 0 to 0."""
    if bucket == _ZERO:
        return 0.0, 0.0
    place = bucket - _ZERO if bucket > _ZERO else _ZERO - 1 - bucket
    exponent, step = divmod(place, _STEPS)
    size = 2.0 ** (exponent - _BIAS)
    low, high = size * (1 + step / _STEPS), size * (1 + (step + 1) / _STEPS)
    return (low, high) if bucket > _ZERO else (-high, -low)


def spark_session() -> Any:
    """Return the active Spark session, or start one.

    Raises:
        StatsError: pyspark is not installed.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise StatsError(
            "Spark is not installed", next_step="run `pip install 'dbdyno[spark]'`, and install Java 17"
        ) from error
    there = SparkSession.getActiveSession()
    if there is not None:
        return there
    master = os.environ.get("SPARK_MASTER")
    builder = SparkSession.builder.appName("dbdyno stats").config("spark.ui.enabled", "false")
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    if master is None:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        builder = builder.config("spark.driver.host", "127.0.0.1")
        builder = builder.config("spark.driver.bindAddress", "127.0.0.1")
        builder = builder.config("spark.sql.shuffle.partitions", str(os.cpu_count() or 1))
    made = builder.master(master or "local[*]").getOrCreate()
    made.sparkContext.setLogLevel("ERROR")
    return made


def describe_by_spark(
    files: Sequence[Path],
    form: str,
    column: str,
    by: str | None = None,
    block: str | None = None,
    where: str | None = None,
    *,
    first: str | None = None,
    level: float = 0.95,
    longest: int = 0,
) -> tuple[Description, str, str | None]:
    """Summarise a column of Parquet or CSV files.

    Args:
        files: The files.
        form: "parquet", or anything else for CSV.
        column: Name of the column of numbers.
        by: Name of the grouping column.
        block: Name of the block column; None for the column `block` if there is one.
        where: Filter as an expression of Spark SQL.
        first: Name of the group that comes first.
        level: Confidence level of the intervals.
        longest: Number of largest values to return.

    Returns:
        The summary, the column, and the block column or None.

    Raises:
        StatsError: Spark is not installed or reports an error, or a column is missing or not a number.
    """
    spark = spark_session()
    from pyspark.errors import PySparkException
    from pyspark.sql import functions as f

    paths = [file.resolve().as_uri() for file in files]
    try:
        if form == "parquet":
            frame = spark.read.parquet(*paths)
        else:
            frame = spark.read.csv(paths, header=True, inferSchema=True)
        if block is None and "block" in frame.columns:
            block = "block"
        _check(frame, column, by, block)
        frame = frame.where(where) if where else frame
        value = f.col(_tick(column)).cast("double")
        none = f.lit("")
        picked = frame.select(
            f.when(~f.isnan(value), value).alias("v"),
            _word(f, by) if by else none.alias("g"),
            (_word(f, block) if block else none).alias("b"),
        )
        if by:
            picked = picked.withColumnRenamed(picked.columns[1], "g")
        picked.createOrReplaceTempView("picked")
        moments = spark.sql(_MOMENTS).collect()
        buckets = spark.sql(_BUCKET).collect()
        top = []
        if longest:
            top = spark.sql(
                "select v, g from picked where v is not null"  # noqa: S608 - a whole number
                f" order by v desc, g desc limit {int(longest)}"
            ).collect()
    except PySparkException as error:
        text = str(error).strip().splitlines()[0]
        raise StatsError(f"Spark reported an error: {text}", next_step="check the column and --where") from error
    names = natural_order({row["g"] for row in moments})
    if first in names:
        names = [first, *(name for name in names if name != first)]
    return combine_queries(names, moments, buckets, top, bool(block), level), column, block


def _tick(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _word(f: Any, name: str) -> Any:
    return f.coalesce(f.col(_tick(name)).cast("string"), f.lit("NULL"))


def _check(frame: Any, column: str, by: str | None, block: str | None) -> None:
    for name in filter(None, (column, by, block)):
        if name not in frame.columns:
            raise StatsError(
                f"there is no column {name!r}", next_step=f"use one of the columns {', '.join(frame.columns)}"
            )
    kind = dict(frame.dtypes)[column]
    if kind in ("string", "timestamp", "date", "binary"):
        raise StatsError(f"column {column!r} is {kind}, not a number", next_step="choose a column of numbers")


def combine_queries(
    names: Sequence[str],
    moments: Iterable[Any],
    buckets: Iterable[Any],
    top: Iterable[Any],
    by_block: bool,
    level: float,
) -> Description:
    """Return the summary made from the rows of the three queries."""
    cells: dict[str, list[Any]] = {name: [] for name in names}
    counts: dict[tuple[str, str], dict[int, int]] = {}
    for row in moments:
        cells[row["g"]].append(row)
    for row in buckets:
        counts.setdefault((row["g"], row["b"]), {})[int(row["bucket"])] = int(row["n"])
    groups, samples = [], []
    for name in names:
        whole: dict[int, int] = {}
        for (g, _), part in counts.items():
            for bucket, n in part.items() if g == name else ():
                whole[bucket] = whole.get(bucket, 0) + n
        merged = _merge_moments(cells[name])
        groups.append(_group(name, merged, whole, level))
        samples.append(_sample(whole))
    blocks = []
    in_time = {block: at for at, block in enumerate(natural_order({block for _, block in counts}))}
    for at, name in enumerate(names if by_block else ()):
        whole_cells = [row for row in cells[name] if row["n"]]
        for row in sorted(whole_cells, key=lambda row: in_time[row["b"]]):
            within = _sample(counts[name, row["b"]], row["low"], row["high"])
            values = {q: quantile(within, q) for q in QUANTILES}
            blocks.append(BlockValue(at, row["b"], int(row["n"]), float(row["mean"]), values))
    longest = tuple(LongestValue(float(row["v"]), row["g"], None, None) for row in top)
    integer = all(float(g.min).is_integer() and float(g.max).is_integer() for g in groups if g.n)
    return Description(
        groups=tuple(groups),
        ranks=_ranks(samples),
        blocks=tuple(blocks),
        longest=longest,
        integer=integer,
        level=level,
        approximate=APPROXIMATE,
        note=f"{NOTE}; {APPROXIMATE}",
    )


def _merge_moments(cells: Sequence[Any]) -> dict[str, object]:
    """Return the moments of several blocks merged into one (Chan, Golub and LeVeque 1983)."""
    found: JsonObject = {"n": 0, "missing": 0, "mean": 0.0, "m2": 0.0}
    found |= {"low": math.nan, "high": math.nan}
    for row in cells:
        found["missing"] += int(row["missing"])
        n, own = int(row["n"]), found["n"]
        if n == 0:
            continue
        apart = row["mean"] - found["mean"]
        found["mean"] += apart * n / (own + n)
        found["m2"] += row["m2"] + apart * apart * own * n / (own + n)
        found["n"] += n
        found["low"] = row["low"] if own == 0 else min(found["low"], row["low"])
        found["high"] = row["high"] if own == 0 else max(found["high"], row["high"])
    return found


def _sample(buckets: dict[int, int], low: float = -math.inf, high: float = math.inf) -> Counts:
    """Return the middles of the buckets with their counts, clipped to `low` and `high`."""
    numbers = sorted(buckets)
    middles = np.array([sum(bounds(bucket)) / 2 for bucket in numbers])
    counts = np.array([buckets[bucket] for bucket in numbers], dtype=np.int64)
    return Counts(np.clip(middles, low, high), counts)


def _group(name: str, merged: Mapping[str, Any], buckets: dict[int, int], level: float) -> Group:
    n, sample = merged["n"], _sample(buckets, merged["low"], merged["high"])
    quantiles = []
    for q in QUANTILES:
        if n and (q in QUARTILES or is_supported(n, q)):
            around = quantile_interval(sample, q, level)
            quantiles.append(Quantile(q, around.value, around.low, around.high))
        else:
            quantiles.append(Quantile(q, math.nan, math.nan, math.nan))
    return Group(
        name=name,
        n=n,
        missing=merged["missing"],
        shift=0.0,
        offset=merged["mean"],
        m2=merged["m2"],
        min=merged["low"],
        max=merged["high"],
        quantiles=tuple(quantiles),
        histogram=tuple((*bounds(bucket), buckets[bucket]) for bucket in sorted(buckets)),
    )


def _ranks(samples: Sequence[Counts]) -> Ranks | None:
    """Return rank statistics of the buckets; all values of a bucket are treated as ties. None below two groups."""
    if len(samples) < 2:
        return None
    values = np.unique(np.concatenate([sample.values for sample in samples]))
    spread = []
    for sample in samples:
        counts = np.zeros(values.size, dtype=np.int64)
        counts[np.searchsorted(values, sample.values)] = sample.counts
        spread.append([int(c) for c in counts])
    together = [sum(column) for column in zip(*spread, strict=True)]
    tie_term = sum(t**3 - t for t in together)
    before, doubled = 0, []
    for t in together:
        doubled.append(2 * before + t + 1)
        before += t
    sums = tuple(sum(c * d for c, d in zip(counts, doubled, strict=True)) for counts in spread)
    if len(samples) > 2:
        return Ranks(tie_term, sums_doubled=sums)
    (a, b), (n, m) = spread, (sum(s) for s in spread)
    apart, above, below = 0, 0, 0
    for in_a, in_b in zip(a, b, strict=True):
        apart += in_b * n - in_a * m
        above, below = max(above, apart), max(below, -apart)
    return Ranks(tie_term, u_doubled=sums[1] - m * (m + 1), above=above, below=below)
