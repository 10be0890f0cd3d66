"""A column of numbers in groups: R's summary and more, from arrays or files.

The core gives counts, moments, quantiles with their order-statistic intervals, a histogram and the
longest; here they become named fields. The same fields come from Parquet files (`of_parquet`), from
arrays (`describe`) and from Spark, and every test of `groups` starts from them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dbdyno import _core
from dbdyno.base.errors import StatsError
from dbdyno.stats.arrays import column, labels
from dbdyno.stats.quantiles import supported

QUARTILES = (0.25, 0.5, 0.75)
TAIL = (0.9, 0.95, 0.99, 0.999, 0.9999)
QUANTILES = (*QUARTILES, *TAIL)
NOTE = "intervals assume independent values"


@dataclass(frozen=True, slots=True)
class Quantile:
    """A type 7 quantile with the order statistics around it; NaN where too few values lie
    beyond."""

    q: float
    value: float
    low: float
    high: float

    @property
    def name(self) -> str:
        """`p99.9` for 0.999."""
        return f"p{self.q * 100:.10g}"


@dataclass(frozen=True, slots=True)
class Fences:
    """Values far out: `ends` are Tukey's fences (Q1 - 3 IQR, Q1 - 1.5 IQR, Q3 + 1.5 IQR, Q3 + 3
    IQR), `beyond` how many lie outside each; `mad` the median absolute deviation; `modified_z` how
    many have 0.6745 |x - median| / mad above 3.5 (Iglewicz and Hoaglin 1993); `six_sigma` how many
    lie more than six standard deviations above the mean (Gregg)."""

    ends: tuple[float, float, float, float]
    beyond: tuple[int, int, int, int]
    mad: float
    modified_z: int
    six_sigma: int


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """One group. `mean` is `shift + offset`; differences of means are formed from the offsets,
    which keep more digits. `histogram` holds (low, high, count) with low <= value < high. With
    infinite values, or some so large that their squares are, mean and deviation are not defined."""

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
        """The mean; NaN without values."""
        return self.shift + self.offset if self.n else math.nan

    @property
    def variance(self) -> float:
        """The variance, n - 1 below; NaN below two values."""
        return self.m2 / (self.n - 1) if self.n > 1 else math.nan

    @property
    def sd(self) -> float:
        """The standard deviation, n - 1 below; NaN below two values."""
        return math.sqrt(self.variance) if self.n > 1 else math.nan

    @property
    def has_moments(self) -> bool:
        """Whether mean and deviation are numbers, as far as there are values enough."""
        return not self.n or math.isfinite(self.shift + self.offset + self.m2)

    def quantile(self, q: float) -> Quantile:
        """The quantile `q`, which must have been asked for."""
        return next(found for found in self.quantiles if found.q == q)


@dataclass(frozen=True, slots=True, eq=False)
class BlockValue:
    """A group within a block: count, mean, and quantiles by q."""

    group: int
    block: str
    n: int
    mean: float
    quantiles: dict[float, float]


@dataclass(frozen=True, slots=True)
class Longest:
    """One of the largest values, and where it was found (None where that is not known)."""

    value: float
    group: str
    file: str | None
    row: int | None


@dataclass(frozen=True, slots=True)
class Ranks:
    """Rank statistics. Of two groups: `u_doubled` is twice Mann-Whitney's U of the second against
    the first, `above` and `below` the largest distances of the distribution functions times n m,
    `tied` how often each distinct value occurs where the groups are small. Of more groups:
    `sums_doubled` are twice the rank sums. `tie_term` is the sum of t^3 - t over ties."""

    tie_term: int
    u_doubled: int = 0
    above: int = 0
    below: int = 0
    tied: tuple[int, ...] = ()
    sums_doubled: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Described:
    """A column in its groups. `integer` says that all values are whole; `level` is that of the
    intervals; `approximate` says how exact ranks and quantiles are where they are not."""

    groups: tuple[Group, ...]
    ranks: Ranks | None
    blocks: tuple[BlockValue, ...]
    longest: tuple[Longest, ...]
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
) -> Described:
    """Describes a column, whole or in the groups of `by`, and by blocks where `block` says to which
    each value belongs.

    Columns may be numpy arrays, Arrow arrays, columns of polars or pandas, lists. Missing values
    are left out and counted. Raises `StatsError` when the columns differ in length.
    """
    array = column(values)
    group_numbers, groups = labels(by) if by is not None else (None, [])
    block_numbers, blocks = labels(block) if block is not None else (None, [])
    asked = question(quantiles=quantiles, level=level, longest=longest, fences=fences)
    asked |= {"groups": groups, "blocks": blocks}
    found = _core.stats_arrays(array, group_numbers, block_numbers, asked)
    return described(found, level)


def question(*, quantiles: Sequence[float], level: float, longest: int, fences: bool) -> dict[str, object]:
    """The part of a request to the core that does not say what to read.

    Raises `StatsError` when a quantile or the level makes no sense.
    """
    if not all(0.0 <= q <= 1.0 for q in quantiles) or not 0.0 < level < 1.0:
        raise StatsError(
            "a quantile lies within 0..1, a level between 0 and 1",
            next_step="look at --quantiles and --level",
        )
    return {
        "quantiles": list(quantiles),
        "level": level,
        "longest": longest,
        "fences": fences,
    }


def of_parquet(
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
) -> Described | str:
    """Describes a column of Parquet files, read by the core.

    `sets` are (label, files); without `by` each set is a group. `first` names the group that
    stands first. Returns the reason instead where the core does not read such files. Raises
    `EvidenceError` when a file cannot be read.
    """
    asked = question(quantiles=quantiles, level=level, longest=longest, fences=fences)
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
    return described(found, level, files)


def described(found: dict[str, Any], level: float, files: Sequence[str] = ()) -> Described:
    """The core's answer in named fields; `files` are those that it numbers."""
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
        Longest(_number(value), names[group], files[file] if files else None, row)
        for value, group, file, row in found["longest"]
    )
    ranks = _ranks(found)
    return Described(groups, ranks, blocks, longest, found["integer"], level)


def _ranks(found: dict[str, Any]) -> Ranks | None:
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
    """A number of the core's: an infinite one crosses as a word."""
    return math.nan if value is None else float(value) if isinstance(value, str) else value


def _group(entry: dict[str, Any], shift: float) -> Group:
    n = entry["n"]
    quantiles = []
    for q, value, low, high in entry["quantiles"]:
        keeps = q in QUARTILES or supported(n, q)
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
