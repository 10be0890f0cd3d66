"""Observations while the load runs on MariaDB: performance schema waits, counters of status and work, canaries."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbdyno.base.errors import Error
from dbdyno.bench.engine.observer import Observer
from dbdyno.bench.mariadb.address import driver
from dbdyno.bench.mariadb.session import rows
from dbdyno.bench.mariadb.status import counters
from dbdyno.bench.mariadb.watch import Watcher, program_names
from dbdyno.bench.mariadb.work_counters import index_counters, session_counters
from dbdyno.evidence.events import wait_class

if TYPE_CHECKING:
    from dbdyno.bench.canary import Canaries
    from dbdyno.bench.mariadb.prepare import PreparedPlan
    from dbdyno.bench.mariadb.server import MariaDB
    from dbdyno.bench.metrics import Metric

_THREADS = """
select a.attr_value, t.thread_os_id from performance_schema.threads t
join performance_schema.session_connect_attrs a
  on a.processlist_id = t.processlist_id and a.attr_name = 'program_name'
where a.attr_value in %s and t.thread_os_id is not null
"""
_KEPT = """
select a.attr_value, count(distinct t.thread_id), count(p.statement_id), max(l.memory_used)
from performance_schema.threads t
join performance_schema.session_connect_attrs a
  on a.processlist_id = t.processlist_id and a.attr_name = 'program_name'
left join performance_schema.prepared_statements_instances p on p.owner_thread_id = t.thread_id
left join information_schema.processlist l on l.id = t.processlist_id
where a.attr_value in %s group by a.attr_value
"""
"""Query that returns for each program name: sessions, prepared statements, and the largest session's memory."""


class MariaDBObserver(Observer["MariaDB", Any]):
    """Observer of the MariaDB servers of a run."""

    def __init__(self, ready: PreparedPlan) -> None:
        super().__init__(ready.plan.watch, {arm.arm.name: (arm.target.safe_dsn, arm.target) for arm in ready.arms})
        self.names = program_names([arm.arm.name for arm in ready.arms])
        self.failures = (driver().Error, Error, OSError)

    def _watcher(self, target: MariaDB, period_ns: int) -> Watcher | None:
        with contextlib.closing(target.connect()) as connection:
            if not target.has_performance_schema(connection):
                return None
        return Watcher(target, self.names, period_ns=period_ns)

    def _open(self, target: MariaDB) -> Any:
        return target.connect(name="dbdyno watcher")

    def _serving_processes(self, target: MariaDB, connection: Any) -> Mapping[Path, int]:
        process = target.process(connection)
        if process is None:
            return {}
        numbers = {name: at for at, name in enumerate(self.names.values())}
        with contextlib.suppress(driver().Error):  # not available on older servers or without performance_schema
            found = rows(connection, _THREADS, [list(numbers)])
            return {Path(f"/proc/{process}/task/{thread}"): numbers[name] for name, thread in found}
        return {}

    def _cache_sizes(self, target: MariaDB, connection: Any) -> Mapping[int, Mapping[str, int]]:
        numbers = {name: at for at, name in enumerate(self.names.values())}
        with contextlib.suppress(driver().Error):  # 10.4 and earlier have no table of prepared statements
            found = rows(connection, _KEPT, [list(numbers)])
            return {
                numbers[name]: {"kept_statements": round(kept / sessions), "session_bytes": int(memory or 0)}
                for name, sessions, kept, memory in found
            }
        return {}

    def _counters(self, connection: Any) -> list[Metric]:
        return counters(connection) + index_counters(connection)

    def _by_session(self, connection: Any, arm: str) -> list[tuple[str, Metric]]:
        arms = {name: own for own, name in self.names.items() if arm in ("", own)}
        return session_counters(connection, arms)

    def _canaries(self, target: MariaDB, connection: Any) -> Canaries:
        from dbdyno.bench.canary import measure_canaries

        folder = target.engine.folder if target.engine is not None else Path(tempfile.gettempdir())
        return measure_canaries(lambda: rows(connection, "select 1"), folder, target.is_embedded)

    def _classes(self, waits: Mapping[str, list[Any]]) -> Iterable[str]:
        pairs = zip(waits["event_type"], waits["event"], strict=True)
        return [wait_class("mariadb", kind, event) for kind, event in pairs]
