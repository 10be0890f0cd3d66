"""Changes to undo, as data, and the code that undoes them.

An undo is registered with the guardian before the change is made. Whichever process is still alive carries it out: this
process when it ends, or the guardian if this process was killed. Both run the same code, so each undo must be safe to
carry out twice.

What could not be undone is returned as sentences and never raised, so that the other undos are still carried out. An
SQL undo stops trying after `patience_s`; the guardian retries a `lasting` one. A statement during which the connection
broke is run again, so it must be safe to repeat.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from dbdyno.base.json_types import JsonObject
from dbdyno.bench.silent_servers import UNANSWERED, is_unanswered, note_unanswered

if TYPE_CHECKING:
    import psycopg

    from dbdyno.bench.mariadb.undo import MariaUndo
    from dbdyno.bench.marked_processes import MarkUndo
    from dbdyno.bench.postgres.session import Session
    from dbdyno.cells.iorm_switch import PlanUndo
    from dbdyno.device.undo import MountUndo

FORCED_S = 30.0
"""Seconds that a killed server may take to disappear: its memory is freed and its last write ends."""
QUIET_S = 0.5
"""Seconds without any server process before the server's folder is removed, because a start may be under way."""


MARIADB = "mariadbd"
"""Program name of MariaDB's server."""
JAVA, CASSANDRA_DATA = "java", "-Dcassandra.storagedir="
"""Name of the program that runs a Cassandra node, and of its option for the data folder."""

TRANSIENT_ERRORS = ("08", "53", "57", "25006", "55P03")
"""SQLSTATEs, or prefixes of them, of transient errors.

They concern connections, resources, shutdown or start-up, a standby before its promotion, and locks that are not
available.
"""


@dataclass(frozen=True, slots=True)
class Attempt:
    """Result of one attempt at an undo.

    Attributes:
        problems: What went wrong, as sentences.
        done: Number of leading statements that need not be run again.
        again: True if another attempt may succeed.
    """

    problems: tuple[str, ...]
    done: int
    again: bool


@dataclass(frozen=True, slots=True)
class SqlUndo:
    """Undo that runs SQL statements on an engine, each separately and outside a transaction.

    Attributes:
        label: What the undo is for, for messages.
        connection: libpq parameters, including the password: sent over a pipe only and never printed.
        statements: The statements, in order.
        backends: Process IDs of backends that may still be making the change; before the undo runs, they are waited for
            and then terminated.
        patience_s: How long `execute` tries to connect, in seconds.
        lasting: True if the guardian retries for hours.
        claimed: True if the undo may run only under the lock on the server's settings.
        record: File that records the settings to restore; removed when the undo has succeeded.
    """

    label: str
    connection: dict[str, str] = field(repr=False)
    statements: tuple[str, ...]
    backends: tuple[int, ...] = ()
    patience_s: float = 30.0
    lasting: bool = False
    claimed: bool = False
    record: str = ""

    def execute(self) -> list[str]:
        """Run the statements and return problems as sentences, an empty list on success.

        A server that did not answer a login a moment ago is not tried again here: the guardian does so.
        """
        if is_unanswered(self.connection):
            return [f"{self.label}: {UNANSWERED}"]
        return list(self.attempt(patience_s=self.patience_s).problems)

    def attempt(self, *, done: int = 0, patience_s: float = 0.0, session: Session | None = None) -> Attempt:
        """Run the statements once and return how it went.

        Args:
            done: Number of leading statements that an earlier attempt has already run.
            patience_s: How long to try to connect, in seconds.
            session: Session to use instead of a new connection.
        """
        import psycopg

        try:
            if session is not None:
                return self._attempt_on(session, done)
            with contextlib.closing(self._connect(patience_s)) as own:
                return self._attempt_on(own, done)
        except psycopg.Error as error:
            return Attempt((f"{self.label}: {_first_line(error)}",), done, True)

    def _attempt_on(self, session: Session, done: int) -> Attempt:
        from dbdyno.bench.engine.unrestored_settings import delete_record

        self._outlive(session)
        problems: list[str] = []
        again = False
        for sql in self.statements[done:]:
            error = _run(session, sql)
            if error is None:
                done += not problems
                continue
            problems.append(f"{self.label}: {_first_line(error)}")
            again = again or bool(self.record) or session.closed or _passes(error)
            if session.closed:
                break
        if not problems:
            delete_record(self.record)
        return Attempt(tuple(problems), done, again)

    def _connect(self, patience_s: float) -> Session:
        import psycopg

        from dbdyno.bench.postgres.session import open_session

        deadline = time.monotonic() + patience_s
        while True:
            try:
                return open_session({"connect_timeout": "5", **self.connection}, answer_s=None)
            except psycopg.errors.ConnectionTimeout:
                note_unanswered(self.connection)
                raise
            except psycopg.OperationalError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.25)

    def _outlive(self, connection: psycopg.Connection[tuple[Any, ...]]) -> None:
        """Wait until the backends that made the change are gone, so that the change cannot take effect after its undo.

        After 3 s they are terminated.
        """
        import psycopg

        seen = (
            "select pid from pg_stat_activity where pid = any(%s) and pid <> pg_backend_pid()"
            " and usename = current_user and application_name like 'dbdyno%%'"
        )
        deadline = time.monotonic() + 3
        while connection.execute(seen, [list(self.backends)]).fetchall():
            if time.monotonic() > deadline:
                with contextlib.suppress(psycopg.Error):
                    connection.execute(
                        f"select pg_terminate_backend(pid) from ({seen}) still",  # noqa: S608
                        [list(self.backends)],
                    )
                return
            time.sleep(0.05)


@dataclass(frozen=True, slots=True)
class ServerUndo:
    """Undo that stops an embedded server, identified by its data folder, and removes its folders unless `keep` is set.

    Devices mounted at `mounts` hold its files: they are unmounted before the folders are removed, even if the processes
    that serve them are dead.

    dbdyno drew the folder names at random, so any server process that uses one of them belongs to dbdyno as well.
    """

    label: str
    data_dir: str
    folders: tuple[str, ...]
    keep: bool = False
    mounts: tuple[str, ...] = ()

    def execute(self) -> list[str]:
        """Stop the server, unmount its devices, remove the folders and return problems as sentences."""
        in_haste = {"fast_s": 0.0, "immediate_s": 2.0} if self.mounts and not self.keep else {}
        problems = stop_server(Path(self.data_dir), **in_haste)
        for mount in self.mounts:
            from dbdyno.device.undo import MountUndo

            problems += MountUndo(self.label, mount).execute()
        if not self.keep:
            for folder in self.folders:
                shutil.rmtree(folder, ignore_errors=True)
                if Path(folder).exists():
                    problems.append(f"{self.label}: {folder} could not be removed")
        return problems


@dataclass(frozen=True, slots=True)
class FolderUndo:
    """Undo that removes a folder that dbdyno created with a random name."""

    label: str
    folder: str

    def execute(self) -> list[str]:
        """Remove the folder and return problems as sentences."""
        shutil.rmtree(self.folder, ignore_errors=True)
        return [f"{self.label}: {self.folder} could not be removed"] if Path(self.folder).exists() else []


Undo: TypeAlias = "SqlUndo | MariaUndo | ServerUndo | FolderUndo | MarkUndo | MountUndo | PlanUndo"


def to_wire(undo: Undo) -> JsonObject:
    """Return the undo as plain JSON values."""
    return {"type": type(undo).__name__, **asdict(undo)}


def from_wire(wire: dict[str, object]) -> Undo:
    """Return the undo that `to_wire` wrote.

    Raises:
        KeyError: The value has no type, or an unknown one.
        TypeError: The value's fields do not match its type.
    """
    kinds: dict[Any, Any] = {"SqlUndo": SqlUndo, "ServerUndo": ServerUndo, "FolderUndo": FolderUndo}
    if wire["type"] == "PlanUndo":
        from dbdyno.cells.iorm_switch import PlanUndo

        kinds["PlanUndo"] = PlanUndo
    if wire["type"] == "MountUndo":
        from dbdyno.device.undo import MountUndo

        kinds["MountUndo"] = MountUndo
    if wire["type"] == "MarkUndo":
        from dbdyno.bench.marked_processes import MarkUndo

        kinds["MarkUndo"] = MarkUndo
    if wire["type"] == "MariaUndo":
        from dbdyno.bench.mariadb.undo import MariaUndo

        kinds["MariaUndo"] = MariaUndo
    values = {name: tuple(v) if isinstance(v, list) else v for name, v in wire.items()}
    undo: Undo = kinds[values.pop("type")](**values)
    return undo


def stop_server(data_dir: Path, *, fast_s: float = 15, immediate_s: float = 5) -> list[str]:
    """End every server process that uses the data folder and return problems as sentences.

    A fast shutdown is requested first and, after `fast_s` seconds, an immediate one; after `immediate_s` more seconds
    the processes are killed. An empty list is returned only once no such process was seen for `QUIET_S` seconds.
    """
    started = quiet_since = time.monotonic()
    sent: set[tuple[int, int]] = set()
    while time.monotonic() - started < fast_s + immediate_s + FORCED_S:
        now = time.monotonic()
        running = list(server_processes(data_dir))
        if not running:
            if now - quiet_since >= QUIET_S:
                return []
        else:
            quiet_since = now
        for pid, is_master in running:
            number = _signal_for(now - started, fast_s, immediate_s, is_master)
            if number == signal.SIGINT and _program(pid) == MARIADB:
                number = signal.SIGTERM  # MariaDB ignores SIGINT
            if number is not None and (pid, number) not in sent:
                sent.add((pid, number))
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, number)
        time.sleep(0.05)
    return [f"server processes still use {data_dir}"]


def server_processes(data_dir: Path) -> Iterator[tuple[int, bool]]:
    """Yield (pid, is_master) for each engine process that uses this data folder.

    `is_master` is True for a postmaster, initdb, or the server process of MariaDB or Cassandra. Without /proc only the
    postmaster is found, by its PID file.
    """
    proc = Path("/proc/self")
    if not proc.exists():
        yield from _from_pid_file(data_dir)
        return
    for entry in proc.parent.iterdir():
        if not entry.name.isdigit():
            continue
        try:
            if _program(int(entry.name)) not in ("postgres", "initdb", MARIADB, JAVA):
                continue
            words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
            if not {str(data_dir), f"--datadir={data_dir}", f"{CASSANDRA_DATA}{data_dir}"}.isdisjoint(words):
                yield int(entry.name), True
            elif (entry / "cwd").readlink() == data_dir:
                yield int(entry.name), False
        except OSError:
            continue


def _program(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def _from_pid_file(data_dir: Path) -> Iterator[tuple[int, bool]]:
    try:
        pid = int((data_dir / "postmaster.pid").read_text().splitlines()[0])
        os.kill(pid, 0)
    except (OSError, ValueError, IndexError):
        return
    yield pid, True


def _signal_for(elapsed_s: float, fast_s: float, immediate_s: float, is_master: bool) -> signal.Signals | None:
    if elapsed_s > fast_s + immediate_s:
        return signal.SIGKILL
    if not is_master:
        return None
    return signal.SIGINT if elapsed_s < fast_s else signal.SIGQUIT


def execute(connection: psycopg.Connection[tuple[Any, ...]], sql: str) -> None:
    """Run SQL that was composed elsewhere, unchanged and in the connection's encoding."""
    composed: Any = sql
    connection.execute(composed)


def _run(session: Session, sql: str) -> Exception | None:
    """Run a statement and return its error or None; the statement is not reported, as it may hold a secret."""
    import psycopg

    try:
        execute(session, sql)
    except psycopg.Error as error:
        return error
    return None


def _passes(error: Exception) -> bool:
    state = getattr(error, "sqlstate", None) or ""
    return state.startswith(TRANSIENT_ERRORS)


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
