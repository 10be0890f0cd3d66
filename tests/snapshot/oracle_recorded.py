"""A fake of Oracle's driver that plays recorded rows, because no Oracle instance is available for the tests."""

from __future__ import annotations

import re
import types
from collections.abc import Callable
from typing import Any

from dbdyno.snapshot.engines.oracle.scripts import script, script_names
from dbdyno.snapshot.store.folder import Snapshot

DSN = "oracle://perf:secret@db1:1521/ORCLPDB1"
T0 = 1_790_000_000_000_000
Snap = Callable[..., Snapshot]


def instance(at_s: float, started: str = "2026-11-01 08:00:00", dbid: int = 7) -> list[tuple]:
    at_us = T0 + round(at_s * 1e6)
    return [(dbid, "2020-01-01 00:00:00", 1, "ORCL", "h1", "19.0.0.0.0", started, at_us, "PRIMARY", 3)]


def state(at_s: float = 0, grown: int = 0, **more: list[tuple]) -> dict[str, list[tuple]]:
    """Return the rows of the views, `grown` transactions after the start."""
    n = grown
    recorded = {
        "instance": instance(at_s),
        "sysstat": [
            (1, "user commits", 1, 1000 + n),
            (2, "user rollbacks", 1, 10),
            (3, "session logical reads", 8, 50_000 + 40 * n),
            (4, "physical reads", 8, 700 + n),
            (5, "physical reads cache", 8, 700 + n),
            (6, "consistent gets from cache", 8, 40_000 + 30 * n),
            (7, "db block gets from cache", 8, 10_000 + 10 * n),
            (8, "redo size", 2, 1_000_000 + 512 * n),
            (9, "db block changes", 8, 2 * n),
            (10, "table scan rows gotten", 64, 5 * n),
            (11, "table fetch by rowid", 64, 3 * n),
        ],
        "sys_time_model": [(1, "DB time", 9_000_000 + 3000 * n), (2, "DB CPU", 4_000_000 + 1000 * n)],
        "system_event": [
            (1, "log file sync", "Commit", 1000 + n, 0, 500_000 + 1500 * n, 900 + n, 400_000 + 1500 * n),
            (2, "db file sequential read", "User I/O", 700 + n, 0, 70_000 + 500 * n, 700 + n, 70_000 + 500 * n),
            (3, "SQL*Net message from client", "Idle", 9, 0, 9, 9 + n, 10**9),
        ],
        "event_histogram_micro": [("log file sync", 1024, 100 + n // 2), ("log file sync", 2048, 200 + n - n // 2)],
        "segment_statistics": [(3, 4, 70, 70, "APP", "ORDERS", None, "TABLE", 900 + 40 * n, 70 + n, 5, 2 * n, 0, 0, 3)],
        "sql": [
            (
                "a1",
                11,
                "777",
                100 + n,
                10_000 + 2000 * n,
                5000 + 900 * n,
                0,
                0,
                0,
                400 + 40 * n,
                7 + n,
                0,
                100 + n,
                100 + n,
                3,
            ),
            ("b2", 12, "778", 5, 70_000, 60_000, 0, 0, 0, 10, 0, 0, 5, 5, 1),
        ],
        "parameter": [("sga_target", "4G", "FALSE", "FALSE")],
        "sql_text": [
            ("a1", "select /*+ index(o) */ * from orders o where id = 4711 and n = 'Sue'"),
            ("b2", "begin null; end;"),
        ],
        "activity": [
            (T0 + 5_000_000, 12, "client", "P", "APP", "web", "a1", "active", "Commit", "log file sync", None, None, -1)
        ],
        "licensed_active_session_history": [],
    }
    return {**recorded, **more}


class Driver(types.ModuleType):
    """Fake of python-oracledb that answers each script with the rows recorded for its view."""

    class Error(Exception):
        """Error of the fake driver."""

    def __init__(self) -> None:
        super().__init__("oracledb")
        self.recorded = state()
        self.run: list[str] = []
        self.refused: dict[str, str] = {}
        self.healthy = True

    def connect(self, **parameters: Any) -> Connection:
        self.parameters = parameters
        return Connection(self)


class Connection:
    """A connection that is also its own cursor."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.rows: list[tuple] = []
        self.call_timeout = 0
        self.version = "19.0.0.0.0"

    def cursor(self) -> Connection:
        return self

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def execute(self, sql: str, parameters: Any = None) -> None:
        assert self.call_timeout > 0, "every call has a timeout"
        sql = re.sub(r"in \((:i\d+, )*:i\d+\)", "in (:ids)", sql)
        (name,) = [name for name in script_names() if script(name).sql == sql]
        self.driver.run.append(name)
        view = script(name).view
        if view in self.driver.refused:
            raise Driver.Error(self.driver.refused[view])
        self.rows = self.driver.recorded[view]
        assert all(len(row) == len(script(name).columns) for row in self.rows)

    def fetchall(self) -> list[tuple]:
        return self.rows

    def is_healthy(self) -> bool:
        return self.driver.healthy

    def close(self) -> None:
        pass
