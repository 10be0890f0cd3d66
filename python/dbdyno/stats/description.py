"""Summary of a column of numbers in groups, like R's summary and more, from arrays or files.

The core computes counts, moments, quantiles with their order-statistic intervals, a histogram and the longest values;
this module turns them into named fields. The same fields come from Parquet files (`describe_parquet`), from arrays
(`describe`) and from Spark, and every test of `group_tests` starts from them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dbdyno import _core
from dbdyno.base.errors import StatsError
from dbdyno.stats.arrays import column, labels
from dbdyno.stats.quantiles import Quantile, is_supported

QUARTILES = (0.25, 0.5, 0.75)
TAIL = (0.9, 0.95, 0.99, 0.999, 0.9999)
QUANTILES = (*QUARTILES, *TAIL)
NOTE = "intervals assume independent values"


@dataclass(frozen=True, slots=True)
class Fences:
    """Counts of outliers.

    Attributes:
        ends: Tukey's fences: Q1 - 3 IQR, Q1 - 1.5 IQR, Q3 + 1.5 IQR, Q3 + 3 IQR.
        beyond: Number of values outside each fence.
        mad: Median absolute deviation.
        modified_z: Number of values with 0.6745 |x - median| / mad above 3.5 (Iglewicz and Hoaglin 1993).
        six_sigma: Number of values more than six standard deviations above the mean (Gregg).
    """

    ends: tuple[float, float, float, float]
    beyond: tuple[int, int, int, int]
    mad: float
    modified_z: int
    six_sigma: int


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Summary of one group.

    `mean` is `shift + offset`; differences of means are computed from the offsets, which keep more digits. `histogram`
    holds (low, high, count) with low <= value < high. Mean and deviation are not defined if values are infinite or too
    large to be squared.
    """

    name: str
    n: int
    missing: int
    shift: float
    offset: float
    m2: float
    min: float
    max: float
    quantiles: tuple[Quantile, ...]
    histogram: tuple[tuple[float, float, int], ...]
    fences: Fences | None = None

    @property
    def mean(self) -> float:
        """Return the mean; NaN without values."""
        return self.shift + self.offset if self.n else math.nan

    @property
    def variance(self) -> float:
        """Return the variance with denominator n - 1; NaN below two values."""
        return self.m2 / (self.n - 1) if self.n > 1 else math.nan

    @property
    def sd(self) -> float:
        """Return the standard deviation with denominator n - 1; NaN below two values."""
        return math.sqrt(self.variance) if self.n > 1 else math.nan

    @property
    def has_moments(self) -> bool:
        """Return True if mean and deviation are finite, or if there are no values."""
        return not self.n or math.isfinite(self.shift + self.offset + self.m2)

    def quantile(self, q: float) -> Quantile:
        """Return the quantile `q`, which must be one of those computed; otherwise `StopIteration` is raised."""
        return next(found for found in self.quantiles if found.q == q)


@dataclass(frozen=True, slots=True, eq=False)
class BlockValue:
    """One group within one block: count, mean, and quantiles by q."""

    group: int
    block: str
    n: int
    mean: float
    quantiles: dict[float, float]


@dataclass(frozen=True, slots=True)
class LongestValue:
    """One of the largest values with the group, file and row where it was found; file and row are None if unknown."""

    value: float
    group: str
    file: str | None
    row: int | None


@dataclass(frozen=True, slots=True)
class Ranks:
    """Rank statistics of two or more groups.

    Attributes:
        tie_term: Sum of t^3 - t over groups of tied values.
        u_doubled: Two groups: twice Mann-Whitney's U of the second against the first.
        above: Two groups: largest distance of the distribution functions in one direction, times n m.
        below: Two groups: largest distance in the other direction, times n m.
        tied: Two small groups: number of occurrences of each distinct value.
        sums_doubled: More groups: twice the rank sums.
    """

    tie_term: int
    u_doubled: int = 0
    above: int = 0
    below: int = 0
    tied: tuple[int, ...] = ()
    sums_doubled: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Description:
    """Summary of a column in its groups.

    Attributes:
        groups: Summary of each group.
        ranks: Rank statistics; None if they were not computed.
        blocks: Values of each group within each block.
        longest: The largest values.
        integer: True if all values are whole numbers.
        level: Confidence level of the intervals.
        approximate: How exact ranks and quantiles are; empty if they are exact.
        note: Assumption of the intervals.
    """

    groups: tuple[Group, ...]
    ranks: Ranks | None
    blocks: tuple[BlockValue, ...]
    longest: tuple[LongestValue, ...]
    integer: bool
    level: float
    approximate: str = ""
    note: str = NOTE

    def __getitem__(self, name: str) -> Group:
        return next(group for group in self.groups if group.name == name)


def describe(
    values: Any,
    by: Any = None,
    block: Any = None,
    *,
    quantiles: Sequence[float] = QUANTILES,
    level: float = 0.95,
    longest: int = 0,
    fences: bool = False,
) -> Description:
    """Summarise a column, as a whole or by groups, and by blocks if `block` is set.

    Columns may be numpy arrays, Arrow arrays, columns of polars or pandas, or lists. Missing values are left out and
    counted.

    Args:
        values: The column of numbers.
        by: Column of group names; None for one group.
        block: Column with the block of each value.
        quantiles: Quantiles to compute, 0 to 1.
        level: Confidence level of the intervals.
        longest: Number of largest values to return.
        fences: True to count outliers.

    Raises:
        StatsError: The columns differ in length, or a quantile or the level is out of range.
    """
    array = column(values)
    group_numbers, groups = labels(by) if by is not None else (None, [])
    block_numbers, blocks = labels(block) if block is not None else (None, [])
    asked = request_options(quantiles=quantiles, level=level, longest=longest, fences=fences)
    asked |= {"groups": groups, "blocks": blocks}
    found = _core.stats_arrays(array, group_numbers, block_numbers, asked)
    return description_of(found, level)


def request_options(*, quantiles: Sequence[float], level: float, longest: int, fences: bool) -> dict[str, object]:
    """Return the options of a request to the core that do not depend on the source of the data.

    Raises:
        StatsError: A quantile is outside 0..1, or the level is not between 0 and 1.
    """
    if not all(0.0 <= q <= 1.0 for q in quantiles) or not 0.0 < level < 1.0:
        raise StatsError(
            "a quantile must be within 0..1, a level between 0 and 1",
            next_step="check --quantiles and --level",
        )
    return {
        "quantiles": list(quantiles),
        "level": level,
        "longest": longest,
        "fences": fences,
    }


def describe_parquet(
    sets: Sequence[tuple[str, Sequence[Path]]],
    value: str,
    by: str | None = None,
    block: str | None = None,
    *,
    first: str | None = None,
    quantiles: Sequence[float] = QUANTILES,
    level: float = 0.95,
    longest: int = 0,
    fences: bool = False,
) -> Description | str:
    """Summarise a column of Parquet files, which the core reads.

    Args:
        sets: Pairs of a label and its files. Without `by` each set is a group.
        value: Name of the column of numbers.
        by: Name of the grouping column.
        block: Name of the block column.
        first: Name of the group that comes first.
        quantiles: Quantiles to compute, 0 to 1.
        level: Confidence level of the intervals.
        longest: Number of largest values to return.
        fences: True to count outliers.

    Returns:
        The summary, or the reason as text if the core does not support such files.

    Raises:
        EvidenceError: A file cannot be read.
        StatsError: A quantile or the level is out of range.
    """
    asked = request_options(quantiles=quantiles, level=level, longest=longest, fences=fences)
    asked |= {
        "sets": [{"label": label, "files": [str(f) for f in files]} for label, files in sets],
        "value": value,
        "group": by,
        "block": block,
        "first": first,
    }
    found = _core.stats_parquet(asked)
    if "unsupported" in found:
        return str(found["unsupported"])
    files = [str(file) for _, given in sets for file in given]
    return description_of(found, level, files)


def description_of(found: Mapping[str, Any], level: float, files: Sequence[str] = ()) -> Description:
    """Return the core's answer as named fields; the core refers to `files` by their index."""
    shift = _number(found["shift"])
    groups = tuple(_group(entry, shift) for entry in found["groups"])
    names = [group.name for group in groups]
    qs = [q.q for q in groups[0].quantiles] if groups else []
    blocks = tuple(
        BlockValue(
            entry["group"],
            entry["block"],
            entry["n"],
            shift + _number(entry["offset"]),
            {q: _number(v) for q, v in zip(qs, entry["quantiles"], strict=True)},
        )
        for entry in found["blocks"]
    )
    longest = tuple(
        LongestValue(_number(value), names[group], files[file] if files else None, row)
        for value, group, file, row in found["longest"]
    )
    ranks = _ranks(found)
    return Description(groups, ranks, blocks, longest, found["integer"], level)


def _ranks(found: Mapping[str, Any]) -> Ranks | None:
    if found.get("pair"):
        pair = dict(found["pair"])
        tied = tuple(pair.pop("tied", ()))
        return Ranks(
            int(pair["tie_term"]),
            u_doubled=int(pair["u_doubled"]),
            above=int(pair["above"]),
            below=int(pair["below"]),
            tied=tied,
        )
    if found.get("rank_sums"):
        sums = tuple(int(v) for v in found["rank_sums"]["doubled"])
        return Ranks(int(found["rank_sums"]["tie_term"]), sums_doubled=sums)
    return None


def _number(value: float | str | None) -> float:
    """Return a number from the core as a float: None becomes NaN, and text such as "inf" is parsed."""
    return math.nan if value is None else float(value) if isinstance(value, str) else value


def _group(entry: Mapping[str, Any], shift: float) -> Group:
    n = entry["n"]
    quantiles = []
    for q, value, low, high in entry["quantiles"]:
        keeps = q in QUARTILES or is_supported(n, q)
        shown = (value, low, high) if keeps else (None, None, None)
        quantiles.append(Quantile(q, *(_number(v) for v in shown)))
    fences = entry.get("fences")
    if fences:
        far_low, low, high, far_high = map(_number, fences["ends"])
        ends, beyond = (far_low, low, high, far_high), tuple(fences["beyond"])
        z, six = fences["modified_z"], fences["six_sigma"]
        fences = Fences(ends, beyond, _number(fences["mad"]), z, six)
    return Group(
        name=entry["name"],
        n=n,
        missing=entry["missing"],
        shift=shift,
        offset=_number(entry["offset"]),
        m2=_number(entry["m2"]),
        min=_number(entry["min"]),
        max=_number(entry["max"]),
        quantiles=tuple(quantiles),
        histogram=tuple((_number(low), _number(high), count) for low, high, count in entry["histogram"]),
        fences=fences or None,
    )
