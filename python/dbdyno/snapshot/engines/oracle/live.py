"""Oracle's side of the live screen: statistics of the instance, and sampled sessions.

V$SQLSTATS is not read, because adding up a large shared pool every few seconds would cost as much as what it measures.
"""

from __future__ import annotations

import time
from typing import Any

from dbdyno.base.errors import SnapshotError
from dbdyno.snapshot.engines.live import Live, Reading
from dbdyno.snapshot.engines.oracle.connection import address, connect, driver, first_line
from dbdyno.snapshot.engines.oracle.sampler import Sampler
from dbdyno.snapshot.engines.oracle.scripts import script
from dbdyno.snapshot.engines.view import Options

_COUNTERS = {
    "user commits": "commits",
    "user rollbacks": "rollbacks",
    "execute count": "executions",
    "session logical reads": "logical",
    "physical reads": "physical",
    "db block changes": "changes",
    "redo size": "redo",
    "parse count (hard)": "hard_parses",
}


class OracleLive(Live):
    """Oracle's side of the live screen."""

    engine = "oracle"
    noun = "instance"
    lines = (
        ("commits", "commits", "per_s"),
        ("rollbacks", "rollbacks", "per_s"),
        ("executions", "executions", "per_s"),
        ("logical reads", "logical", "per_s"),
        ("physical reads", "physical", "per_s"),
        ("block changes", "changes", "per_s"),
        ("redo", "redo", "bytes_per_s"),
        ("hard parses", "hard_parses", "per_s"),
    )
    lacks = ("top SQL is not shown here: summing V$SQLSTATS costs too much; see dbdyno snap report",)

    def __init__(self, dsn: str, options: Options) -> None:
        self._address = address(dsn)
        self._connection: Any = connect(self._address, options.statement_timeout_ms)
        self.title = f"{self._address.name}  Oracle {self._connection.version}"

    def read(self) -> Reading:
        """Take a reading now.

        Raises:
            SnapshotError: The instance is gone.
        """
        try:
            with self._connection.cursor() as cursor:
                cursor.arraysize = 1000
                cursor.execute(script("sysstat").sql)
                rows = cursor.fetchall()
        except (driver().Error, OSError) as error:
            raise self._gone(first_line(error), self._address.safe) from error
        found = {_COUNTERS[name]: float(value) for _, name, _, value in rows if name in _COUNTERS}
        logical, physical = found.get("logical"), found.get("physical")
        hits = None if logical is None or physical is None else logical - physical
        return Reading(time.monotonic_ns(), {**found, "hits": hits, "reads": physical})

    def sampler(self, period_s: float) -> Sampler:
        """Return a sampler of the sessions with its own connection."""
        return Sampler(self._address, period_ns=round(period_s * 1e9))

    def plan(self, pid: int) -> list[str]:
        """Raise an error, because plans are not read on Oracle.

        Raises:
            SnapshotError: Always.
        """
        raise SnapshotError("dbdyno cannot read the plans of Oracle sessions")

    def cancel(self, pid: int) -> bool:
        """Raise an error, because dbdyno cannot cancel statements of Oracle sessions.

        Raises:
            SnapshotError: Always.
        """
        raise SnapshotError("dbdyno cannot cancel statements of Oracle sessions")


open_live = OracleLive
