"""Observations while the load runs: sampled waits, counters before and after each stretch of load, and canaries.

An observer collects columns in memory for one block and writes them as evidence parts when the block ends. Reading
problems do not fail a run: values that cannot be read are missing. Only a server that no longer answers ends the run.
"""

from __future__ import annotations

import contextlib
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeVar

from dbdyno.base.errors import Error

if TYPE_CHECKING:
    from dbdyno.bench.canary import Canaries
    from dbdyno.bench.engine.usage import UsageReading
    from dbdyno.bench.metrics import Metric
    from dbdyno.study.plan.plan import Watch


class Watcher(Protocol):
    """Sampler of the load's sessions that runs in a separate thread."""

    def start(self) -> None: ...
    def stop(self) -> None: ...
    def pause(self) -> None: ...
    def resume(self) -> None: ...
    def mark(self, arm: str | None, block: int) -> None: ...
    def take(self) -> dict[str, list[Any]]: ...


class Connection(Protocol):
    """Connection over which counters are read."""

    def close(self) -> None: ...


def volumes_of(target: Any) -> list[Metric]:
    """Return counters of the modelled devices below a server; empty without devices or if dbdyno did not start it."""
    engine = getattr(target, "engine", None)
    return engine.volumes.metrics() if engine is not None and engine.volumes else []


Target = TypeVar("Target")
Link = TypeVar("Link", bound=Connection)


class Observer(ABC, Generic[Target, Link]):
    """Observer of all servers of a run; a context manager around the run's blocks."""

    failures: tuple[type[Exception], ...] = (Error, OSError)
    """Exceptions that a reading may raise; the reading is then missing, and the connection is reopened."""

    def __init__(self, watch: Watch, homes: Mapping[str, tuple[str, Target]]) -> None:
        """Create an observer.

        Args:
            watch: What the plan says should be observed.
            homes: Server name and server of each arm, by the arm's name.
        """
        self.watch_plan = watch
        self.targets = dict(homes.values())
        self.homes = {arm: name for arm, (name, _) in homes.items()}
        self.watchers: list[Watcher] = []
        self.metrics: list[tuple[str, int, Metric]] = []
        self.watching = True
        self._connections: dict[str, Link] = {}

    @abstractmethod
    def _watcher(self, target: Target, period_ns: int) -> Watcher | None:
        """Return a sampler of this server's sessions, or None if they cannot be observed."""

    @abstractmethod
    def _open(self, target: Target) -> Link:
        """Open a connection for reading counters."""

    @abstractmethod
    def _counters(self, connection: Link) -> list[Metric]:
        """Read the server's counters now."""

    def _by_session(self, connection: Link, arm: str) -> list[tuple[str, Metric]]:
        """Return what the server counted for the load's sessions, as (arm name, value).

        The result is empty if the server has no current counters by session.

        Args:
            connection: Connection to the server.
            arm: Name of the only arm to return; empty for all arms.
        """
        del connection, arm
        return []

    @abstractmethod
    def _canaries(self, target: Target, connection: Link) -> Canaries:
        """Measure the canaries now."""

    @abstractmethod
    def _classes(self, waits: Mapping[str, list[Any]]) -> Iterable[str]:
        """Return the wait class of each sampled wait."""

    def _serving_processes(self, target: Target, connection: Link) -> Mapping[Path, int]:
        """Return the /proc folders of the processes or threads that serve the load's sessions, with their arm's number.

        The result is empty if the server is not on this machine.
        """
        del target, connection
        return {}

    def first_usage(self) -> UsageReading:
        """Take a first reading of the host resources used by the load's sessions; empty if the server is elsewhere."""
        from dbdyno.bench.engine.usage import UsageReading, read_usage

        arms: dict[Path, int] = {}
        for target in self.targets.values() if self.watch_plan.counters and self.watching else ():
            try:
                arms |= self._serving_processes(target, self._connection(target))
            except self.failures as error:
                self._drop_connections(error)
        return UsageReading(arms, read_usage(arms))

    def _cache_sizes(self, target: Target, connection: Link) -> Mapping[int, Mapping[str, int]]:
        """Return the size of one session's statement cache for each arm, by the arm's number.

        The result is empty if the server does not report it. `Resources` has the names of the values.
        """
        del target, connection
        return {}

    def with_cache_sizes(self, reports: list[dict[str, object]]) -> list[dict[str, object]]:
        """Return a load's arms, with the sizes of their sessions' statement caches if the plan asks for them."""
        found: dict[int, Mapping[str, int]] = {}
        for target in self.targets.values() if self.watch_plan.statement_cache and self.watching else ():
            try:
                found |= self._cache_sizes(target, self._connection(target))
            except self.failures as error:
                self._drop_connections(error)
        return [{**report, **found.get(int(str(report["arm"])), {})} for report in reports]

    def __enter__(self) -> Self:
        if (hertz := self.watch_plan.activity_hz) > 0 or self.watch_plan.waits in ("exact", "read"):
            for target in self.targets.values():
                if (watcher := self._watcher(target, round(1e9 / (hertz or 1)))) is not None:
                    watcher.start()
                    self.watchers.append(watcher)
        return self

    def __exit__(self, *_: object) -> None:
        for watcher in self.watchers:
            watcher.stop()
        self.drop_connections()

    def set_watching(self, on: bool) -> None:
        """Resume (`on`) or pause all observation, to measure its cost."""
        self.watching = on
        for watcher in self.watchers:
            if on:
                watcher.resume()
            else:
                watcher.pause()

    @contextlib.contextmanager
    def stretch(self, block: int, arm: str) -> Iterator[None]:
        """Return the context of a stretch of load: it reads counters before and after, and labels samples.

        Args:
            block: Number of the block.
            arm: Name of the arm; empty if arms alternate within the stretch.
        """
        for watcher in self.watchers:
            watcher.mark(arm or None, block)
        self._count(block, arm)
        yield
        # After an error the block does not count, so nothing is read: reading would wait for a server that is gone.
        self._count(block, arm)

    def canaries(self) -> dict[str, float]:
        """Measure the canaries now (`Canaries`); return an empty dictionary if that fails.

        Raises:
            Error: The server can no longer be reached; its type is one of `failures`.
        """
        target = next(iter(self.targets.values()))
        try:
            found = self._canaries(target, self._connection(target))
        except self.failures as error:
            self._drop_connections(error)
            return {}
        places = ("busy_ratio", "pulls", "searches", "searches_late")
        values = {name: getattr(found, name) for name in ("cpu_ns", "fsync_ns", "wake_ns", "round_trip_ns", *places)}
        return {name: float(value) for name, value in values.items() if value is not None}

    def write(self, folder: Path, name: str) -> None:
        """Write this block's waits and metrics as parts and start with empty ones."""
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
        """Discard the observations of a block that does not count."""
        for watcher in self.watchers:
            watcher.take()
        self._beside_waits()
        self.metrics = []

    def _beside_waits(self) -> list[tuple[str, int, Metric]]:
        """Return metrics that belong to the waits just fetched, as (arm, block, metric)."""
        return []

    def drop_connections(self) -> None:
        """Close the connections over which counters are read."""
        for connection in self._connections.values():
            with contextlib.suppress(Exception):
                connection.close()
        self._connections = {}

    def _drop_connections(self, error: Exception) -> None:
        """Drop the connections after an error, and raise the error if the server cannot be reached at all."""
        self.drop_connections()
        if getattr(error, "unreachable", False):
            raise error

    def _count(self, block: int, arm: str) -> None:
        from dbdyno.bench.metrics import host_counters

        if not (self.watch_plan.counters and self.watching):
            return
        found = host_counters(clock=time.time_ns)
        for name, target in self._servers_of(arm).items():
            try:
                connection = self._connection(target)
                own, apart = self._counters(connection) + volumes_of(target), self._by_session(connection, arm)
            except self.failures as error:
                self._drop_connections(error)
                continue
            several = arm not in self.homes and len(self.targets) > 1
            found += [replace(one, object=f"{one.object} of {name}".strip()) for one in own] if several else own
            self.metrics += [(whose, block, metric) for whose, metric in apart]
        self.metrics += [(arm, block, metric) for metric in found]

    def _servers_of(self, arm: str) -> Mapping[str, Target]:
        """Return the servers to read counters from: that of the arm, or all servers if arms alternate.

        With several servers, each counter's object then includes the server's name, so that counters of two servers are
        never subtracted from each other.
        """
        home = self.homes.get(arm)
        return self.targets if home is None else {home: self.targets[home]}

    def _connection(self, target: Target) -> Link:
        name = next(name for name, known in self.targets.items() if known is target)
        if name not in self._connections:
            self._connections[name] = self._open(target)
        return self._connections[name]
