"""Costs of an arm's files: how often a statement reads and writes blocks, their CPU time, and the devices.

The time at a device is the wait for it minus the CPU time inside the wait. A wait that is hardly longer than its CPU
time was answered by the kernel's cache: the process did not sleep.

Limits: an arm does not show how many requests a device serves at once; reads are assumed not to delay each other,
unless the run had mounted a modelled device (`data_device.py`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dbdyno.base.json_types import JsonObject
from dbdyno.study.prediction.data_device import NAME, DataDevice, lateness, measured_device, mounted_device
from dbdyno.study.prediction.device import LEAST
from dbdyno.study.prediction.file_io import DATA_READ, DATA_WRITE, EVENTS, TEMP_READ, TEMP_WRITE, rows_of
from dbdyno.study.prediction.memory import BUFFERS, WORK_MEM, megabytes
from dbdyno.study.prediction.observation import SYNC, Observation
from dbdyno.study.prediction.parameter import DEFAULT, FITTED, MEASURED, Parameter, measured_parameter
from dbdyno.study.prediction.relations import PAGE_BYTES, KeyedRelations, keyed_relations

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

CPU_US = 10.0
"""CPU time that is assumed for a read or write if it was not measured [us]."""
CPU = {"read_us": (DATA_READ,), "write_us": (DATA_WRITE,), "temp_us": (TEMP_READ, TEMP_WRITE)}
"""Wait events to whose CPU time each parameter refers."""
CACHED = {"cached_ratio": (DATA_READ,), "temp_cached_ratio": (TEMP_READ, TEMP_WRITE)}
CACHED_US = 30.0
"""Length of a wait, without its CPU time, above which a device answered [us]; the kernel's cache is faster."""
WORDS = {DATA_READ: "data reads", DATA_WRITE: "data writes", TEMP_READ: "temporary reads", TEMP_WRITE: "spilled writes"}


@dataclass(frozen=True)
class FileCosts:
    """Costs of an arm's files.

    Attributes:
        statements: For each statement, its numbers of reads and writes, and the relations that it touches.
        parameters: Parameters of the section [postgres].
        data: Device of the data files; None if the arm does not wait for data files.
        temp: Device of temporary files, if it differs from that of the data; None if the arm spills nothing.
        rows: Quantiles of the measured times of both devices.
        read_us: Mean time of a read at the data device without CPU time, to which the model is fitted [us]; 0 if it is
            not fitted.
        notes: Sentences about the costs.
        undetermined: Keys that the arm does not determine.
    """

    statements: list[JsonObject] = field(default_factory=list)
    parameters: list[Parameter] = field(default_factory=list)
    data: DataDevice | None = None
    temp: DataDevice | None = None
    rows: list[Parameter] = field(default_factory=list)
    read_us: float = 0.0
    notes: list[str] = field(default_factory=list)
    undetermined: list[str] = field(default_factory=list)

    @property
    def devices(self) -> list[str]:
        """Return the sections of the devices."""
        return [device.toml for device in (self.data, self.temp) if device]

    def storage(self, log: str) -> str:
        """Return lines of the section [storage] for data and temporary files; `log` is the device of the log."""
        data = self.data.name if self.data else log
        return f'data = "{data}"\n' + (f'temp = "{self.temp.name}"\n' if self.temp else "")


def file_costs(observation: Observation) -> FileCosts:
    """Return the costs of an arm's files; they are empty if the arm does not wait for files."""
    if not len(observation.io.call):
        return FileCosts([{} for _ in observation.steps.statements])
    statements = [
        _counts(observation, *one) for one in zip(observation.steps.statements, observation.steps.kinds, strict=True)
    ]
    inside = {key: _cpu(observation, key, events) for key, events in CPU.items() if _number(observation, events)}
    times = {event: _times_us(observation, event, inside) for event in EVENTS.values()}
    mounted = mounted_device(observation)
    ratios = [] if mounted else [_cached(times, key, events) for key, events in CACHED.items()]
    slept = times if mounted else {event: own[own >= CACHED_US] for event, own in times.items()}
    if len(slept[DATA_WRITE]) < len(times[DATA_WRITE]) / 2:
        # They end in the kernel's cache, and their CPU time is small beside what they follow.
        statements = [{key: value for key, value in own.items() if key != "writes"} for own in statements]
    where = keyed_relations(observation)
    cached, notes, undetermined = _buffers(observation, statements, where)
    if any(parameter.key == "relations" for parameter in cached):
        statements = [
            {**own, "touches": touches} if touches else own
            for own, touches in zip(statements, where.touches, strict=True)
        ]
    reads = slept[DATA_READ]
    measured = [
        measured_device(
            NAME, observation, reads, slept[DATA_WRITE], _starts(observation, times[DATA_READ], len(reads))
        ),
        measured_device("temp", observation, slept[TEMP_READ], slept[TEMP_WRITE]),
    ]
    data, temp = (mounted, None) if mounted else measured
    size = _data_mb(observation, where)
    waited = reads if len(reads) else times[TEMP_READ]
    late = lateness(mounted, waited, size[0].value if size else 1_000.0) if mounted else None
    return FileCosts(
        statements,
        [*inside.values(), *cached, *size, *(own for own in ratios if own.value), *([late] if late else [])],
        data,
        temp,
        [row for device in measured if device for row in device.parameters],
        float(reads.mean()) if (late or measured[0]) and len(reads) >= LEAST else 0.0,
        [*_per_transaction(observation), *notes, *(note for device in (data, temp) if device for note in device.notes)],
        [*undetermined, *(["data device"] if not len(reads) else [])],
    )


def _starts(observation: Observation, times_us: Floats, slept: int) -> Ints:
    """Return the start times of those reads for which a process slept [ns]."""
    starts: Ints = observation.waits_for(DATA_READ)["started_ns"]
    return starts if slept == len(starts) else starts[times_us >= CACHED_US]


def _cached(times: Mapping[str, Floats], key: str, events: Sequence[str]) -> Parameter:
    """Return the share of these waits that the kernel's cache answered."""
    import numpy as np

    own = np.concatenate([times[event] for event in events])
    how = f"waits of less than {CACHED_US:g} us beyond their CPU, of {len(own)}"
    return Parameter(key, float((own < CACHED_US).mean()) if len(own) else 0.0, MEASURED, how)


def _counts(observation: Observation, statement: str, kind: str) -> JsonObject:
    rows = rows_of(observation.calls, statement, kind)
    found = {key: observation.io.counts(event, rows) for key, event in EVENTS.items()}
    return {key: counts for key, counts in found.items() if counts is not None}


def _number(observation: Observation, events: Sequence[str]) -> int:
    return sum(len(observation.waits_for(event)["elapsed_ns"]) for event in events)


def _cpu(observation: Observation, key: str, events: Sequence[str]) -> Parameter:
    """Return the CPU time inside a wait for one of these events [us]."""
    what = " and ".join(event.partition(":")[2] for event in events)
    blocks = [observation.waits_for(event)["block"] for event in events]

    def number(block: int) -> int:
        return sum(int((own == block).sum()) for own in blocks)

    spent: dict[int, float] = {}
    for event in events:
        for block, ns in observation.cpu_in_wait_ns.get(event, {}).items():
            spent[block] = spent.get(block, 0.0) + ns
    if not spent and observation.cpu_in_waits_ns and not _number(observation, [SYNC]):
        # An older run, whose CPU time is known of all waits together: these are the only ones.
        others = [event for event in EVENTS.values() if event not in events]
        spent = {} if _number(observation, others) else dict(observation.cpu_in_waits_ns)
    values = [ns / 1e3 / number(block) for block, ns in spent.items() if number(block)]
    if not values:
        how = f"the run does not say what CPU is inside the waits for {what}"
        return Parameter(key, CPU_US, DEFAULT, how, unit="us")
    return measured_parameter(key, values, f"CPU inside the waits for {what}, blocks", "us")


def _times_us(observation: Observation, event: str, inside: Mapping[str, Parameter]) -> Floats:
    """Return the times at the device for an event [us], in order of their starts."""
    import numpy as np

    cpu_us = next((inside[key].value for key, events in CPU.items() if event in events and key in inside), 0.0)
    found: Floats = np.maximum(observation.waits_for(event)["elapsed_ns"] / 1e3 - cpu_us, 1.0)
    return found


def _per_transaction(observation: Observation) -> list[str]:
    """Return a sentence about how many blocks a transaction reads and writes."""
    done = max(int((observation.calls["kind"] == "transaction").sum()), 1)
    said = [
        f"{len(own.call) / done:.4g} {WORDS[event]}"
        for event in EVENTS.values()
        if len((own := observation.io.waits_for(event)).call)
    ]
    return [f"Files: a transaction waits for {', '.join(said)} on average, counted by execution."]


def _buffers(
    observation: Observation, statements: Sequence[JsonObject], relations: KeyedRelations
) -> tuple[list[Parameter], list[str], list[str]]:
    """Return the parameters of the buffer cache, sentences about it, and what is not determined."""
    known = {
        name: megabytes(observation.settings[name]) for name in (BUFFERS, WORK_MEM) if name in observation.settings
    }
    size = known.get(BUFFERS, 0.0)
    found = (
        [Parameter("work_mem_mb", known[WORK_MEM], MEASURED, "the server's setting", unit="MB")]
        if WORK_MEM in known
        else []
    )
    if any("writes" in own for own in statements):
        note = "Files: sessions write dirty blocks to make room as often as counted, for any size of the buffers."
    else:
        note = ""
    notes = [note] if note else []
    if not any("reads" in own for own in statements):
        return found, notes, []
    if not size or not relations.relations:
        why = "shared_buffers" if not size else "the size of the tables read by key"
        notes.append(f"Buffer cache: the run does not say {why}, so reads stay constant for other shared_buffers.")
        return found, notes, [BUFFERS]
    how = "the server's setting"
    drawn = f"{len(relations.relations)} relations with {relations.pages} pages, keys drawn by the script"
    found += [
        Parameter("shared_buffers_mb", size, MEASURED, how, unit="MB"),
        Parameter("calibrated_buffers_mb", size, MEASURED, how, unit="MB"),
        Parameter("relations", relations.relations, MEASURED, drawn),
    ]
    return found, [*notes, *_expected(observation, statements, relations, size)], []


def _expected(
    observation: Observation, statements: Sequence[JsonObject], relations: KeyedRelations, size_mb: float
) -> list[str]:
    """Return sentences that compare the counted misses of the buffer cache with the misses that the model expects."""
    from dbdyno import _core

    each = observation.steps.per_transaction
    rates = [0.0] * len(relations.relations)
    for touches, times in zip(relations.touches, each, strict=True):
        for relation in touches:
            rates[relation] += times
    expected = _core.model_misses(relations.relations, rates, size_mb)
    counted = math.fsum(
        times * math.fsum(n * share for n, share in zip(own["reads"]["count"], own["reads"]["share"], strict=True))
        for own, times, touches in zip(statements, each, relations.touches, strict=True)
        if "reads" in own and touches
    )
    total = math.fsum(miss * rate for miss, rate in zip(expected, rates, strict=True))
    said = [
        f"Buffer cache: {counted:.4g} reads per transaction were counted, but independent references predict"
        f" {total:.4g} misses; at other shared_buffers the expected misses are scaled by that."
    ]
    if observation.data_volume is None:
        said.append(
            "Buffer cache: the counted reads include those that the kernel's cache answers, which take only CPU time. "
            "How their share changes with other shared_buffers is not known."
        )
    return said


def _data_mb(observation: Observation, relations: KeyedRelations) -> list[Parameter]:
    """Return the size of the data files."""
    sizes = [*observation.tables.values(), *observation.indexes.values()]
    total = max(math.fsum(own.size_bytes for own in sizes), relations.pages * PAGE_BYTES)
    if not total:
        return []
    return [Parameter("data_mb", total / 2**20, MEASURED, "tables and indexes that are read", unit="MB")]


def fitted_factor(costs: FileCosts, factor: float, name: str) -> list[Parameter]:
    """Return the factor of the data device's read times as a parameter; none if no read time is known."""
    if not costs.read_us:
        return []
    return [Parameter("data_factor", factor, FITTED, f"the mean read is that of {name}")]
