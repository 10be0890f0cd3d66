"""Division of the mean time of a transaction of an arm into what it waited for, block by block.

The time of an event is the time of its waits. Waits are timed, read from memory, or sampled; each sample represents the
time since the previous sample. CPU is the CPU time of the sessions' processes if the host reports it (minus what they
used within timed waits). Otherwise it is the time sampled as CPU or, if waits were timed, the time outside of waits.
The remaining time was spent ready to run without a processor, or on the network to the client. On a busy machine, a
session is often sampled only when it releases the processor, so samples show less CPU time than the host reports.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dbdyno.study.analysis.figure_data.pictures import has_table
from dbdyno.study.analysis.measured.measures import ArmMeasures

CPU = ("CPU", "CPU")
READY = ("CPU", "ready, without a processor")
QUEUE = ("queue", "a free session")
_TEMPORARY = ("BufFile", "io_cache", "innodb_temp")
"""Strings that occur in the names of wait events for temporary files."""
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
select block, class, event, count(*), sum(elapsed_ns)::double, bool_and(fidelity <> 'sampled'),
  bool_and(fidelity = 'read')
from waits
where arm = $1 and object in ('client backend', 'session', 'client') and (class <> 'idle' or fidelity = 'sampled')
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

_RECORDED = """
select bool_or(source = 'looks') from metrics
where source in ('probes', 'watchpoints', 'looks') and metric = 'cost' and block in (select unnest($1::int[]))
"""
"""Whether the waits of the blocks were read; null if they were not recorded. It is known also without a wait."""


@dataclass(frozen=True)
class Side:
    """Times and counts of one arm, with an entry per block.

    Attributes:
        name: Name of the arm.
        events: The events.
        count: Number of transactions that count.
        elapsed: Total time of the transactions that count [ns].
        queued: Total time that these transactions queued in an open loop [ns].
        every: Number of all transactions.
        busy: Total time of all transactions [ns].
        weights: Time of each event over all transactions [ns].
        exact: True if all waits were timed or read.
        samples: Number of samples.
        looks: Approximate number of times that a session was sampled.
        cpu: CPU time of the sessions' processes [ns].
        reads: Number of file reads by these processes.
        writes: Number of file writes by these processes.
        cpu_count: Number of transactions that `cpu`, `reads` and `writes` cover.
    """

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
    """CPU cost of probes per transaction [ns], if they timed the waits."""
    watchpoints: bool = False
    """True if waits were timed by watchpoints, at least in some of the blocks."""
    read: bool = False
    """True if waits were read from the server's memory at intervals."""
    programs: bool = False
    """True if programs ran instead of sessions; the only data about them is the kernel's accounting."""

    @property
    def temporary_files_ns(self) -> float:
        """Return the time that all transactions waited for temporary files [ns]."""
        own = [at for at, (_, name) in enumerate(self.events) if any(word in name for word in _TEMPORARY)]
        return float(self.weights[:, own].sum())

    @property
    def blocks(self) -> int:
        """Return the number of blocks."""
        return int(self.count.size)

    def mean(self, keep: NDArray[np.bool_]) -> float:
        """Return the mean time of a transaction over the blocks in `keep`, from its intended start [ns]."""
        count = self.count[keep].sum()
        return float((self.elapsed[keep].sum() + self.queued[keep].sum()) / count) if count else float("nan")

    def event_times_ns(self, events: Sequence[Event], keep: NDArray[np.bool_]) -> Array:
        """Return the time per transaction of each event [ns]; over all events, the times add up to the mean time."""
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
        if waited > served - cpu and waited:  # more time was sampled than there is, because of few samples
            times = {event: spent * (served - cpu) / waited for event, spent in times.items()}
        left = served - cpu - sum(times.values())
        parts = {CPU: cpu + left, READY: 0.0} if self.exact and not billed else {CPU: cpu, READY: left}
        return times | parts | {QUEUE: float(self.queued[keep].sum() / count)}


def side_of(connection: Any, arm: ArmMeasures, hertz: float, *, name: str = "", programs: bool = False) -> Side:
    """Return the times and counts of an arm from the evidence; `hertz` is the sampling rate of the sessions."""
    places = {block.index: at for at, block in enumerate(arm.blocks)}
    listed = list(places)
    sums = np.zeros((5, len(places)))
    for block, *values in connection.execute(_TIMES, [arm.name, listed, list(arm.expected)]).fetchall():
        sums[:, places[block]] = [value or 0.0 for value in values]
    rows = connection.execute(_WAITS, [arm.name, listed]).fetchall() if has_table(connection, "waits") else []
    events = tuple(dict.fromkeys((row[1], row[2]) for row in rows))
    exact, read = all(row[5] for row in rows), all(row[6] for row in rows)
    if not rows:
        recorded = _reads_without_a_wait(connection, listed)
        exact, read = recorded is not None, bool(recorded)
    weights = np.zeros((len(places), len(events)))
    for block, kind, event, _, spent, *_ in rows:
        weights[places[block], events.index((kind, event))] += spent
    samples = sum(row[3] for row in rows)
    looks = float(sums[4].sum()) / 1e9 * hertz
    count, elapsed, queued, every, busy = sums
    cpu, reads, writes, cpu_count = _billed_resources(arm)
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
        read=exact and read,
        programs=programs,
    )


def _reads_without_a_wait(connection: Any, blocks: list[int]) -> bool | None:
    """Return True if the waits of these blocks were read, False if they were timed, None if they were not recorded."""
    if not has_table(connection, "metrics"):
        return None
    [(found,)] = connection.execute(_RECORDED, [blocks]).fetchall()
    return None if found is None else bool(found)


def _billed_resources(arm: ArmMeasures) -> Array:
    """Return, by block, the sessions' CPU time, file reads, file writes and transactions; 0 if unknown."""
    found = np.zeros((4, len(arm.blocks)))
    for at, block in enumerate(arm.blocks):
        for own in block.report["arms"]:
            if own["arm"] == arm.number and "user_ns" in own:
                cpu = own.get("on_cpu_ns") or own["user_ns"] + own["system_ns"]
                found[:, at] += cpu, own.get("read_calls", 0), own.get("write_calls", 0), own["transactions"]
    return found
