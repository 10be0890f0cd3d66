"""What is seen beside the load: sampled waits, counters at the borders of stretches, canaries.

It gathers columns in memory for one block and writes them as parts when the block ends. Watching never fails a run:
what cannot be read is missing, and said once, before the run.
"""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from dbdyno.bench.mariadb.address import driver
from dbdyno.bench.mariadb.session import rows
from dbdyno.bench.mariadb.status import counters
from dbdyno.bench.mariadb.watch import Watcher, program_names
from dbdyno.bench.metrics import columns_of
from dbdyno.errors import Error

if TYPE_CHECKING:
    from dbdyno.bench.mariadb.prepare import Prepared
    from dbdyno.bench.mariadb.server import MariaDB
    from dbdyno.bench.metrics import Metric

NO_WAITS = "what sessions wait for is not known: performance_schema is off, or this user may not read it"


class Observer:
    """Watches all targets of a run; entered while blocks run."""

    def __init__(self, ready: Prepared) -> None:
        self.watch_plan = ready.plan.watch
        self.targets = {arm.target.safe_dsn: arm.target for arm in ready.arms}
        self.names = program_names([arm.arm.name for arm in ready.arms])
        self.watchers: list[Watcher] = []
        self.metrics: list[tuple[str, int, Metric]] = []
        self.watching = True
        self._connections: dict[str, Any] = {}

    def __enter__(self) -> Self:
        if (hertz := self.watch_plan.activity_hz) > 0:
            for target in self.targets.values():
                with contextlib.closing(target.connect()) as connection:
                    if not target.has_performance_schema(connection):
                        continue
                watcher = Watcher(target, self.names, period_ns=round(1e9 / hertz))
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
        """A stretch of load: counters before and after; samples are this block's. `arm` is empty where arms alternate
        inside the stretch."""
        for watcher in self.watchers:
            watcher.mark(block)
        self._count(block, arm)
        try:
            yield
        finally:
            self._count(block, arm)

    def canaries(self) -> dict[str, float]:
        """The three canaries now: CPU loop, fsync, round trip, in ns; empty when not to be had."""
        from dbdyno.bench.canary import measured

        target = next(iter(self.targets.values()))
        folder = target.engine.folder if target.engine is not None else Path(tempfile.gettempdir())
        try:
            connection = self._connection(target)
            found = measured(lambda: rows(connection, "select 1"), folder, target.owned)
        except (driver().Error, Error, OSError):
            self.drop_connections()
            return {}
        values = {"cpu_ns": found.cpu_ns, "fsync_ns": found.fsync_ns, "round_trip_ns": found.round_trip_ns}
        return {name: float(value) for name, value in values.items() if value is not None}

    def write(self, folder: Path, name: str) -> None:
        """Writes this block's waits and metrics as parts and begins afresh."""
        from dbdyno import _core
        from dbdyno.evidence.events import wait_class

        waits: dict[str, list[Any]] = {}
        for watcher in self.watchers:
            for column, values in watcher.take().items():
                waits.setdefault(column, []).extend(values)
        if waits and waits["arm"]:
            pairs = zip(waits["event_type"], waits["event"], strict=True)
            waits["class"] = [wait_class("mariadb", kind, event) for kind, event in pairs]
            _core.write_waits(folder / "waits", name, waits)
        if self.metrics:
            _core.write_metrics(folder / "metrics", name, columns_of(self.metrics))
        self.metrics = []

    def forget(self) -> None:
        """Drops what was seen of a block that does not count."""
        for watcher in self.watchers:
            watcher.take()
        self.metrics = []

    def drop_connections(self) -> None:
        """Closes the connections that counters are read over."""
        for connection in self._connections.values():
            with contextlib.suppress(Exception):
                connection.close()
        self._connections = {}

    def _count(self, block: int, arm: str) -> None:
        from dbdyno.bench.metrics import host_counters

        if not (self.watch_plan.counters and self.watching):
            return
        found = host_counters(clock=time.time_ns)
        for target in self.targets.values():
            try:
                found += counters(self._connection(target))
            except (driver().Error, Error, OSError):
                self.drop_connections()
        self.metrics += [(arm, block, metric) for metric in found]

    def _connection(self, target: MariaDB) -> Any:
        name = target.safe_dsn
        if name not in self._connections:
            self._connections[name] = target.connect(name="dbdyno watcher")
        return self._connections[name]
