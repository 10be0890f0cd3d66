"""Values of one metric put together over objects and cells, by the metric's own rule.

Counters, rates per time and space are summed. Percentages, loads and temperatures are shown as
least, mean and most. A latency per request is weighted with the requests per second of the same
minute (`CD_IO_TM_R_SM_RQ` with `CD_IO_RQ_R_SM_SEC`); where these are not in the listing there is no
right number, and there is none: only the spread, with the reason.

CD_* cover all GD_* on the same disk: different metrics are never added to each other.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from dbdyno.cells.catalogue import metric, request_rates
from dbdyno.cells.listing import Reading

BY = ("cell", "object", "both")
Key = tuple[str, str]


@dataclass(frozen=True)
class Combined:
    """Readings of one metric put together. `cell` and `object` are '' where it was put together
    over them; `value` is None where no single number is right, `note` then says why."""

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
    """What each cell calls itself: the word that the names of all its disks end in. A cell whose
    disks end in different words, or in a number, has none."""
    ends: dict[str, set[str]] = {}
    for reading in readings:
        if reading.name.startswith(("CD_", "GD_")):
            ends.setdefault(reading.cell, set()).add(reading.object.rpartition("_")[2])
    found = {cell: next(iter(names)) for cell, names in ends.items() if len(names) == 1}
    return {cell: name for cell, name in found.items() if re.search("[A-Za-z]", name)}


def side_by_side(readings: Iterable[Reading], names: Mapping[str, str]) -> list[Reading]:
    """The readings with `<cell>` for the name that a cell gives itself in its objects' names, so
    that CD_00_exa1cel01 and CD_00_exa1cel02 stand in one row."""
    return [
        reading._replace(object=re.sub(rf"(^|_){re.escape(name)}$", r"\1<cell>", reading.object))
        if (name := names.get(reading.cell))
        else reading
        for reading in readings
    ]


def combine(readings: Iterable[Reading], by: str, rates: Iterable[Reading] | None = None) -> list[Combined]:
    """The readings put together: by 'cell' (over its objects), 'object' (over cells), 'both' (only
    what names the same object of the same cell) or 'all'. In order of first appearance.

    Latencies are weighted with `rates`, where they are not among the readings themselves. Only
    readings of one moment belong in here: several collections are `rates`' matter.
    """
    key = _KEYS[by]
    kept = list(readings)
    groups: dict[tuple[str, Key], list[Reading]] = {}
    for reading in kept:
        groups.setdefault((reading.name, key(reading)), []).append(reading)
    weighted = any(metric(name).rule == "weighted" for name, _ in groups)
    weights = _Weights(kept if rates is None else rates) if weighted else None
    return [_combined(name, at, own, weights) for (name, at), own in groups.items()]


PASSED_BY = ("FL_IO_W", "FL_RQ_W")


def weighs(name: str) -> bool:
    """Whether a metric is needed to weight the latencies of its moment."""
    return name.endswith("_SEC") or name in PASSED_BY


class _Weights:
    """Requests per second of every object, and of every cell."""

    def __init__(self, readings: Iterable[Reading]) -> None:
        self.of: dict[tuple[str, str, str], float] = {}
        self.of_cell: dict[tuple[str, str], float] = {}
        for reading in readings:
            if weighs(reading.name):
                self.of[reading.cell, reading.object, reading.name] = reading.value
                at = (reading.cell, reading.name)
                self.of_cell[at] = self.of_cell.get(at, 0.0) + reading.value

    def requests(self, reading: Reading, rates: tuple[str, ...], same_object: bool) -> float | None:
        """The requests per second behind a latency; None where one of the rates is not known."""
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
        """Whether the flash log of a cell served every redo write since its service began."""
        served, asked = (self.of_cell.get((cell, name)) for name in PASSED_BY)
        return served is not None and served == asked


def _combined(name: str, at: Key, own: list[Reading], weights: _Weights | None) -> Combined:
    units = {reading.unit for reading in own}
    values = [reading.value for reading in own]
    unit = own[0].unit if len(units) == 1 else ""
    rule = metric(name).rule
    low, high, mean = min(values), max(values), math.fsum(values) / len(values)
    value: float | None = None
    note = ""
    if len(units) > 1:
        note = f"the units differ: {', '.join(sorted(units))}"
    elif len(own) == 1:
        value = values[0]
    elif rule == "sum":
        value = math.fsum(values)
    elif rule == "weighted" and weights:
        value, note = _weighted(name, own, weights)
    return Combined(name, *at, unit, rule, len(own), value, low, mean, high, note)


def _weighted(name: str, own: list[Reading], weights: _Weights) -> tuple[float | None, str]:
    """The mean over requests; None with the reason where the requests are not known."""
    rates, same_object = request_rates(name)
    if not rates:
        return None, "no rate of its requests is known; `cells watch` has it from the counters"
    if name == "FL_RQ_TM_W_RQ" and not all(weights.none_passed_by(r.cell) for r in own):
        return None, (
            "redo writes passed by the flash log, and those have no rate; `cells watch` has it from the counters"
        )
    shares = [weights.requests(reading, rates, same_object) for reading in own]
    known = [share for share in shares if share is not None]
    if len(known) < len(own):
        of = "of the same objects" if same_object else "of the cell's databases"
        return None, f"needs {' and '.join(rates)} {of} in the listing"
    total = math.fsum(known)
    if total <= 0:
        return (0.0, "") if all(r.value == 0 for r in own) else (None, "no request in the minute")
    return math.fsum(r.value * w for r, w in zip(own, known, strict=True)) / total, ""
