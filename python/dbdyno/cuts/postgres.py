"""An embedded PostgreSQL under power cuts: its data folder is on the mounted device, with page checksums."""

from __future__ import annotations

import contextlib
import itertools
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

from dbdyno.base.errors import DeviceError
from dbdyno.base.processes import child_environment
from dbdyno.bench.postgres.binaries import find_binaries
from dbdyno.bench.postgres.embedded import EmbeddedPostgres
from dbdyno.bench.postgres.setting_values import SettingValue
from dbdyno.cuts.engine import BrokenEngineError, informative_line
from dbdyno.cuts.ledger import Content, Ledger, payload_of
from dbdyno.cuts.servers import ServerCuts

TABLES = """
create table counts (session int primary key, n bigint not null);
create table rows (number bigint primary key, session int not null references counts, payload text not null);
create index rows_payload on rows (payload);
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
ORPHANS = "select count(*) from rows r where not exists (select from counts c where c.session = r.session)"
CHECKSUMS = "data_checksums"
"""Key in the settings of a plan; page checksums are chosen when initdb creates the cluster."""
CHECKSUMS_BY_DEFAULT = 18
"""Major version from which initdb adds checksums unless an option disables them."""
LOCK = "postmaster.pid"
NUMBER = re.compile(rb"\d")
REDO = re.compile(r"redo starts at ([0-9A-F]+)/([0-9A-F]+)")
STATE = re.compile(r"^Database cluster state: +(.+?) *$", re.MULTILINE)
DONE = re.compile(r"redo done at ([0-9A-F]+)/([0-9A-F]+)")


class _MountedPostgres(EmbeddedPostgres):
    """An embedded server that reads its state from the folder below the mounted one.

    This process serves the mounted folder, so it must not wait for that folder itself: killed while waiting, it could
    not answer.
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
        options = initdb_options(str(settings.pop(CHECKSUMS, "on")))
        self._engine = _MountedPostgres(None, settings, guardian=self._guardian, initdb=options)
        self._engine.start()
        with psycopg.connect(**self._engine.conninfo(), autocommit=True) as connection:  # type: ignore[arg-type]
            self.version = str(connection.execute("show server_version").fetchall()[0][0]).split()[0]
            connection.execute(TABLES)
            for session in range(self._plan.sessions):
                connection.execute("insert into counts values (%s, 0)", (session,))
            with contextlib.suppress(psycopg.Error):
                connection.execute("create extension amcheck")
                self._has_amcheck = True
        self._engine.stop()
        self._move_below()
        self._engine.back = self.back

    def start(self) -> None:
        """Remove a lock file without a process number, which prevents a start, and start the server, which recovers."""
        lock = self.back / LOCK
        if lock.exists() and not NUMBER.match(lock.read_bytes()):
            lock.unlink()
            self.repaired = f"{LOCK} contained no process number and was removed"
        super().start()

    def _session(self, session: int, numbers: itertools.count[int], ledger: Ledger, is_off: Callable[[], bool]) -> None:
        """Commit rows until the power is off; the first session also takes checkpoints."""
        import psycopg

        with (
            contextlib.suppress(psycopg.Error),
            contextlib.closing(psycopg.connect(**self._server.conninfo(), autocommit=True)) as connection,  # type: ignore[arg-type]
        ):
            for done in itertools.count(1):
                number = next(numbers)
                ledger.record_attempt(number)
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
        """Return all rows of the table, and the errors found by checksums, amcheck, foreign key and pg_controldata."""
        import psycopg

        try:
            with psycopg.connect(**self._server.conninfo(), autocommit=True, connect_timeout=10) as connection:  # type: ignore[arg-type]
                connection.execute("set enable_indexscan = off")
                connection.execute("set enable_indexonlyscan = off")
                connection.execute("set enable_bitmapscan = off")
                rows = connection.execute("select number, session, payload from rows").fetchall()
                counts: dict[int, int] = dict(connection.execute("select session, n from counts").fetchall())
                (orphans,) = connection.execute(ORPHANS).fetchall()[0]
                if self._has_amcheck:
                    connection.execute(AMCHECK)
        except psycopg.OperationalError as error:
            raise BrokenEngineError(informative_line(str(error))) from error
        except psycopg.Error as error:
            return Content(corrupt=informative_line(str(error).splitlines()[0]))
        corrupt = f"{orphans} rows violate the foreign key" if orphans else self._control_file()
        return Content([(row[0], row[2]) for row in rows], counts, [row[1] for row in rows], corrupt)

    def _control_file(self) -> str:
        """Return what pg_controldata finds wrong below the mount; empty if it finds nothing or is not installed."""
        program = self._server.binaries.program("pg_controldata")
        if not program.exists():
            return ""
        done = subprocess.run(
            [program, self.back],
            env={**child_environment(), "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        return control_file_problem(done.stdout + done.stderr)

    def log_bytes(self) -> int:
        """Return how much of the log the last recovery replayed [bytes]."""
        said = self._server.log_since_start()
        begin, end = REDO.search(said), DONE.search(said)
        return max(0, _position(end) - _position(begin)) if begin and end else 0


def initdb_options(checksums: str) -> list[str]:
    """Return the options of initdb for page checksums that are on or off.

    Raises:
        DeviceError: `checksums` is neither on nor off.
        TargetError: There is no PostgreSQL.
    """
    if checksums not in ("on", "true", "off", "false"):
        raise DeviceError(
            f"{CHECKSUMS} must be on or off, found {checksums!r}", where="settings", next_step="write on or off"
        )
    if checksums in ("on", "true"):
        return ["--data-checksums"]
    return ["--no-data-checksums"] if find_binaries().major >= CHECKSUMS_BY_DEFAULT else []


def control_file_problem(said: str) -> str:
    """Return the warning or wrong state in pg_controldata's output; "" if the state is "in production"."""
    state = STATE.search(said)
    warnings = [line for line in said.splitlines() if "WARNING" in line]
    if state is None or warnings:
        return f"pg_controldata: {(warnings or [informative_line(said)])[0]}"
    return "" if state[1] == "in production" else f"pg_controldata: the cluster is {state[1]}"


def _position(match: re.Match[str]) -> int:
    """Return the log position that a pattern matches."""
    return (int(match[1], 16) << 32) + int(match[2], 16)
