"""Comparison of two recordings of cells by metric: what differs, by how much, and how certain that is.

A row is a rate (a counter divided by seconds), a latency (a time divided by its requests) or a share (a part divided by
its whole), in the first and the second recording; `dbdyno.stats.ratios` has the estimate, its interval and its test.
The rounds of two recordings are not paired; they may differ in number and length.

The false discovery rate (Benjamini and Hochberg, 5 %) is controlled over all rows of all cells together, including the
shares, and separately over the rows of single cells and objects. A time counter that has a latency is judged as that
latency. A round without data from a cell counts neither for that cell nor for the total over all cells.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dbdyno.cells.catalogue import metric, request_counters
from dbdyno.cells.intervals import Intervals, Key

if TYPE_CHECKING:
    from dbdyno.stats.ratios import Ratio

LEVEL = 0.05
THRESHOLD = 0.02
_SCALE = {"us": (1e3, "ns"), "ms": (1e6, "ns"), "MB": (2.0**20, "bytes"), "KB": (1024.0, "bytes")}
Floats = list[float]
Both = tuple[Intervals, Intervals]


@dataclass(frozen=True)
class Share:
    """A part and its whole, each a sum of counters over all cells; both fields are patterns for counter names."""

    name: str
    label: str
    part: str
    whole: str
    higher_is_better: bool | None = None


SHARES = (
    Share("flash_first", "flash first, of redo writes", "FL_FLASH_FIRST", "FL_FLASH_FIRST|FL_DISK_FIRST"),
    Share("prevented", "outliers prevented, of redo writes", "FL_PREVENTED_OUTLIERS", "FL_FLASH_FIRST|FL_DISK_FIRST"),
    Share(
        "actual", "outliers not prevented, of redo writes", "FL_ACTUAL_OUTLIERS", "FL_FLASH_FIRST|FL_DISK_FIRST", False
    ),
    Share("passed_by", "bypassed the flash log, of requests", "FL_IO_W_SKIP_(?!OUTLIERS).*", "FL_RQ_W"),
    Share("cache_hits", "read from flash cache, of reads", "FC_IO_RQ_R", "FC_IO_RQ_R|FC_IO_RQ_R_MISS", True),
)
SKIP = "FL_IO_W_SKIP_"


@dataclass
class Row:
    """Comparison of one metric between two recordings.

    `a` and `b` are the values of the two recordings, in `unit` after multiplication by `scale`. `measure` is rate,
    latency or share. An empty `cell` or `object` means all cells or all objects.
    """

    name: str
    label: str
    cell: str
    object: str
    measure: str
    unit: str
    higher_is_better: bool | None
    scale: float
    a: Ratio
    b: Ratio
    ratio: float
    low: float
    high: float
    larger: float
    p: float
    q: float = math.nan
    decision: str = "cannot tell"


def compare(first: Intervals, second: Intervals, *, threshold: float = THRESHOLD) -> list[Row]:
    """Return comparisons of what both recordings have: first over all cells, then by cell and object, by name."""
    shared = [cell for cell in first.cells if cell in second.cells]
    both = (first, second)
    whole = [
        *_shares(both),
        *(row for name in _names(both) for row in _row_of_counter(both, name, "", None)),
    ]
    parts = [
        row
        for name in _names(both)
        for cell in shared
        for item in _objects(both, name, cell)
        for row in _row_of_counter(both, name, cell, item)
    ]
    judge(whole, threshold)
    judge(parts, threshold)
    return [*whole, *parts]


def judge(rows: Sequence[Row], threshold: float) -> None:
    """Set q and the decision of rows whose p values are corrected together."""
    from dbdyno.stats import benjamini_hochberg

    for row, q in zip(rows, benjamini_hochberg([row.p for row in rows]), strict=True):
        row.q = q
        row.decision = _decision(row, threshold)


def _decision(row: Row, threshold: float) -> str:
    """Return better or worse if the metric has a good direction, else more or less; or the reason for no decision."""
    if row.a.above == row.b.above == 0:
        return "none in either"
    if math.isnan(row.a.value) or math.isnan(row.b.value):
        return "not measured"
    if row.low >= 1 / (1 + threshold) and row.high <= 1 + threshold:
        return "same"
    if math.isnan(row.q) or row.q > LEVEL:
        return "cannot tell"
    grew = row.b.value > row.a.value
    if row.higher_is_better is None:
        return "more" if grew else "less"
    return "better" if grew == row.higher_is_better else "worse"


def _names(both: Both) -> list[str]:
    return sorted(both[0].counters.keys() & both[1].counters.keys())


def _objects(both: Both, name: str, cell: str) -> list[str | None]:
    """Return the objects of a cell that both recordings have; if several changed, None (all objects) comes first."""
    found = [set(side.counters[name].get(cell, ())) for side in both]
    items: list[str | None] = [*sorted(found[0] & found[1])]
    moved = [item for item in items if any(value > 0 for side in both for value in side.deltas[name, cell, item or ""])]
    return [None, *items] if len(moved) > 1 else items


def _row_of_counter(both: Both, name: str, cell: str, item: str | None) -> Iterator[Row]:
    """Yield the row of a counter for a cell and object: a latency if its requests are counted, otherwise a rate."""
    requests = request_counters(f"{name}_RQ")
    latency = bool(requests) and all(one in side.counters for one in requests for side in both)
    unit = both[0].units.get(name) or metric(name).unit
    scale, shown = _SCALE.get(unit, (1.0, "1/s"))
    sums = [_sums(side, _keys(side, name, cell, item), requests if latency else ()) for side in both]
    higher = False if latency or metric(name).counts_errors else None
    label = f"{name}_RQ" if latency else name
    yield _row(
        sums,
        not latency and shown == "1/s",
        name=label,
        label=label,
        cell=cell,
        object=item or "",
        measure="latency" if latency else "rate",
        unit=shown,
        higher_is_better=higher,
        scale=scale,
    )


def _shares(both: Both) -> Iterator[Row]:
    """Yield the shares for which both recordings have counters; each reason for a bypass is one share."""
    reasons = sorted({n for side in both for n in side.counters if n.startswith(SKIP)})
    more = [
        Share(name.lower(), f"bypassed the flash log, {name.removeprefix(SKIP)}", name, "FL_RQ_W") for name in reasons
    ]
    for share in (*SHARES, *more):
        parts, wholes = (re.compile(p).fullmatch for p in (share.part, share.whole))
        sums = [(_total(side, parts), _total(side, wholes)) for side in both]
        if any(value is None for pair in sums for value in pair):
            continue
        yield _row(
            [(a or [], b or []) for a, b in sums],
            True,
            name=share.name,
            label=share.label,
            cell="",
            object="",
            measure="share",
            unit="ratio",
            higher_is_better=share.higher_is_better,
            scale=1.0,
        )


def _row(sums: Sequence[tuple[Floats, Floats]], events: bool, **about: Any) -> Row:
    from dbdyno.stats.ratios import compare_ratios, ratio_of

    share = about["measure"] == "share"
    a, b = (ratio_of(above, below, events=events, share=share) for above, below in sums)
    found = compare_ratios(a, b)
    return Row(a=a, b=b, ratio=found.ratio, low=found.low, high=found.high, larger=found.larger, p=found.p, **about)


def _keys(side: Intervals, name: str, cell: str, item: str | None) -> list[Key]:
    found = side.counters[name]
    cells = {cell: found.get(cell, [])} if cell else found
    if item is not None:
        return [(name, own, item) for own in cells]
    return [(name, own, one) for own, items in cells.items() for one in items]


def _total(side: Intervals, matches: Callable[[str], object]) -> Floats | None:
    """Return the sum over all counters with matching names for each interval; None if no counter has such a name."""
    keys = [key for name in side.counters if matches(name) for key in _keys(side, name, "", None)]
    return _sum_of(side, keys, side.deltas) if keys else None


def _sums(side: Intervals, keys: Sequence[Key], requests: Sequence[str]) -> tuple[Floats, Floats]:
    """Return numerator and denominator for each interval.

    For a latency, these are the time and the number of requests of the same objects. For a rate, the denominator is
    the mean duration over the cells [s], and the numerator is the sum of the cells' rates times that duration.
    """
    if requests:
        of = {key: [(name, key[1], key[2]) for name in requests] for key in keys}
        both = [key for key in keys if all(one in side.deltas for one in of[key])]
        return (_sum_of(side, both, side.deltas), _sum_of(side, [one for key in both for one in of[key]], side.deltas))
    above, below = [], []
    for at in range(side.count):
        rates: dict[str, float] = {}
        spans: dict[str, float] = {}
        for key in keys:
            delta, seconds = side.deltas[key][at], side.seconds[key][at]
            if not math.isnan(delta):
                rates[key[1]] = rates.get(key[1], 0.0) + delta / seconds
                spans[key[1]] = seconds
        whole = rates.keys() == {key[1] for key in keys}
        mean = math.fsum(spans.values()) / len(spans) if whole and spans else math.nan
        above.append(math.fsum(rates.values()) * mean)
        below.append(mean)
    return above, below


def _sum_of(side: Intervals, keys: Iterable[Key], values: dict[Key, Floats]) -> Floats:
    """Return the sum over the keys for each interval; NaN if a cell has none of its values in the interval."""
    found = list(keys)
    cells = {key[1] for key in found}
    sums = []
    for at in range(side.count):
        known = [(key[1], v) for key in found if not math.isnan(v := values[key][at])]
        whole = {cell for cell, _ in known} == cells
        sums.append(math.fsum(v for _, v in known) if whole and cells else math.nan)
    return sums
