"""What is seen beside the load: sampled waits, counters at the borders of stretches, canaries.

It gathers columns in memory for one block and writes them as parts when the block ends. Watching
never fails a run: what cannot be read is missing, and said once.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from dbdyno.bench.postgres.prepare import Prepared

if TYPE_CHECKING:
    import psycopg

    from dbdyno.bench.metrics import Metric
    from dbdyno.bench.postgres.backends import Bill
    from dbdyno.bench.postgres.server import Postgres
    from dbdyno.bench.postgres.watch import Watcher

    Connection = psycopg.Connection[tuple[Any, ...]]


class Observer:
    """Watches all targets of a run; entered while blocks run."""

    def __init__(self, ready: Prepared, stop: Callable[[], bool] | None = None) -> None:
        """`stop`: asked while the server is silent; where it says yes, nothing more is waited for."""
        self._stop = stop
        self.watch_plan = ready.plan.watch
        self.arms = [arm.arm.name for arm in ready.arms]
        self.targets: dict[str, Postgres] = {a.target.safe_dsn: a.target for a in ready.arms}
        self.watchers: list[Watcher] = []
        self.metrics: list[tuple[str, int, Metric]] = []
        self.statements: set[str] = set()
        self.watching = True
        self._connections: dict[str, Connection] = {}

    def __enter__(self) -> Self:
        from dbdyno.bench.postgres.watch import Watcher, application_names

        hertz = self.watch_plan.activity_hz
        if hertz > 0:
            for target in self.targets.values():
                period = round(1e9 / hertz)
                names = application_names(self.arms)
                watcher = Watcher(target, self.arms, period_ns=period, names=names)
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
        """A stretch of load: counters before and after; samples are this block's and arm's.

        `arm` is empty where arms alternate inside the stretch.
        """
        for watcher in self.watchers:
            watcher.mark(arm or None, block)
        self._count(block, arm)
        try:
            yield
        finally:
            self._count(block, arm)

    def bill(self) -> Bill:
        """A first reading of what the load's sessions use of this host; empty where the server is elsewhere."""
        import psycopg

        from dbdyno.bench.postgres.backends import Bill, sessions_of, used
        from dbdyno.bench.postgres.watch import application_names
        from dbdyno.errors import TargetError

        numbers = {name: at for at, name in enumerate(application_names(self.arms).values())}
        arms: dict[int, int] = {}
        for target in self.targets.values() if self.watch_plan.counters and self.watching else ():
            try:
                connection = self._connection(target)
                if not target.pooled and target.is_here(connection):
                    arms |= sessions_of(connection, numbers)
            except (psycopg.Error, TargetError):
                self.drop_connections()
        return Bill(arms, used(list(arms)))

    @contextlib.contextmanager
    def apart(self) -> Iterator[None]:
        """While the engine is restarted: no connection of ours is in the way."""
        self.drop_connections()
        yield

    def canaries(self) -> dict[str, float]:
        """The three canaries now: CPU loop, fsync, round trip, in ns; empty when not to be had."""
        import psycopg

        from dbdyno.bench.canary import canaries, canary_folder
        from dbdyno.errors import TargetError

        target = next(iter(self.targets.values()))
        try:
            connection = self._connection(target)
            folder, on_data_disk = canary_folder(target, connection)
            found = canaries(connection, folder, on_data_disk)
        except (psycopg.Error, TargetError, OSError):
            self.drop_connections()
            return {}
        values = {
            "cpu_ns": found.cpu_ns,
            "fsync_ns": found.fsync_ns,
            "round_trip_ns": found.round_trip_ns,
        }
        return {name: float(value) for name, value in values.items() if value is not None}

    def write(self, folder: Path, name: str) -> None:
        """Writes this block's waits and metrics as parts and begins afresh."""
        from dbdyno import _core
        from dbdyno.bench.metrics import columns_of
        from dbdyno.evidence.events import wait_class

        waits: dict[str, list[Any]] = {}
        for watcher in self.watchers:
            for column, values in watcher.take().items():
                waits.setdefault(column, []).extend(values)
        if waits and waits["arm"]:
            pairs = zip(waits["event_type"], waits["event"], waits["object"], strict=True)
            waits["class"] = [
                wait_class("postgresql", kind, event, background=thing != "client backend")
                for kind, event, thing in pairs
            ]
            _core.write_waits(folder / "waits", name, waits)
        if self.metrics:
            _core.write_metrics(folder / "metrics", name, columns_of(self.metrics))
        self.metrics = []

    def forget(self) -> None:
        """Drops what was seen of a block that does not count."""
        for watcher in self.watchers:
            watcher.take()
        self.metrics = []

    def write_statements(self, folder: Path) -> None:
        """Writes the texts of the statements whose counters were read, once, at the end."""
        from dbdyno.bench.postgres.statements import statement_texts
        from dbdyno.evidence.tables import write_table

        if not self.watch_plan.statements:
            return
        texts: dict[str, str] = {}
        for target in self.targets.values():
            texts |= statement_texts(self._connection(target), sorted(self.statements))
        columns = {"statement": list(texts), "text": list(texts.values())}
        write_table(folder / "statements.parquet", columns)

    def drop_connections(self) -> None:
        """Closes the connections that counters are read over."""
        for connection in self._connections.values():
            connection.close()
        self._connections = {}

    def _count(self, block: int, arm: str) -> None:
        import psycopg

        from dbdyno.bench.metrics import counters, host_counters
        from dbdyno.bench.postgres.statements import statement_counters
        from dbdyno.errors import TargetError

        if not (self.watch_plan.counters and self.watching):
            return
        found = host_counters(clock=time.time_ns)
        for target in self.targets.values():
            try:
                found += counters(self._connection(target))
                if self.watch_plan.statements:
                    found += statement_counters(self._connection(target))
            except (psycopg.Error, TargetError):
                self.drop_connections()
        self.metrics += [(arm, block, metric) for metric in found]
        self.statements |= {m.object for m in found if m.object_type == "statement"}

    def _connection(self, target: Postgres) -> Connection:
        name = target.safe_dsn
        if name not in self._connections or self._connections[name].closed:
            self._connections[name] = target.connect(application_name="dbdyno watcher", stop=self._stop)
        return self._connections[name]
