"""Explanation of why disks of storage cells are busy, and why they are busier than in another recording.

The explained amount is the I/O time of all cell disks per second, which by Little's law is the number of requests in
flight. It is split by kind of disk and kind of request; the extra time of a disk that differs from its siblings is a
separate part. Between two recordings, the change in each part is split into the effect of more requests (at the mean
time per request) and of longer requests (at the mean number of requests), so that both add up. Intervals are jackknife
intervals over rounds, widened for autocorrelation. Redo writes wait for the flash log, which has its own section.

    >>> part_words("R_SM", "hard disks")
    'small reads from hard disks'
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dbdyno.base.explanation import CausalExplanation, Cause, largest_causes, unexplained
from dbdyno.base.json_types import TableRow
from dbdyno.cells.catalogue import request_counters
from dbdyno.cells.intervals import Intervals
from dbdyno.cells.kinds import kind_of
from dbdyno.cells.series import MeasuredRecording

Array = NDArray[np.float64]
Key = tuple[str, str, str]
"""Key of a counter: metric, cell and object."""
ROUNDS_LEAST = 4
LEVEL = 0.95
MICROSECOND_NS = 1e3
MOST_OF = 0.5
"""Smallest share of a slowdown for which a single disk is named as the cause."""
LEAST_OF_HITS = 0.02
CLASSES = {"R_SM": "small reads from", "R_LG": "large reads from", "W_SM": "small writes to", "W_LG": "large writes to"}
_TIME = "CD_IO_TM_{}"
HITS, MISSES = "FC_IO_RQ_R", "FC_IO_RQ_R_MISS"
PER = {"per": "a second"}
Row = Mapping[str, Any]


def part_words(part: str, kind: str) -> str:
    """Return a phrase for a kind of request on a kind of disk, such as `small reads from hard disks`."""
    return f"{CLASSES[part]} {kind}"


@dataclass(frozen=True)
class Work:
    """I/O time [ns] and number of requests of every disk in each round; NaN if unknown.

    Each row of an array is one kind of request on one disk; `keys` identifies it (kind of request, kind of disk, cell,
    disk).
    """

    keys: tuple[tuple[str, str, str, str], ...]
    time_ns: Array
    requests: Array
    seconds: Array
    hits: Array
    misses: Array

    @property
    def rounds(self) -> int:
        """Return the number of rounds of the recording."""
        return int(self.time_ns.shape[1]) if self.keys else 0

    @property
    def parts(self) -> list[tuple[str, str]]:
        """Return the pairs (kind of request, kind of disk) that occur."""
        return sorted({key[:2] for key in self.keys})

    def rows(self, part: tuple[str, str]) -> list[int]:
        """Return the indexes of the rows that belong to a part."""
        return [at for at, key in enumerate(self.keys) if key[:2] == part]

    def rates_per_s(self, keep: NDArray[np.bool_]) -> tuple[Array, Array]:
        """Return the I/O time [ns] and the number of requests per second for each row, over the rounds in `keep`."""
        seconds = np.nansum(np.where(np.isnan(self.time_ns), np.nan, self.seconds)[:, keep], axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            found = [np.nansum(one[:, keep], axis=1) / seconds for one in (self.time_ns, self.requests)]
        time, requests = (np.nan_to_num(one, nan=0.0, posinf=0.0) for one in found)
        return time, requests

    def hit_share(self) -> float | None:
        """Return the share of reads that the flash cache answered; None if there were no reads."""
        hits, misses = float(np.nansum(self.hits)), float(np.nansum(self.misses))
        return hits / (hits + misses) if hits + misses > 0 else None


def work_of(deltas: Mapping[Key, Sequence[float]], seconds: Mapping[Key, Sequence[float]]) -> Work:
    """Return the I/O time and the requests of disks in each round, computed from counter differences."""
    keys, times, counts, spans = [], [], [], []
    for (name, cell, item), values in sorted(deltas.items()):
        part = next((one for one in CLASSES if name == _TIME.format(one)), None)
        needed = [(one, cell, item) for one in request_counters(f"{name}_RQ")] if part else []
        if part is None or not needed or any(one not in deltas for one in needed):
            continue
        keys.append((part, kind_of(name, item, cell), cell, item))
        times.append(np.array(values, dtype=float) * MICROSECOND_NS)
        counts.append(np.sum([np.array(deltas[one], dtype=float) for one in needed], axis=0))
        spans.append(np.array(seconds[name, cell, item], dtype=float))
    cache = [
        np.nansum(
            [np.array(own, dtype=float) for (name, *_), own in deltas.items() if name == one] or [np.zeros(1)], axis=0
        )
        for one in (HITS, MISSES)
    ]
    none = np.zeros((0, 0))
    made = [np.array(one) if one else none for one in (times, counts, spans)]
    return Work(tuple(keys), made[0], made[1], made[2], *cache)


def work_of_recording(recording: MeasuredRecording) -> Work:
    """Return the I/O time and the requests of disks in a recording, computed from the rows that its report uses."""
    names = [_TIME.format(one) for one in CLASSES]
    names += [one for name in names for one in request_counters(f"{name}_RQ")] + [HITS, MISSES]
    rows = recording.connection.execute(
        "select metric, cell, object, block, value - old, (at_ns - from_ns) / 1e9 from steps"
        " where kind = 'counter' and metric in (select unnest($1::varchar[]))",
        [names],
    ).fetchall()
    place = {block: at for at, block in enumerate(sorted({row[3] for row in rows}))}
    deltas: dict[Key, list[float]] = {}
    seconds: dict[Key, list[float]] = {}
    for name, cell, item, block, delta, span in rows:
        for kept, value in ((deltas, delta), (seconds, span)):
            kept.setdefault((name, cell, item), [math.nan] * len(place))[place[block]] = float(value)
    return work_of(deltas, seconds)


def explain_busy(work: Work, skew: Sequence[Row]) -> CausalExplanation:
    """Explain what the disks spend their time on."""
    whole = CausalExplanation("I/O time of the disks in a second", "ns", None, level=LEVEL, blocks=work.rounds)
    if lack := _lack(work):
        return replace(whole, withheld=lack[0], next=lack[1])
    slow = _slow(work, skew)
    every = np.ones(work.rounds, dtype=bool)

    def figures(keep: NDArray[np.bool_]) -> Array:
        time, requests = work.rates_per_s(keep)
        over = [_excess(work, at, time, requests) for at in slow]
        parts = [
            time[work.rows(part)].sum() - sum(e for e, at in zip(over, slow, strict=True) if work.keys[at][:2] == part)
            for part in work.parts
        ]
        return np.array([time.sum(), *parts, *over])

    amounts, lows, highs = _interval(work, figures)
    time, requests = work.rates_per_s(every)
    total = float(amounts[0])
    ends = list(zip(amounts, lows, highs, strict=True))[1:]
    causes = [
        *(_cause_of_time(work, part, time, requests, end, total) for part, end in zip(work.parts, ends, strict=False)),
        *(
            _slow_disk(work, at, time, requests, end, total)
            for at, end in zip(slow, ends[len(work.parts) :], strict=True)
        ),
    ]
    named = largest_causes(causes)
    left, share = unexplained(total, named)
    return replace(
        whole, amount=total, low=float(lows[0]), high=float(highs[0]), causes=named, rest=left, rest_share=share
    )


def explain_busier(first: Work, second: Work, names: tuple[str, str], withheld: str = "") -> CausalExplanation:
    """Explain why the disks of the second recording are busier or less busy than in the first."""
    whole = CausalExplanation(f"{names[1]} against {names[0]}, I/O time of the disks", "ns", None, level=LEVEL)
    lack = (withheld, "") if withheld else _lack(first) or _lack(second)
    if lack:
        return replace(whole, withheld=lack[0], next=lack[1])
    parts = sorted({*first.parts, *second.parts})

    def figures(work: Work, keep: NDArray[np.bool_]) -> Array:
        time, requests = work.rates_per_s(keep)
        groups = [work.rows(part) for part in parts]
        return np.array([[time[rows].sum(), requests[rows].sum()] for rows in groups]).ravel()

    sides = [_interval(work, lambda keep, work=work: figures(work, keep)) for work in (first, second)]
    ends = [side[0].reshape(len(parts), 2) for side in sides]
    before, after = (float(end[:, 0].sum()) for end in ends)
    errors = [(side[2] - side[1])[::2] / 2 for side in sides]
    amount, half = after - before, float(np.sqrt((errors[0] ** 2 + errors[1] ** 2).sum()))
    whole = replace(
        whole,
        amount=amount,
        before=before,
        after=after,
        low=amount - half,
        high=amount + half,
        blocks=min(first.rounds, second.rounds),
    )
    if abs(amount) <= half:
        small = "the difference of the I/O times is no larger than its own uncertainty"
        return replace(whole, withheld=small, next="make longer recordings")
    causes = [
        cause
        for at, part in enumerate(parts)
        for cause in _differences((first, second), part, (ends[0][at], ends[1][at]), amount)
    ]
    named = largest_causes(causes)
    left, share = unexplained(amount, named)
    return replace(whole, causes=named, rest=left, rest_share=share)


def explain_busier_intervals(
    first: Intervals, second: Intervals, names: tuple[str, str], withheld: str = ""
) -> CausalExplanation:
    """Explain why the disks of the second of two compared recordings are busier, as `explain_busier` does."""
    return explain_busier(work_of(first.deltas, first.seconds), work_of(second.deltas, second.seconds), names, withheld)


def _lack(work: Work) -> tuple[str, str] | None:
    if not work.keys:
        return "the recording has no times of cell disks", "dbdyno cells record without a mask keeps CD_IO_TM_*"
    if work.rounds < ROUNDS_LEAST:
        return f"{work.rounds} intervals are too few", "dbdyno cells record --for 15min"
    return None


def _interval(work: Work, figures: Any) -> tuple[Array, Array, Array]:
    """Return figures computed over all rounds, with both ends of their intervals."""
    from dbdyno.stats.blocks import independence
    from dbdyno.stats.jackknife import half_width, jackknife

    amounts, errors = jackknife(figures, work.rounds)
    by_round = np.nansum(work.time_ns, axis=0)
    inflation = max(1.0, independence(by_round - by_round.mean(), randomised=False).inflation)
    half = half_width(errors * math.sqrt(inflation), work.rounds, LEVEL)
    return amounts, amounts - half, amounts + half


def slow_disks(work: Work, skew: Sequence[Row]) -> Iterator[TableRow]:
    """Yield disks that take longer than their siblings, with time per request [ns] and excess time per second [ns]."""
    time, requests = work.rates_per_s(np.ones(work.rounds, dtype=bool))
    tested = {(row["metric"], row["name"]): row for row in skew if row["siblings"] != "cells"}
    for at in _slow(work, skew):
        part, kind, cell, item = work.keys[at]
        row = tested[f"{_TIME.format(part)}_RQ", f"{cell} {item}"]
        yield {
            "cell": cell,
            "disk": item,
            "part": part,
            "kind": kind,
            **{name: float(row[name]) for name in ("ratio", "low", "high")},
            "each_ns": float(time[at] / requests[at]) if requests[at] else 0.0,
            "usual_ns": _usual(work, at, time, requests),
            "excess_ns": _excess(work, at, time, requests),
        }


def _usual(work: Work, at: int, time: Array, requests: Array) -> float:
    """Return the time per request [ns] on the median disk of the same kind."""
    rows = [row for row in work.rows(work.keys[at][:2]) if requests[row] > 0]
    return float(np.median(time[rows] / requests[rows])) if rows else 0.0


def _slow(work: Work, skew: Sequence[Row]) -> list[int]:
    """Return the rows of disks that, according to the report's test, take longer than their siblings."""
    told = {
        (row["metric"], row["name"])
        for row in skew
        if row["differs"] and row["ratio"] > 1 and row["siblings"] != "cells"
    }
    return [
        at
        for at, (part, _, cell, item) in enumerate(work.keys)
        if (f"{_TIME.format(part)}_RQ", f"{cell} {item}") in told
    ]


def _excess(work: Work, at: int, time: Array, requests: Array) -> float:
    """Return by how much a disk's I/O time exceeds that of the median disk of its kind [ns per second], at least 0."""
    return max(float(time[at] - requests[at] * _usual(work, at, time, requests)), 0.0)


End = tuple[float, float, float]


def _cause_of_time(work: Work, part: tuple[str, str], time: Array, requests: Array, end: End, total: float) -> Cause:
    rows = work.rows(part)
    rate = float(requests[rows].sum())
    each = float(time[rows].sum()) / rate if rate else 0.0
    cells = len({work.keys[row][2] for row in rows})
    name = _TIME.format(part[0])
    evidence = [f"{name} over its requests: {len(rows)} disks of {cells} cell{'s' * (cells > 1)}"]
    share = work.hit_share() if part == ("R_SM", "hard disks") else None
    code = "cache" if share is not None else {"R_SM": "read", "R_LG": "scan"}.get(part[0], "write")
    words = f"{part_words(*part)}, {_count(rate)} a second at {_time(each)} each"
    if share is not None:
        words += f"; the flash cache answered {100 * share:.3g} % of reads"
        evidence.append(f"{HITS}, {MISSES}")
    return _cause(code, part_words(*part), words, end, total, evidence)


def _slow_disk(work: Work, at: int, time: Array, requests: Array, end: End, total: float) -> Cause:
    part, kind, cell, item = work.keys[at]
    rows, usual = work.rows((part, kind)), _usual(work, at, time, requests)
    own = float(time[at] / requests[at]) if requests[at] else 0.0
    words = f"{item} of {cell} is slow: {part_words(part, kind)} take {_time(own)}, on its siblings {_time(usual)}"
    evidence = [f"{_TIME.format(part)}_RQ of {len(rows)} {kind}; the excess over their median"]
    return _cause("disk", f"{cell} {item}", words, end, total, evidence)


def _cause(code: str, about: str, words: str, end: End, total: float, evidence: Sequence[str]) -> Cause:
    amount, low, high = (float(one) for one in end)
    return Cause(
        code, about, words, amount, low, high, share=amount / total if total else None, evidence=tuple(evidence)
    )


def _differences(
    works: tuple[Work, Work], part: tuple[str, str], ends: tuple[Array, Array], whole: float
) -> Iterator[Cause]:
    """Yield the two causes whose effects add up to a part's difference: more requests, and longer requests."""
    (time1, rate1), (time2, rate2) = ends
    each1, each2 = (float(t / r) if r else 0.0 for t, r in ((time1, rate1), (time2, rate2)))
    # If one side lacks the part, its time per request is unknown, and the whole difference counts as requests.
    each1, each2 = each1 or each2, each2 or each1
    words, name = part_words(*part), _TIME.format(part[0])
    more = float(rate2 - rate1) * (each1 + each2) / 2
    longer = float(rate1 + rate2) / 2 * (each2 - each1)
    cause, evidence = "calls", [f"requests of {name}: {_count(rate1)} → {_count(rate2)} a second"]
    told = f"{'more' if more > 0 else 'fewer'} {words}: {_count(rate1)} → {_count(rate2)} a second"
    shares = [work.hit_share() for work in works] if part == ("R_SM", "hard disks") else [None, None]
    if None not in shares and (shares[0] - shares[1]) * more > 0 and abs(shares[0] - shares[1]) >= LEAST_OF_HITS:  # type: ignore[operator]
        cause = "cache"
        told += (
            f"; the flash cache answered {100 * (shares[0] or 0):.3g} % of reads, then {100 * (shares[1] or 0):.3g} %"
        )
        evidence.append(f"{HITS}, {MISSES}")
    yield Cause(cause, words, told, more, share=more / whole, evidence=tuple(evidence))
    disk = _one_disk(works, part, longer)
    where = f"; most of it on {disk[0]}: {disk[1]}" if disk else f", over {len(works[1].rows(part))} disks"
    yield Cause(
        "disk" if disk else "device",
        disk[0] if disk else words,
        f"{words} take {'longer' if longer > 0 else 'less long'}: {_time(each1)} → {_time(each2)} each{where}",
        longer,
        share=longer / whole,
        evidence=(f"{name} over its requests, {_count((rate1 + rate2) / 2)} a second",),
    )


def _one_disk(works: tuple[Work, Work], part: tuple[str, str], longer: float) -> tuple[str, str] | None:
    """Return the disk that causes at least half of a part's change in time per request, with its times, or None."""
    sides = []
    for work in works:
        time, requests = work.rates_per_s(np.ones(work.rounds, dtype=bool))
        sides.append({work.keys[row][2:]: (time[row], requests[row]) for row in work.rows(part) if requests[row] > 0})
    both = [key for key in sides[0] if key in sides[1]]
    if len(both) < 3 or not longer:
        return None
    each = {key: [float(side[key][0] / side[key][1]) for side in sides] for key in both}
    own = {key: (sides[0][key][1] + sides[1][key][1]) / 2 * (each[key][1] - each[key][0]) for key in both}
    key = max(own, key=lambda one: own[one] / longer)
    if own[key] / longer < MOST_OF:
        return None
    return f"{key[1]} of {key[0]}", f"{_time(each[key][0])} → {_time(each[key][1])}"


def _count(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _time(ns: float) -> str:
    for factor, unit in ((1e3, "µs"), (1e6, "ms")):
        if ns < factor * 1e3:
            return f"{ns / factor:.3g} {unit}"
    return f"{ns / 1e9:.3g} s"
