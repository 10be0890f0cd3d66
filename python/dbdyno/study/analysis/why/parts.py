"""The mean time of a transaction of an arm, cut into what it waited for, block by block.

An event has the time of its waits: each timed, or sampled, where a look stands for the time since the look before. CPU
is what the sessions' processes used, where the host says it (less what they used inside of timed waits), else what was
sampled as such, or, where waits were timed, what no wait covers. The rest is time ready to run without a processor, or
on the way to the client: on a busy machine a look finds a session idle just when it lets go of the processor, so
samples of CPU tell less than the host.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dbdyno.study.analysis.drawn.pictures import has_table
from dbdyno.study.analysis.measured.measures import ArmMeasures

CPU = ("CPU", "CPU")
READY = ("CPU", "ready, without a processor")
QUEUE = ("queue", "a free session")
_TEMPORARY = ("BufFile", "io_cache", "innodb_temp")
"""What stands in the names of events of temporary files."""
Event = tuple[str, str]
Array = NDArray[np.float64]

_TIMES = """
select block, count(*) filter (whole), sum(elapsed_ns) filter (whole)::double,
  sum(greatest(coalesce(started_ns - intended_ns, 0), 0)) filter (whole)::double, count(*), sum(elapsed_ns)::double
from (
  select block, elapsed_ns, started_ns, intended_ns, slices.counts is not false and (error is null
      or coalesce(expected, list_contains($3::varchar[], error))) as whole
  from calls left join slices using (block, slice)
  where arm = $1 and calls.kind = 'transaction' and block in (select unnest($2::int[]))
) group by 1
"""
_WAITS = """
select block, class, event, count(*), sum(elapsed_ns)::double, min(fidelity) = 'exact' and max(fidelity) = 'exact'
from waits
where arm = $1 and object in ('client backend', 'session', 'client') and (class <> 'idle' or fidelity <> 'exact')
  and block in (select unnest($2::int[]))
group by 1, 2, 3
"""
_IN_WAITS = """
select block, sum(value)::double from metrics
where source in ('probes', 'watchpoints') and metric = 'cpu_in_waits' and arm = $1
  and block in (select unnest($2::int[])) group by 1
"""
_PROBES = """
select sum(value)::double
  / (select nullif(count(*), 0) from calls where kind = 'transaction' and block in (select unnest($1::int[]))),
  coalesce(bool_or(source = 'watchpoints'), false)
from metrics where source in ('probes', 'watchpoints') and metric = 'cost' and block in (select unnest($1::int[]))
"""


@dataclass(frozen=True)
class Side:
    """What is known of one arm, an entry per block: transactions that count and their time, what they queued for in an
    open loop; all transactions and their time; the time of each event of these; the CPU of the sessions' processes,
    their reads of files and writes to them, with the transactions that these are for. `looks`: about how often a
    session was looked at."""

    name: str
    events: tuple[Event, ...]
    count: Array
    elapsed: Array
    queued: Array
    every: Array
    busy: Array
    weights: Array
    exact: bool
    samples: int
    looks: float
    cpu: Array
    reads: Array
    writes: Array
    cpu_count: Array
    probes_ns: float = 0.0
    """What probes cost a transaction, where they timed the waits."""
    watchpoints: bool = False
    """Whether these were watchpoints, in some of the blocks at least."""
    programs: bool = False
    """Whether programs ran in place of sessions: the kernel's account of each is all that is known."""

    @property
    def of_temporary_files(self) -> float:
        """The time of waits for temporary files, of all transactions."""
        own = [at for at, (_, name) in enumerate(self.events) if any(word in name for word in _TEMPORARY)]
        return float(self.weights[:, own].sum())

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
        count, every = self.count[keep].sum(), self.every[keep].sum()
        if not count:
            return {event: float("nan") for event in (*self.events, CPU, READY, QUEUE)}
        served = float(self.elapsed[keep].sum() / count)
        times = dict(zip(self.events, map(float, self.weights[keep].sum(axis=0) / every), strict=True))
        sampled, billed = times.pop(CPU, 0.0), self.cpu_count[keep].sum()
        cpu = min(float(self.cpu[keep].sum() / billed) if billed else sampled, served)
        waited = sum(times.values())
        if waited > served - cpu and waited:  # more was seen than there is: looks are few
            times = {event: spent * (served - cpu) / waited for event, spent in times.items()}
        left = served - cpu - sum(times.values())
        parts = {CPU: cpu + left, READY: 0.0} if self.exact and not billed else {CPU: cpu, READY: left}
        return times | parts | {QUEUE: float(self.queued[keep].sum() / count)}


def side_of(connection: Any, arm: ArmMeasures, hertz: float, *, name: str = "", programs: bool = False) -> Side:
    """What the evidence of an arm says; `looks` is 0 where nobody looked (`hertz` is 0, and no wait was timed)."""
    places = {block.index: at for at, block in enumerate(arm.blocks)}
    listed = list(places)
    sums = np.zeros((5, len(places)))
    for block, *values in connection.execute(_TIMES, [arm.name, listed, list(arm.expected)]).fetchall():
        sums[:, places[block]] = [value or 0.0 for value in values]
    rows = connection.execute(_WAITS, [arm.name, listed]).fetchall() if has_table(connection, "waits") else []
    events = tuple(dict.fromkeys((row[1], row[2]) for row in rows))
    exact = bool(rows) and all(row[5] for row in rows)
    weights = np.zeros((len(places), len(events)))
    for block, kind, event, _, spent, _ in rows:
        weights[places[block], events.index((kind, event))] += spent
    samples = sum(row[3] for row in rows)
    looks = float(sums[4].sum()) / 1e9 * hertz
    count, elapsed, queued, every, busy = sums
    cpu, reads, writes, cpu_count = _billed(arm)
    probes_ns, watchpoints = 0.0, False
    if exact and has_table(connection, "metrics"):
        for block, spent in connection.execute(_IN_WAITS, [arm.name, listed]).fetchall():
            cpu[places[block]] = max(cpu[places[block]] - spent, 0.0)
        [(probes_ns, watchpoints)] = connection.execute(_PROBES, [listed]).fetchall()
    return Side(
        name or arm.label,
        events,
        count,
        elapsed,
        queued,
        every,
        busy,
        weights,
        exact,
        samples,
        looks,
        cpu,
        reads,
        writes,
        cpu_count,
        probes_ns or 0.0,
        watchpoints,
        programs=programs,
    )


def _billed(arm: ArmMeasures) -> Array:
    """CPU of the sessions' processes by block, how often they read from files and wrote to them, and the transactions
    that it was for; zeros where nobody saw it."""
    found = np.zeros((4, len(arm.blocks)))
    for at, block in enumerate(arm.blocks):
        for own in block.report["arms"]:
            if own["arm"] == arm.number and "user_ns" in own:
                cpu = own.get("on_cpu_ns") or own["user_ns"] + own["system_ns"]
                found[:, at] += cpu, own.get("read_calls", 0), own.get("write_calls", 0), own["transactions"]
    return found
