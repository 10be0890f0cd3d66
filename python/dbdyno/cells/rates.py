"""Changes between two collections: differences, rates and latencies from counters.

A counter means nothing by itself; only its difference between two collection times of the cell does. Each cell collects
once a minute at its own second, so rates are computed per cell, then added.

- The same collection time twice is *not refreshed*, which is different from zero.
- A counter that fell was reset (the cell service restarted): there is no difference; only the reset is reported.
- An object that is only in the second collection was created, or seen for the first time.
- A latency is the difference of the times over the difference of the requests.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from dbdyno.cells.catalogue import metric, request_counters
from dbdyno.cells.listing import Reading

OK, NOT_REFRESHED, RESET, NEW, GONE, NO_TIME = (
    "ok",
    "not refreshed",
    "reset",
    "new",
    "gone",
    "no time",
)


@dataclass(frozen=True)
class Change:
    """Change of one counter between two collections.

    `delta` and `per_s` are None unless `verdict` is ok; without collection times there is a difference but no rate
    (verdict 'no time').
    """

    cell: str
    name: str
    object: str
    unit: str
    before: float | None
    after: float | None
    seconds: float | None
    delta: float | None
    per_s: float | None
    verdict: str


@dataclass(frozen=True)
class Latency:
    """Time per request between two collections, of one object or of several."""

    name: str
    cell: str
    object: str
    unit: str
    requests: float
    value: float | None


def changes(before: Iterable[Reading], after: Iterable[Reading]) -> list[Change]:
    """Return the changes of all counters: first those in `after`, in order, then those only in `before`."""
    first = {_key(r): r for r in before if metric(r.name).kind == "counter"}
    second = {_key(r): r for r in after if metric(r.name).kind == "counter"}
    reset = {key[0] for key, r in second.items() if key in first and r.value < first[key].value}
    found = [_change(first.get(key), reading, reset) for key, reading in second.items()]
    return found + [_change(r, None, reset) for key, r in first.items() if key not in second]


def latencies(changes: Iterable[Change], *, over: str = "object") -> list[Latency]:
    """Return the time per request for every pair of time and request counters, per 'object', 'cell' or 'all'."""
    ok = {(c.cell, c.object, c.name): c for c in changes if c.delta is not None}
    sums: dict[tuple[str, str, str], list[tuple[Change, float]]] = {}
    for (cell, item, name), time in ok.items():
        counters = [ok.get((cell, item, one)) for one in request_counters(f"{name}_RQ")]
        if counters and None not in counters:
            requests = math.fsum(counter.delta or 0.0 for counter in counters if counter)
            where = {"object": (cell, item), "cell": (cell, ""), "all": ("", "")}[over]
            sums.setdefault((f"{name}_RQ", *where), []).append((time, requests))
    rows = []
    for (name, cell, item), pairs in sums.items():
        times = math.fsum(time.delta or 0.0 for time, _ in pairs)
        requests_sum = math.fsum(requests for _, requests in pairs)
        unit = f"{pairs[0][0].unit or metric(pairs[0][0].name).unit}/request"
        value = times / requests_sum if requests_sum else None
        rows.append(Latency(name, cell, item, unit, requests_sum, value))
    return rows


def totals(changes: Iterable[Change], by: str) -> Mapping[tuple[str, str, str], tuple[float, float]]:
    """Return the sums of valid changes and of their rates by (name, cell, object), grouped as `by` says."""
    sums: dict[tuple[str, str, str], list[Change]] = {}
    for change in changes:
        if change.delta is not None:
            cell = change.cell if by in ("cell", "both") else ""
            item = change.object if by in ("object", "both") else ""
            sums.setdefault((change.name, cell, item), []).append(change)
    return {
        key: (
            math.fsum(c.delta or 0.0 for c in own),
            math.fsum(c.per_s for c in own if c.per_s is not None),
        )
        for key, own in sums.items()
    }


def _key(reading: Reading) -> tuple[str, str, str]:
    return reading.cell, reading.name, reading.object


def _change(before: Reading | None, after: Reading | None, reset: set[str]) -> Change:
    some = after or before
    assert some is not None
    old, new = (r.value if r else None for r in (before, after))
    seconds = None
    if before and after and before.at_ns is not None and after.at_ns is not None:
        seconds = (after.at_ns - before.at_ns) / 1e9
    delta = None if old is None or new is None else new - old
    verdict = _verdict(old, new, seconds, some.cell in reset)
    if verdict not in (OK, NO_TIME):
        delta = None
    per_s = delta / seconds if delta is not None and seconds else None
    return Change(some.cell, some.name, some.object, some.unit, old, new, seconds, delta, per_s, verdict)


def _verdict(old: float | None, new: float | None, seconds: float | None, reset: bool) -> str:
    if new is None:
        return GONE
    if old is None:
        return NEW
    if reset:  # one counter that fell proves a reset of all counters of its cell
        return RESET
    if seconds is None:
        return NO_TIME
    return NOT_REFRESHED if seconds <= 0 else OK
