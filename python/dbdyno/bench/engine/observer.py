"""What is seen beside the load: sampled waits, counters at the borders of stretches, canaries.

It gathers columns in memory for one block and writes them as parts when the block ends. Watching never fails a run:
what cannot be read is missing, and said once.
"""

from __future__ import annotations

import contextlib
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeVar

from dbdyno.base.errors import Error

if TYPE_CHECKING:
    from dbdyno.bench.canary import Canaries
    from dbdyno.bench.engine.usage import Bill
    from dbdyno.bench.metrics import Metric
    from dbdyno.study.plan.plan import Watch


class Watcher(Protocol):
    """A sampler of the load's sessions, in a thread of its own."""

    def start(self) -> None: ...
    def stop(self) -> None: ...
    def pause(self) -> None: ...
    def resume(self) -> None: ...
    def mark(self, arm: str | None, block: int) -> None: ...
    def take(self) -> dict[str, list[Any]]: ...


class Connection(Protocol):
    """What counters are read over."""

    def close(self) -> None: ...


Target = TypeVar("Target")
Link = TypeVar("Link", bound=Connection)


class Observer(ABC, Generic[Target, Link]):
    """Watches all targets of a run; entered while blocks run."""

    failures: tuple[type[Exception], ...] = (Error, OSError)
    """What reading may raise: then it is missing, and the connection is made anew."""

    def __init__(self, watch: Watch, homes: Mapping[str, tuple[str, Target]]) -> None:
        """`homes`: of each arm the server's name and the server."""
        self.watch_plan = watch
        self.targets = dict(homes.values())
        self.homes = {arm: name for arm, (name, _) in homes.items()}
        self.watchers: list[Watcher] = []
        self.metrics: list[tuple[str, int, Metric]] = []
        self.watching = True
        self._connections: dict[str, Link] = {}

    @abstractmethod
    def _watcher(self, target: Target, period_ns: int) -> Watcher | None:
        """A sampler of this server's sessions; None where they cannot be seen."""

    @abstractmethod
    def _open(self, target: Target) -> Link:
        """A connection for counters."""

    @abstractmethod
    def _counters(self, connection: Link) -> list[Metric]:
        """The server's counters now."""

    def _by_session(self, connection: Link, arm: str) -> list[tuple[str, Metric]]:
        """What the server counted of the load's sessions, each value with the name of its arm; `arm`: of this arm
        alone, of all where it is empty. Nothing where a server counts by session nothing that is current."""
        del connection, arm
        return []

    @abstractmethod
    def _canaries(self, target: Target, connection: Link) -> Canaries:
        """The three canaries now."""

    @abstractmethod
    def _classes(self, waits: Mapping[str, list[Any]]) -> Iterable[str]:
        """The class of each wait that was sampled."""

    def _serving(self, target: Target, connection: Link) -> Mapping[Path, int]:
        """The folders in /proc of what serves the load's sessions, each with its arm; none where that is not here."""
        del target, connection
        return {}

    def bill(self) -> Bill:
        """A first reading of what the load's sessions use of this host; empty where the server is elsewhere."""
        from dbdyno.bench.engine.usage import Bill, used

        arms: dict[Path, int] = {}
        for target in self.targets.values() if self.watch_plan.counters and self.watching else ():
            try:
                arms |= self._serving(target, self._connection(target))
            except self.failures:
                self.drop_connections()
        return Bill(arms, used(arms))

    def _kept(self, target: Target, connection: Link) -> Mapping[int, Mapping[str, int]]:
        """By arm what one of its sessions keeps of statements (`Resources` has the names); none where nobody says."""
        del target, connection
        return {}

    def with_kept(self, reports: list[dict[str, object]]) -> list[dict[str, object]]:
        """The arms of a load's report, each with what a session keeps of statements, where the plan asks for it."""
        found: dict[int, Mapping[str, int]] = {}
        for target in self.targets.values() if self.watch_plan.statement_cache and self.watching else ():
            try:
                found |= self._kept(target, self._connection(target))
            except self.failures:
                self.drop_connections()
        return [{**report, **found.get(int(str(report["arm"])), {})} for report in reports]

    def __enter__(self) -> Self:
        if (hertz := self.watch_plan.activity_hz) > 0 or self.watch_plan.waits == "exact":
            for target in self.targets.values():
                if (watcher := self._watcher(target, round(1e9 / (hertz or 1)))) is not None:
                    watcher.start()
                    self.watchers.append(watcher)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for watcher in self.watchers:
            watcher.stop()
        self.drop_connections()

    def watch(self, on: bool) -> None:
        """Stops or resumes all watching, to measure what it costs."""
        self.watching = on
        for watcher in self.watchers:
            if on:
                watcher.resume()
            else:
                watcher.pause()

    @contextlib.contextmanager
    def stretch(self, block: int, arm: str) -> Iterator[None]:
        """A stretch of load: counters before and after; samples are this block's and arm's. `arm` is empty where arms
        alternate inside the stretch."""
        for watcher in self.watchers:
            watcher.mark(arm or None, block)
        self._count(block, arm)
        yield
        # What raises is in no block: nothing is counted then, for a server that is gone would be waited for.
        self._count(block, arm)

    def canaries(self) -> dict[str, float]:
        """The three canaries now: CPU loop, fsync, round trip, in ns; empty when not to be had."""
        target = next(iter(self.targets.values()))
        try:
            found = self._canaries(target, self._connection(target))
        except self.failures as error:
            self._lost(error)
            return {}
        values = {"cpu_ns": found.cpu_ns, "fsync_ns": found.fsync_ns, "round_trip_ns": found.round_trip_ns}
        return {name: float(value) for name, value in values.items() if value is not None}

    def write(self, folder: Path, name: str) -> None:
        """Writes this block's waits and metrics as parts and begins afresh."""
        from dbdyno import _core
        from dbdyno.bench.metrics import columns_of

        waits: dict[str, list[Any]] = {}
        for watcher in self.watchers:
            for column, values in watcher.take().items():
                waits.setdefault(column, []).extend(values)
        if waits and waits["arm"]:
            waits["class"] = list(self._classes(waits))
            _core.write_waits(folder / "waits", name, waits)
        self.metrics += self._beside_waits()
        if self.metrics:
            _core.write_metrics(folder / "metrics", name, columns_of(self.metrics))
        self.metrics = []

    def forget(self) -> None:
        """Drops what was seen of a block that does not count."""
        for watcher in self.watchers:
            watcher.take()
        self._beside_waits()
        self.metrics = []

    def _beside_waits(self) -> list[tuple[str, int, Metric]]:
        """What is known of the waits that were just taken, beside them."""
        return []

    def drop_connections(self) -> None:
        """Closes the connections that counters are read over."""
        for connection in self._connections.values():
            with contextlib.suppress(Exception):
                connection.close()
        self._connections = {}

    def _lost(self, error: Exception) -> None:
        """A connection that counters were read over is of no use; where nobody answers a new one either, the run is at
        its end."""
        self.drop_connections()
        if getattr(error, "unreachable", False):
            raise error

    def _count(self, block: int, arm: str) -> None:
        from dbdyno.bench.metrics import host_counters

        if not (self.watch_plan.counters and self.watching):
            return
        found = host_counters(clock=time.time_ns)
        for name, target in self._asked(arm).items():
            try:
                connection = self._connection(target)
                own, apart = self._counters(connection), self._by_session(connection, arm)
            except self.failures as error:
                self._lost(error)
                continue
            several = arm not in self.homes and len(self.targets) > 1
            found += [replace(one, object=f"{one.object} of {name}".strip()) for one in own] if several else own
            self.metrics += [(whose, block, metric) for whose, metric in apart]
        self.metrics += [(arm, block, metric) for metric in found]

    def _asked(self, arm: str) -> Mapping[str, Target]:
        """The server of an arm; all where arms alternate, whose counters have the server in their name then: what two
        servers have under one name is no difference."""
        home = self.homes.get(arm)
        return self.targets if home is None else {home: self.targets[home]}

    def _connection(self, target: Target) -> Link:
        name = next(name for name, known in self.targets.items() if known is target)
        if name not in self._connections:
            self._connections[name] = self._open(target)
        return self._connections[name]
