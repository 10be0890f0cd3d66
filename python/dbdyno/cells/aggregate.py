"""Values of one metric put together over objects and cells, by the metric's own rule.

Counters, rates per time and space are summed. Percentages, loads and temperatures are shown as
least, mean and most. A latency per request is weighted with the requests per second of the same
minute (`CD_IO_TM_R_SM_RQ` with `CD_IO_RQ_R_SM_SEC`); where these are not in the listing there is no
right number, and there is none: only the spread, with the reason.

CD_* cover all GD_* on the same disk: different metrics are never added to each other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from dbdyno.cells.catalogue import latency_parts, metric
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


def combine(readings: Iterable[Reading], by: str) -> list[Combined]:
    """The readings put together: by 'cell' (over its objects), 'object' (over cells), 'both' (only
    what names the same object of the same cell) or 'all'. In order of first appearance.

    Only readings of one moment belong in here: several collections are `rates`' matter.
    """
    key = _KEYS[by]
    kept = list(readings)
    groups: dict[tuple[str, Key], list[Reading]] = {}
    weighted = False
    for reading in kept:
        groups.setdefault((reading.name, key(reading)), []).append(reading)
        weighted = weighted or latency_parts(reading.name) is not None
    weights = _weights(kept) if weighted else {}
    return [_combined(name, at, own, weights) for (name, at), own in groups.items()]


def _weights(readings: list[Reading]) -> dict[tuple[str, str, str], float]:
    """Requests per second by (cell, object, metric)."""
    return {(r.cell, r.object, r.name): r.value for r in readings if r.name.endswith("_SEC")}


def _combined(
    name: str, at: Key, own: list[Reading], weights: dict[tuple[str, str, str], float]
) -> Combined:
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
    elif rule == "weighted":
        value, note = _weighted(name, own, weights)
    return Combined(name, *at, unit, rule, len(own), value, low, mean, high, note)


def _weighted(
    name: str, own: list[Reading], weights: dict[tuple[str, str, str], float]
) -> tuple[float | None, str]:
    """The mean over requests; None with the reason where the requests are not known."""
    parts = latency_parts(name)
    if parts is None:
        return None, "no counter of its requests is known"
    requests = f"{parts[1]}_SEC"
    shares = [weights.get((r.cell, r.object, requests)) for r in own]
    known = [share for share in shares if share is not None]
    if len(known) < len(own):
        return None, f"needs {requests} of the same objects in the listing"
    total = math.fsum(known)
    if total <= 0:
        return (0.0, "") if all(r.value == 0 for r in own) else (None, "no request in the minute")
    return math.fsum(r.value * w for r, w in zip(own, known, strict=True)) / total, ""
