"""An embedded PostgreSQL under power cuts: its data folder is on the mounted device, with page checksums."""

from __future__ import annotations

import contextlib
import itertools
import re
from collections.abc import Callable
from pathlib import Path

from dbdyno.bench.postgres.embedded import EmbeddedPostgres
from dbdyno.bench.postgres.setting_values import SettingValue
from dbdyno.cuts.engine import BrokenEngineError, last_words
from dbdyno.cuts.ledger import Content, Ledger, payload_of
from dbdyno.cuts.servers import ServerCuts

TABLES = """
create table rows (number bigint, session int not null, payload text not null, primary key (number));
create index rows_payload on rows (payload);
create table counts (session int primary key, n bigint not null);
"""
CHECKPOINT_EVERY = 25
"""Number of commits of the first session between two checkpoints, so that recovery begins at recent pages."""
SETTINGS: dict[str, SettingValue] = {
    "shared_buffers": "16MB",
    "max_connections": 80,
    "checkpoint_timeout": "30s",
    "max_wal_size": "64MB",
}
AMCHECK = """
select c.relname, bt_index_check(c.oid, true) from pg_index i join pg_class c on c.oid = i.indexrelid
where c.relname in ('rows_pkey', 'rows_payload', 'counts_pkey')
"""
REDO = re.compile(r"redo starts at ([0-9A-F]+)/([0-9A-F]+)")
DONE = re.compile(r"redo done at ([0-9A-F]+)/([0-9A-F]+)")


class _MountedPostgres(EmbeddedPostgres):
    """An embedded server that reads its state from the folder below the mounted one.

    This process serves the mounted folder: if it waited for the folder when it is killed, nobody would answer.
    """

    back = Path()

    def _ready(self) -> bool:
        if self.back == Path():
            return super()._ready()
        try:
            lines = (self.back / "postmaster.pid").read_text().splitlines()
        except OSError:
            return False
        return len(lines) > 7 and lines[0] == str(self.pid) and lines[7].strip() == "ready"


class PostgresCuts(ServerCuts[_MountedPostgres]):
    """An embedded PostgreSQL as a `CutEngine`."""

    _has_amcheck = False

    def create(self) -> None:
        """Create a new cluster on this machine's disk, and move it to the folder below the mount."""
        import psycopg

        self.close()
        settings: dict[str, SettingValue] = {**SETTINGS, **self._plan.settings}
        self._engine = _MountedPostgres(None, settings, guardian=self._guardian, initdb=["--data-checksums"])
        self._engine.start()
        with psycopg.connect(**self._engine.conninfo(), autocommit=True) as connection:  # type: ignore[arg-type]
            connection.execute(TABLES)
            for session in range(self._plan.sessions):
                connection.execute("insert into counts values (%s, 0)", (session,))
            with contextlib.suppress(psycopg.Error):
                connection.execute("create extension amcheck")
                self._has_amcheck = True
        self._engine.stop()
        self._move_below()
        self._engine.back = self.back

    def _session(self, session: int, numbers: itertools.count[int], ledger: Ledger, is_off: Callable[[], bool]) -> None:
        """Commit rows until the power is off; the first session also takes checkpoints."""
        import psycopg

        with (
            contextlib.suppress(psycopg.Error),
            contextlib.closing(psycopg.connect(**self._server.conninfo(), autocommit=True)) as connection,  # type: ignore[arg-type]
        ):
            for done in itertools.count(1):
                number = next(numbers)
                ledger.try_one(number)
                connection.execute("begin")
                connection.execute("insert into rows values (%s, %s, %s)", (number, session, payload_of(number)))
                connection.execute("update counts set n = n + 1 where session = %s", (session,))
                connection.execute("commit")
                if is_off():
                    return
                ledger.acknowledge(number)
                if session == 0 and done % CHECKPOINT_EVERY == 0:
                    connection.execute("checkpoint")

    def content(self) -> Content:
        """Return all rows, read from the table without an index, and the results of checksums and amcheck."""
        import psycopg

        try:
            with psycopg.connect(**self._server.conninfo(), autocommit=True, connect_timeout=10) as connection:  # type: ignore[arg-type]
                connection.execute("set enable_indexscan = off")
                connection.execute("set enable_indexonlyscan = off")
                connection.execute("set enable_bitmapscan = off")
                rows = connection.execute("select number, session, payload from rows").fetchall()
                counts: dict[int, int] = dict(connection.execute("select session, n from counts").fetchall())
                if self._has_amcheck:
                    connection.execute(AMCHECK)
        except psycopg.OperationalError as error:
            raise BrokenEngineError(last_words(str(error))) from error
        except psycopg.Error as error:
            return Content(corrupt=last_words(str(error).splitlines()[0]))
        return Content([(row[0], row[2]) for row in rows], counts, [row[1] for row in rows])

    def log_bytes(self) -> int:
        """Return how much of the log the last recovery replayed [bytes]."""
        said = self._server.log_since_start()
        begin, end = REDO.search(said), DONE.search(said)
        return max(0, _position(end) - _position(begin)) if begin and end else 0


def _position(found: re.Match[str]) -> int:
    """Return the log position that a pattern matches."""
    return (int(found[1], 16) << 32) + int(found[2], 16)
