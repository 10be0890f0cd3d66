"""Which cell, disk or flash module differs from its siblings.

Siblings are cells (each metric put together over a cell's objects), and objects of one kind: all
cell disks on hard disk, all on flash, all grid disks of one group. In every round of a recording
each sibling's rate or latency is laid against the median of all siblings of that round; over the
rounds the mean log ratio is tested against nothing (Student's t, one round one observation, its
error widened for what the rounds have in common with the next). All tests of a page stand under one
false-discovery control (Benjamini and Hochberg). Said is what is both significant and larger than a
threshold.

With fewer than 4 rounds nothing can be tested: the siblings are shown, and no finding is claimed.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from dbdyno.cells.collect import Collection
from dbdyno.cells.diff import moved
from dbdyno.cells.rates import Change, latencies

SCHEMA = 1
ROUNDS_LEAST = 4
SIBLINGS_LEAST = 3
THRESHOLD = 0.25
LEVEL = 0.05

Series = dict[tuple[str, str, str], dict[int, float]]
"""(metric, kind of siblings, sibling) to its value by round."""


@dataclass(frozen=True)
class Finding:
    """One sibling of one metric: its mean ratio to the median of its siblings over the rounds, the
    95 % interval, p, and q after false-discovery control. `differs`: q and the ratio say so."""

    metric: str
    siblings: str
    name: str
    n_siblings: int
    rounds: int
    ratio: float
    low: float
    high: float
    p: float
    q: float
    differs: bool


def skew_page(rounds: Sequence[Collection], *, threshold: float = THRESHOLD) -> dict[str, Any]:
    """The page of a recording's rounds, oldest first."""
    series = _series(rounds)
    found = findings(series, threshold=threshold)
    return {
        "schema": SCHEMA,
        "kind": "cells",
        "page": "skew",
        "rounds": max(0, len(rounds) - 1),
        "threshold": threshold,
        "tested": len(found),
        "enough": len(rounds) - 1 >= ROUNDS_LEAST,
        "rows": [vars(one) for one in sorted(found, key=_by_size)],
    }


def _by_size(one: Finding) -> tuple[bool, float]:
    return (not one.differs, -abs(math.log(one.ratio)))


def findings(series: Series, *, threshold: float = THRESHOLD) -> list[Finding]:
    """Every sibling with enough rounds, tested; q over all of them."""
    from dbdyno.stats import benjamini_hochberg

    tested = []
    for metric, kind in dict.fromkeys((metric, kind) for metric, kind, _ in series):
        own = {name: by for (m, k, name), by in series.items() if (m, k) == (metric, kind)}
        if len(own) >= SIBLINGS_LEAST:
            tested += [(metric, kind, len(own), *one) for one in _ratios(own)]
    qs = benjamini_hochberg([p for *_, p in tested])
    border = math.log1p(threshold)
    return [
        Finding(metric, kind, name, n, rounds, math.exp(mean), math.exp(mean - half),
                math.exp(mean + half), p, q, q < LEVEL and abs(mean) > border)
        for (metric, kind, n, name, rounds, mean, half, p), q in zip(tested, qs, strict=True)
    ]  # fmt: skip


def _ratios(own: dict[str, dict[int, float]]) -> Iterable[tuple[str, int, float, float, float]]:
    """(name, rounds, mean log ratio, half of the 95 % interval, p) of each sibling."""
    import numpy as np
    from scipy.stats import t as student

    rounds = sorted({at for by in own.values() for at in by})
    medians = {}
    for at in rounds:
        values = [by[at] for by in own.values() if at in by]
        if len(values) >= SIBLINGS_LEAST:
            medians[at] = float(np.median(values))
    for name, by in own.items():
        logs = np.array([
            math.log(by[at] / medians[at])
            for at in rounds
            if at in medians and medians[at] > 0 and by.get(at, 0) > 0
        ])  # fmt: skip
        if logs.size < ROUNDS_LEAST:
            continue
        mean = float(logs.mean())
        error = float(logs.std(ddof=1)) / math.sqrt(logs.size) * _widening(logs)
        half = float(student.ppf(0.975, logs.size - 1)) * error
        p = (
            2 * float(student.sf(abs(mean) / error, logs.size - 1))
            if error > 0
            else float(mean == 0)
        )
        yield name, int(logs.size), mean, half, p


def _widening(logs: Any) -> float:
    """How much a mean's error grows for the correlation of neighbouring rounds: sqrt((1 + r) /
    (1 - r)) for lag-1 correlation r, as of a first-order autoregression; never below 1."""
    centred = logs - logs.mean()
    power = float(centred @ centred)
    r = float(centred[1:] @ centred[:-1]) / power if power > 0 else 0.0
    r = min(max(r, 0.0), 0.9)
    return math.sqrt((1 + r) / (1 - r))


def _series(rounds: Sequence[Collection]) -> Series:
    series: Series = {}
    for at, (before, after) in enumerate(itertools.pairwise(rounds)):
        found = moved(before, after)
        for (metric, kind, name), value in _values(found).items():
            series.setdefault((metric, kind, name), {})[at] = value
    return series


def _values(found: Sequence[Change]) -> dict[tuple[str, str, str], float]:
    """Rates and latencies of one round, per sibling."""
    values: dict[tuple[str, str, str], float] = {}
    for change in found:
        if change.per_s is not None:
            cell = (change.name, "cells", change.cell)
            values[cell] = values.get(cell, 0.0) + change.per_s
            kind = kind_of(change.name, change.object, change.cell)
            if kind:
                values[change.name, kind, f"{change.cell} {change.object}"] = change.per_s
    for over, kind in (("cell", "cells"), ("object", "")):
        for row in latencies(found, over=over):
            what = kind or kind_of(row.name, row.object, row.cell)
            if what and row.value is not None:
                name = row.cell if kind else f"{row.cell} {row.object}"
                values[row.name, what, name] = row.value
    return values


def kind_of(metric: str, item: str, cell: str) -> str:
    """What an object's siblings are called; '' where it has none. Grid disks of one group and cell
    disks of one medium are siblings: DATA_CD_03_cel01 is of 'grid disks DATA'."""
    if metric.startswith("CD_"):
        return "flash disks" if item.startswith("FD_") else "cell disks"
    if metric.startswith("GD_"):
        group = re.sub(r"_?[CF]D_\d+.*$", "", item)
        return f"grid disks {group}".rstrip()
    del cell
    return ""
