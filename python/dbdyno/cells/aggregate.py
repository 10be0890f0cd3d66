"""Aggregation of one metric's values over objects and cells, by the metric's own rule.

Counters, rates per time and space are summed. Percentages, loads and temperatures are shown as minimum, mean and
maximum. A latency per request is weighted by the requests per second of the same minute (`CD_IO_TM_R_SM_RQ` by
`CD_IO_RQ_R_SM_SEC`); if these are not in the listing, no single number is correct: only the range is returned, with the
reason.

CD_* metrics include all GD_* on the same disk: different metrics are never added to each other.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from dbdyno.cells.catalogue import metric, request_rates
from dbdyno.cells.listing import Reading

Key = tuple[str, str]


@dataclass(frozen=True)
class Aggregate:
    """Aggregate of readings of one metric.

    `cell` or `object` is empty if the aggregate covers all of them. `value` is None if no single number is correct;
    `note` then says why.
    """

    name: str
    cell: str
    object: str
    unit: str
    rule: str
    n: int
    value: float | None
    low: float
    mean: float
    high: float
    note: str = ""


_KEYS: dict[str, Callable[[Reading], Key]] = {
    "cell": lambda reading: (reading.cell, ""),
    "object": lambda reading: ("", reading.object),
    "both": lambda reading: (reading.cell, reading.object),
    "all": lambda _: ("", ""),
}


def own_names(readings: Iterable[Reading]) -> dict[str, str]:
    """Return the name of each cell as it appears at the end of all its disks' names.

    A cell is left out if the names of its disks end in different words, or in a number.
    """
    ends: dict[str, set[str]] = {}
    for reading in readings:
        if reading.name.startswith(("CD_", "GD_")):
            ends.setdefault(reading.cell, set()).add(reading.object.rpartition("_")[2])
    found = {cell: next(iter(names)) for cell, names in ends.items() if len(names) == 1}
    return {cell: name for cell, name in found.items() if re.search("[A-Za-z]", name)}


def with_cell_placeholder(readings: Iterable[Reading], names: Mapping[str, str]) -> list[Reading]:
    """Return the readings with `<cell>` in place of the cell's name in object names.

    CD_00_exa1cel01 and CD_00_exa1cel02 then belong to one row.
    """
    return [
        reading._replace(object=re.sub(rf"(^|_){re.escape(name)}$", r"\1<cell>", reading.object))
        if (name := names.get(reading.cell))
        else reading
        for reading in readings
    ]


def combine(readings: Iterable[Reading], by: str, rates: Iterable[Reading] | None = None) -> list[Aggregate]:
    """Aggregate readings of one moment; the aggregates are in order of first appearance.

    Args:
        readings: The readings.
        by: 'cell' (over a cell's objects), 'object' (over cells), 'both' (only readings of the same object of the same
            cell) or 'all'.
        rates: Requests per second that weight latencies, if they are not among the readings.
    """
    key = _KEYS[by]
    kept = list(readings)
    groups: dict[tuple[str, Key], list[Reading]] = {}
    for reading in kept:
        groups.setdefault((reading.name, key(reading)), []).append(reading)
    weighted = any(metric(name).rule == "weighted" for name, _ in groups)
    weights = _Weights(kept if rates is None else rates) if weighted else None
    return [_combine(name, at, own, weights) for (name, at), own in groups.items()]


PASSED_BY = ("FL_IO_W", "FL_RQ_W")


def is_weight(name: str) -> bool:
    """Return True if the metric is needed to weight latencies."""
    return name.endswith("_SEC") or name in PASSED_BY


class _Weights:
    """Requests per second of each object and each cell."""

    def __init__(self, readings: Iterable[Reading]) -> None:
        self.of: dict[tuple[str, str, str], float] = {}
        self.of_cell: dict[tuple[str, str], float] = {}
        for reading in readings:
            if is_weight(reading.name):
                self.of[reading.cell, reading.object, reading.name] = reading.value
                at = (reading.cell, reading.name)
                self.of_cell[at] = self.of_cell.get(at, 0.0) + reading.value

    def requests(self, reading: Reading, rates: tuple[str, ...], same_object: bool) -> float | None:
        """Return the requests per second that weight a latency, or None if one of the rates is unknown."""
        total = 0.0
        for rate in rates:
            if same_object:
                value = self.of.get((reading.cell, reading.object, rate))
            else:
                value = self.of_cell.get((reading.cell, rate))
            if value is None:
                return None
            total += value
        return total

    def none_passed_by(self, cell: str) -> bool:
        """Return True if the cell's flash log has served every redo write since its service started."""
        served, asked = (self.of_cell.get((cell, name)) for name in PASSED_BY)
        return served is not None and served == asked


def _combine(name: str, at: Key, readings: list[Reading], weights: _Weights | None) -> Aggregate:
    units = {reading.unit for reading in readings}
    values = [reading.value for reading in readings]
    unit = readings[0].unit if len(units) == 1 else ""
    rule = metric(name).rule
    low, high, mean = min(values), max(values), math.fsum(values) / len(values)
    value: float | None = None
    note = ""
    if len(units) > 1:
        note = f"the units differ: {', '.join(sorted(units))}"
    elif len(readings) == 1:
        value = values[0]
    elif rule == "sum":
        value = math.fsum(values)
    elif rule == "weighted" and weights:
        value, note = _weighted_mean(name, readings, weights)
    return Aggregate(name, *at, unit, rule, len(readings), value, low, mean, high, note)


def _weighted_mean(name: str, readings: list[Reading], weights: _Weights) -> tuple[float | None, str]:
    """Return the mean weighted by requests, or None with the reason if the numbers of requests are unknown."""
    rates, same_object = request_rates(name)
    if not rates:
        return None, "the rate of its requests is not known; `cells watch` computes it from the counters"
    if name == "FL_RQ_TM_W_RQ" and not all(weights.none_passed_by(r.cell) for r in readings):
        return None, (
            "some redo writes bypassed the flash log and have no rate; `cells watch` computes it from the counters"
        )
    shares = [weights.requests(reading, rates, same_object) for reading in readings]
    known = [share for share in shares if share is not None]
    if len(known) < len(readings):
        of = "of the same objects" if same_object else "of the cell's databases"
        return None, f"needs {' and '.join(rates)} {of} in the listing"
    total = math.fsum(known)
    if total <= 0:
        return (0.0, "") if all(r.value == 0 for r in readings) else (None, "no request in the minute")
    return math.fsum(r.value * w for r, w in zip(readings, known, strict=True)) / total, ""
