"""Observations while the load runs on PostgreSQL: pg_stat_activity, counters, resources per statement, canaries."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbdyno.base.errors import Error, TargetError
from dbdyno.bench.engine.observer import Observer
from dbdyno.bench.postgres.exact_waits import AUTO, READ, RECORDED, SAMPLED, ExactWatcher
from dbdyno.evidence.events import wait_class

if TYPE_CHECKING:
    import psycopg

    from dbdyno.bench.canary import Canaries
    from dbdyno.bench.metrics import Metric
    from dbdyno.bench.postgres.prepare import PreparedPlan
    from dbdyno.bench.postgres.server import Postgres
    from dbdyno.bench.postgres.watch import Watcher

    Connection = psycopg.Connection[tuple[Any, ...]]


_PIDS = "select pid, application_name from pg_stat_activity where application_name = any(%s)"


class PostgresObserver(Observer["Postgres", "Connection"]):
    """Observer of the PostgreSQL servers of a run."""

    def __init__(self, ready: PreparedPlan, stop: Callable[[], bool] | None = None) -> None:
        """Create an observer; `stop` is called while a server is silent, and waiting ends when it returns True."""
        import psycopg

        super().__init__(ready.plan.watch, {arm.arm.name: (arm.target.safe_dsn, arm.target) for arm in ready.arms})
        self.failures = (psycopg.Error, TargetError, OSError)
        self.arms = [arm.arm.name for arm in ready.arms]
        self.statements: set[str] = set()
        self._stop = stop

    @contextlib.contextmanager
    def disconnected(self) -> Iterator[None]:
        """Close the observer's connections while the context lasts, so that they do not hinder an engine's restart."""
        self.drop_connections()
        yield

    def write_statements(self, folder: Path) -> None:
        """Write the texts of the statements whose counters were read."""
        from dbdyno.bench.postgres.statements import statement_texts
        from dbdyno.evidence.tables import write_table

        if not self.watch_plan.statements:
            return
        texts: dict[str, str] = {}
        for target in self.targets.values():
            texts |= statement_texts(self._connection(target), sorted(self.statements))
        columns = {"statement": list(texts), "text": list(texts.values())}
        write_table(folder / "statements.parquet", columns)

    def _serving_processes(self, target: Postgres, connection: Connection) -> Mapping[Path, int]:
        from dbdyno.bench.postgres.watch import application_names

        if target.pooled or not target.is_here(connection):
            return {}
        numbers = {name: at for at, name in enumerate(application_names(self.arms).values())}
        rows = connection.execute(_PIDS, [list(numbers)]).fetchall()
        return {Path("/proc", str(pid)): numbers[name] for pid, name in rows}

    def _beside_waits(self) -> list[tuple[str, int, Metric]]:
        exact = (watcher for watcher in self.watchers if isinstance(watcher, ExactWatcher))
        return [metric for watcher in exact for metric in watcher.take_metrics()]

    def _local_connection(self, target: Postgres) -> Connection:
        """Return a connection to a server that runs on this machine.

        Raises:
            TargetError: The server is on another machine or behind a pooler.
        """
        connection = self._connection(target)
        if target.pooled or not target.is_here(connection):
            raise TargetError(
                f"{self.watch_plan.waits} waits need a server on this machine and a connection without a pooler",
                where=target.safe_dsn,
                next_step="run dbdyno on the server's machine, or leave out waits under [watch]",
            )
        return connection

    def _cache_sizes(self, target: Postgres, connection: Connection) -> Mapping[int, Mapping[str, int]]:
        from dbdyno.bench.postgres.statement_cache import read_session_cache
        from dbdyno.bench.postgres.watch import application_names

        if target.engine is None:
            return {}
        numbers = {name: at for at, name in enumerate(application_names(self.arms).values())}
        pids = {numbers[name]: pid for pid, name in connection.execute(_PIDS, [list(numbers)]).fetchall()}
        found = {arm: read_session_cache(connection, target.engine, pid) for arm, pid in pids.items()}
        return {arm: kept.as_row() for arm, kept in found.items() if kept is not None}

    def _watcher(self, target: Postgres, period_ns: int) -> Watcher | ExactWatcher:
        from dbdyno.bench.postgres.watch import Watcher, application_names

        waits = self.watch_plan.waits
        if waits == AUTO:
            waits = READ if self._may_read(target) else SAMPLED
        if waits in RECORDED:
            return ExactWatcher(lambda: self._local_connection(target), application_names(self.arms), waits)
        return Watcher(target, self.arms, period_ns=period_ns, names=application_names(self.arms))

    def _may_read(self, target: Postgres) -> bool:
        """Return True if the memory of a server on this machine may be read."""
        from dbdyno import _core

        refusals: tuple[type[Exception], ...] = (*self.failures, Error)
        try:
            connection = self._connection(target)
            if target.pooled or not target.is_here(connection):
                return False
            _core.read_cost(connection.info.backend_pid)
        except refusals:
            return False
        return True

    def _open(self, target: Postgres) -> Connection:
        return target.connect(application_name="dbdyno watcher", stop=self._stop)

    def _connection(self, target: Postgres) -> Connection:
        connection = super()._connection(target)
        if connection.closed:
            self.drop_connections()
            connection = super()._connection(target)
        return connection

    def _counters(self, connection: Connection) -> list[Metric]:
        from dbdyno.bench.metrics import counters
        from dbdyno.bench.postgres.statements import statement_counters

        found = counters(connection)
        if self.watch_plan.statements:
            found += statement_counters(connection)
            self.statements |= {m.object for m in found if m.object_type == "statement"}
        return found

    def _canaries(self, target: Postgres, connection: Connection) -> Canaries:
        from dbdyno.bench.canary import canaries, canary_folder

        folder, on_data_disk = canary_folder(target, connection)
        return canaries(connection, folder, on_data_disk)

    def _classes(self, waits: Mapping[str, list[Any]]) -> Iterable[str]:
        columns = zip(waits["event_type"], waits["event"], waits["object"], strict=True)
        return [
            wait_class("postgresql", kind, event, background=thing != "client backend")
            for kind, event, thing in columns
        ]
