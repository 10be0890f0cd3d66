"""The mean time of a transaction of an arm, cut into what it waited for, block by block.

Where each wait was timed, an event has the time of its waits and what no wait covers is CPU. Where sessions were
sampled, an event has its share of the samples of the transactions' time: a sample sees a session inside the server,
so time on the wire is shared out with it. What was sampled as CPU and is more than the sessions' processes used of it
(where the host says that) is time ready to run: for a processor, or on the way to the client.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dbdyno.study.analysis.measures import ArmMeasures
from dbdyno.study.analysis.pictures import has_table

CPU = ("CPU", "CPU")
READY = ("CPU", "ready, without a processor")
QUEUE = ("queue", "a free session")
Event = tuple[str, str]
Array = NDArray[np.float64]

_TIMES = """
select block, count(*), sum(elapsed_ns)::double, sum(greatest(coalesce(started_ns - intended_ns, 0), 0))::double
from calls left join slices using (block, slice)
where arm = $1 and calls.kind = 'transaction' and slices.counts is not false
  and (error is null or coalesce(expected, list_contains($3::varchar[], error)))
  and block in (select unnest($2::int[]))
group by 1
"""
_WAITS = """
select block, class, event, count(*), sum(elapsed_ns)::double, min(fidelity) = 'exact' and max(fidelity) = 'exact'
from waits
where arm = $1 and object in ('client backend', 'session') and (class <> 'idle' or fidelity <> 'exact')
  and block in (select unnest($2::int[]))
group by 1, 2, 3
"""


@dataclass(frozen=True)
class Side:
    """What is known of one arm, an entry per block: transactions, their time, what they queued for in an open loop,
    the weight of each event (samples, or ns), and the CPU of the sessions' processes with its own transactions."""

    name: str
    events: tuple[Event, ...]
    count: Array
    elapsed: Array
    queued: Array
    weights: Array
    exact: bool
    samples: int
    cpu: Array
    cpu_count: Array

    @property
    def blocks(self) -> int:
        """How many there are."""
        return int(self.count.size)

    def mean(self, keep: NDArray[np.bool_]) -> float:
        """The mean time of a transaction over these blocks, from when it was due."""
        count = self.count[keep].sum()
        return float((self.elapsed[keep].sum() + self.queued[keep].sum()) / count) if count else float("nan")

    def of(self, events: Sequence[Event], keep: NDArray[np.bool_]) -> Array:
        """The time of a transaction in each of these events; together they are its mean."""
        found = dict.fromkeys(events, 0.0)
        found.update(self._times(keep))
        return np.array([found[event] for event in events])

    def _times(self, keep: NDArray[np.bool_]) -> dict[Event, float]:
        count = self.count[keep].sum()
        if not count:
            return {event: float("nan") for event in (*self.events, CPU, READY, QUEUE)}
        served, weights = self.elapsed[keep].sum() / count, self.weights[keep].sum(axis=0)
        if self.exact:
            times = dict(zip(self.events, weights / count, strict=True))
            times[CPU] = times.get(CPU, 0.0) + served - sum(times.values())
        else:
            share = weights / weights.sum() if weights.sum() else weights
            times = dict(zip(self.events, share * served, strict=True))
            times |= self._ready(times.get(CPU, 0.0), keep)
        return times | {QUEUE: float(self.queued[keep].sum() / count)}

    def _ready(self, sampled: float, keep: NDArray[np.bool_]) -> dict[Event, float]:
        """What was sampled as CPU, as far as it was, and the rest."""
        billed = self.cpu_count[keep].sum()
        if not billed:
            return {CPU: sampled}
        used = min(float(self.cpu[keep].sum() / billed), sampled)
        return {CPU: used, READY: sampled - used}


def side_of(connection: Any, arm: ArmMeasures, *, name: str = "") -> Side:
    """What the evidence of an arm says; `samples` is 0 where nobody looked."""
    places = {block.index: at for at, block in enumerate(arm.blocks)}
    size, listed = len(places), list(places)
    count, elapsed, queued = (np.zeros(size) for _ in range(3))
    for block, number, spent, waited in connection.execute(_TIMES, [arm.name, listed, list(arm.expected)]).fetchall():
        at = places[block]
        count[at], elapsed[at], queued[at] = number, spent or 0.0, waited or 0.0
    rows = connection.execute(_WAITS, [arm.name, listed]).fetchall() if has_table(connection, "waits") else []
    events = tuple(dict.fromkeys((row[1], row[2]) for row in rows))
    exact = bool(rows) and all(row[5] for row in rows)
    weights = np.zeros((size, len(events)))
    for block, kind, event, seen, spent, _ in rows:
        weights[places[block], events.index((kind, event))] += spent if exact else seen
    cpu, billed = _billed(arm)
    samples = sum(row[3] for row in rows)
    return Side(name or arm.label, events, count, elapsed, queued, weights, exact, samples, cpu, billed)


def _billed(arm: ArmMeasures) -> tuple[Array, Array]:
    """CPU of the sessions' processes by block, and the transactions that it was for; zeros where nobody saw it."""
    cpu, count = np.zeros(len(arm.blocks)), np.zeros(len(arm.blocks))
    for at, block in enumerate(arm.blocks):
        for own in block.report["arms"]:
            if own["arm"] == arm.number and "user_ns" in own:
                ticks = own["user_ns"] + own["system_ns"]
                cpu[at] += own.get("on_cpu_ns") or ticks
                count[at] += own["transactions"]
    return cpu, count
