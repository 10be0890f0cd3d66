"""The rack behind the cells: the model runs continuously, and each cell collects its metrics once a minute.

    virtual time = speed x wall-clock time, or less if the model cannot keep up

Each cell collects exactly at its particular second of every minute, as real cells do, and shows these values until its
next collection. Counters start at zero whenever the cell's service starts or is restarted. The clocks of the cells show
the time at which the rig began plus virtual time: with a speed of 60 they run sixty times too fast, and everything in
the cells is consistent with them.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dbdyno.base.json_types import JsonObject
from dbdyno.model.machine import machine_of

MINUTE_NS = 60 * 10**9
KEPT_MINUTES = 15
TICK_S = 0.05

Row = tuple[str, str, str, float, str, str]
"""One value: object type, object, metric, value, unit, kind (counter, gauge, rate)."""


@dataclass(frozen=True)
class Load:
    """The load on the rack: sessions that run a workload of the model endlessly.

    Attributes:
        workload: The workload.
        sessions: Number of sessions that run it.
        seed: Seed of the model.
        settings: Machine parameters.
        beside: Further workloads on the same database, each as (sessions, workload).
    """

    workload: Mapping[str, Any]
    sessions: int = 8
    seed: int = 1
    settings: Mapping[str, str] | None = None
    beside: Sequence[tuple[int, Mapping[str, Any]]] = ()


@dataclass(frozen=True)
class Sample:
    """A cell's collection: its time in ns since 1970, and its metrics sorted by name and object."""

    at_ns: int
    rows: list[Row]


class Rack:
    """A modelled rack; `advance` lets virtual time pass, `run` does so in step with the wall clock.

    Raises:
        ModelError: The machine has no cells, or the model refuses it.
    """

    def __init__(self, target: str, load: Load, *, speed: float = 1.0) -> None:
        from dbdyno import _core

        machine = machine_of(target)
        self.title = machine.title
        self.beside = [f"{one['name']}: {one['text']}" for one in machine.databases]
        """Descriptions of the workloads of all databases but the first."""
        self.speed = speed
        self.reached = 0.0
        # Whole seconds: collections are then at whole seconds, the resolution of text output.
        self.began_ns = int(time.time()) * 10**9
        self.core = _core.ModelRack(
            machine.toml,
            load.seed,
            dict(load.workload),
            load.sessions,
            dict(load.settings or {}),
            [{"sessions": n, "workload": dict(kind)} for n, kind in load.beside],
        )
        self.facts = self.core.facts()
        self.database: str = self.facts["database"]
        self.names: list[str] = [cell["name"] for cell in self.facts["cells"]]
        self.now_ns = 0
        self.started_ns = [0] * len(self.names)
        self.samples = [deque([self._sample(at)], maxlen=KEPT_MINUTES) for at in self._numbers]
        self.listeners: list[list[Callable[[Sample], None]]] = [[] for _ in self._numbers]
        """For each cell, functions called with each collection, in the thread that lets time pass."""
        self._due = [(7 + 17 * at) % 59 * 10**9 + 10**9 for at in self._numbers]

    @property
    def _numbers(self) -> range:
        return range(len(self.names))

    def cell(self, number: int) -> JsonObject:
        """Return the current facts and contents of a cell, as the core reports them."""
        self.facts = self.core.facts()
        found: JsonObject = self.facts["cells"][number]
        return found

    def run_command(self, number: int, do: str, **given: Any) -> None:
        """Run the core's command `do` on a cell.

        Raises:
            ModelError: The cell refuses it.
        """
        self.core.command({"do": do, "cell": number, **given})

    def restart(self, number: int) -> None:
        """Restart the counters of a cell, and delete its history."""
        self.run_command(number, "restart")
        self.started_ns[number] = self.now_ns
        # Other threads read meanwhile, so there must be a sample at every instant.
        sample = self._sample(number)
        self.samples[number] = deque([sample], maxlen=KEPT_MINUTES)
        self._tell(number, sample)

    def service_began_ns(self, number: int) -> int:
        """Return when a cell's service began, in ns since 1970."""
        return self.began_ns + self.started_ns[number]

    def clock_ns(self) -> int:
        """Return the time on the clocks of the cells, in ns since 1970."""
        return self.began_ns + self.now_ns

    def advance(self, virtual_ns: int, wall_s: float = 3600.0) -> None:
        """Let `virtual_ns` of virtual time pass, or less if that takes longer than `wall_s` seconds.

        Cells whose collection becomes due in this time collect their metrics.
        """
        end_ns = self.now_ns + virtual_ns
        limit = time.perf_counter() + wall_s
        while self.now_ns < end_ns and (left := limit - time.perf_counter()) > 0:
            due = min(self._due)
            step = min(end_ns, due) - self.now_ns
            self.now_ns = self.core.advance(step, left)
            if self.now_ns >= due:
                number = self._due.index(due)
                self._due[number] += MINUTE_NS
                self._collect(number)

    def run(self, stop: threading.Event) -> None:
        """Let time pass in step with the wall clock until `stop` is set.

        `reached` is the speed that the model achieves, smoothed over several seconds. Virtual time that is lost in one
        tick is not made up for later.
        """
        last = time.perf_counter()
        while not stop.is_set():
            begin, before_ns = time.perf_counter(), self.now_ns
            want_ns = round(min(begin - last, 2 * TICK_S) * self.speed * 1e9)
            last = begin
            self.advance(want_ns, 2 * TICK_S)
            stop.wait(max(0.0, TICK_S - (time.perf_counter() - begin)))
            wall_s = time.perf_counter() - begin
            speed = (self.now_ns - before_ns) / 1e9 / wall_s
            self.reached += (speed - self.reached) * min(1.0, wall_s / 5.0)

    def _collect(self, number: int) -> None:
        sample = self._sample(number)
        self.samples[number].append(sample)
        self._tell(number, sample)

    def _tell(self, number: int, sample: Sample) -> None:
        for listener in self.listeners[number]:
            listener(sample)

    def _sample(self, number: int) -> Sample:
        found = self.core.collect(number)
        own = sys.intern
        # The strings are the same in every minute: each is stored once, or fifty cells would fill the memory.
        rows: list[Row] = [
            (own(kind), own(item), own(name), value, own(unit), own(sort))
            for kind, item, name, value, unit, sort in found["rows"]
        ]
        rows.sort(key=lambda row: (row[2], row[1]))
        return Sample(self.began_ns + found["at_ns"], rows)
