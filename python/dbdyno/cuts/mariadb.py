"""An embedded MariaDB under power cuts: its data folder is on the mounted device."""

from __future__ import annotations

import contextlib
import itertools
import re
from collections.abc import Callable
from typing import Any

from dbdyno.bench.mariadb.address import driver
from dbdyno.bench.mariadb.embedded import EmbeddedMariaDB
from dbdyno.bench.mariadb.session import open_session, rows
from dbdyno.cuts.engine import BrokenEngineError
from dbdyno.cuts.ledger import Content, Ledger, payload_of
from dbdyno.cuts.servers import ServerCuts

TABLES = (
    "create table counts (session int primary key, n bigint not null) engine=innodb",
    "create table entries (number bigint primary key, session int not null, payload varchar(200) not null,"
    " key (payload), foreign key (session) references counts (session)) engine=innodb",
)
ORPHANS = (
    "select count(*) from entries force index (primary) left join counts on counts.session = entries.session"
    " where counts.session is null"
)
SETTINGS = {
    "innodb_buffer_pool_size": "16M",
    "innodb_log_file_size": "4M",
    "innodb_max_dirty_pages_pct": "0",
    "innodb_use_native_aio": "0",
    "performance_schema": "OFF",
    "max_connections": "80",
    "ssl": "OFF",
}
"""Settings with which changed pages are written continuously, so that some writes are incomplete at a cut. TLS is off,
because a server from 11.4 on creates a key for it at each start, which takes many seconds."""
REDO = re.compile(r"checkpoint LSN=(\d+)")
END = re.compile(r"End of log at LSN=(\d+)")


class _MountedMariaDB(EmbeddedMariaDB):
    """An embedded MariaDB whose start-up check, once the database exists, is `select 1`, which reads no file.

    This process serves the mounted folder of the server, so it would wait for itself if the check read a file there.
    """

    has_database = False

    def _ready(self) -> bool:
        if not self.has_database:
            return super()._ready()
        try:
            with contextlib.closing(open_session(self.parameters())) as connection:
                rows(connection, "select 1")
        except driver().Error:
            return False
        return True


class MariaDBCuts(ServerCuts[_MountedMariaDB]):
    """An embedded MariaDB as a `CutEngine`."""

    def create(self) -> None:
        """Create a new data folder on this machine's disk, and move it to the folder below the mount."""
        self.close()
        self._engine = engine = _MountedMariaDB({**SETTINGS, **self._plan.settings}, guardian=self._guardian)
        engine.start()
        with contextlib.closing(self._connect()) as connection:
            self.version = str(rows(connection, "select version()")[0][0]).split("-")[0]
            for statement in TABLES:
                rows(connection, statement)
            for session in range(self._plan.sessions):
                rows(connection, "insert into counts values (%s, 0)", (session,))
        engine.stop()
        self._move_below()
        engine.has_database = True

    def _session(self, session: int, numbers: itertools.count[int], ledger: Ledger, is_off: Callable[[], bool]) -> None:
        """Commit rows until the power is off."""
        with contextlib.suppress(driver().Error, OSError), contextlib.closing(self._connect()) as connection:
            while True:
                number = next(numbers)
                ledger.record_attempt(number)
                rows(connection, "begin")
                rows(connection, "insert into entries values (%s, %s, %s)", (number, session, payload_of(number)))
                rows(connection, "update counts set n = n + 1 where session = %s", (session,))
                rows(connection, "commit")
                if is_off():
                    return
                ledger.acknowledge(number)

    def content(self) -> Content:
        """Return all rows in the clustered index, the errors of `check table`, and violations of the foreign key."""
        try:
            with contextlib.closing(self._connect()) as connection:
                problems = [
                    str(row[3])
                    for table in ("entries", "counts")
                    for row in rows(connection, f"check table {table}")
                    if row[2] in ("error", "warning") or (row[2] == "status" and row[3] != "OK")
                ]
                ((orphans,),) = rows(connection, ORPHANS)
                problems += [f"{orphans} rows violate the foreign key"] if orphans else []
                found = rows(connection, "select number, session, payload from entries force index (primary)")
                counts = dict(rows(connection, "select session, n from counts"))
        except (driver().OperationalError, driver().InterfaceError, OSError) as error:
            raise BrokenEngineError(str(error)) from error
        except driver().Error as error:
            return Content(corrupt=str(error))
        return Content([(row[0], row[2]) for row in found], counts, [row[1] for row in found], "; ".join(problems))

    def log_bytes(self) -> int:
        """Return how many bytes of the log after the checkpoint the last recovery read."""
        said = self._server.log_since_start()
        begin, end = REDO.search(said), END.search(said)
        return max(0, int(end[1]) - int(begin[1])) if begin and end else 0

    def _connect(self) -> Any:
        return open_session(self._server.parameters())
