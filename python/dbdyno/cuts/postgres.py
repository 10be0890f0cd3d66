"""An embedded PostgreSQL under power cuts: its data folder is on the mounted device, with page checksums."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

from dbdyno.base.errors import TargetError
from dbdyno.bench.guardian import Guardian
from dbdyno.bench.postgres.embedded import EmbeddedPostgres
from dbdyno.bench.postgres.setting_values import SettingValue
from dbdyno.bench.undo import server_processes
from dbdyno.cuts.engine import BrokenEngineError, wait_for_cut
from dbdyno.cuts.ledger import Content, Ledger, payload_of
from dbdyno.cuts.plan import CutPlan

TABLES = """
create table rows (number bigint, session int not null, payload text not null, primary key (number));
create index rows_payload on rows (payload);
create table counts (session int primary key, n bigint not null);
"""
CHECKPOINT_EVERY = 25
"""Commits of the first session between two checkpoints: pages are written where recovery begins."""
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
KILL_S = 10.0


class _MountedPostgres(EmbeddedPostgres):
    """An embedded server that is asked for its state in the folder below the mounted one.

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


class PostgresCuts:
    """An embedded PostgreSQL as a `CutEngine`."""

    changes_least, changes_most, recovery_changes_most = 20, 3000, 100

    def __init__(self, plan: CutPlan, guardian: Guardian) -> None:
        self._plan = plan
        self._guardian = guardian
        self._engine: _MountedPostgres | None = None
        self._has_amcheck = False
        self.folder = self.back = Path()

    @property
    def _server(self) -> _MountedPostgres:
        assert self._engine is not None
        return self._engine

    def create(self) -> None:
        """Make a new cluster on the disk of this machine, and move it to where it is mounted from."""
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
        self.folder = self._engine.data_dir
        self.back = self.folder.with_name("back")
        self.folder.rename(self.back)
        self._engine.back = self.back
        owner = self.back.stat()
        self.folder.mkdir(mode=0o700)
        os.chown(self.folder, owner.st_uid, owner.st_gid)

    def start(self) -> None:
        """Start the server, which recovers."""
        try:
            self._server.start()
        except TargetError as error:
            self.kill()
            raise BrokenEngineError(_last_line(self._server.log_tail())) from error

    def load(self, ledger: Ledger, is_off: Callable[[], bool]) -> float:
        """Commit in several sessions until the power is off; what is acknowledged after that, nobody has heard."""
        first = max(ledger.tried, default=0) + 1
        numbers = itertools.count(first)
        threads = [
            threading.Thread(target=self._session, args=(session, numbers, ledger, is_off))
            for session in range(self._plan.sessions)
        ]
        for thread in threads:
            thread.start()
        seen = wait_for_cut(is_off)
        self._kill_processes()
        for thread in threads:
            thread.join()
        return seen

    def _session(self, session: int, numbers: itertools.count[int], ledger: Ledger, is_off: Callable[[], bool]) -> None:
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
        """Return all rows, by the table and not by an index, and what checksums and amcheck say."""
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
            raise BrokenEngineError(_last_line(str(error))) from error
        except psycopg.Error as error:
            return Content(corrupt=_last_line(str(error).splitlines()[0]))
        return Content([(row[0], row[2]) for row in rows], counts, [row[1] for row in rows])

    def kill(self) -> None:
        """End all processes of the server at once, as a power cut does."""
        self._kill_processes()
        self._server.stop()

    def _kill_processes(self) -> None:
        deadline = time.monotonic() + KILL_S
        while (found := list(server_processes(self.folder))) and time.monotonic() < deadline:
            for process, _ in found:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(process, signal.SIGKILL)
            time.sleep(0.01)

    def close(self) -> None:
        """Stop the server and remove its folder, which must not be mounted."""
        if self._engine is not None:
            self._kill_processes()
            self._engine.close()
            self._engine = None


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    telling = [line for line in lines if "PANIC" in line or "FATAL" in line or "ERROR" in line]
    return (telling or lines or ["no answer"])[-1]
