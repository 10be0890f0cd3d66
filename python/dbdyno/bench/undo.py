"""What must be put back, as data, and the code that puts it back.

An undo is registered with the guardian before the change is made; it is carried out by whoever
still lives: this process on its way out, or the guardian when this process was killed. Both run the
same code, so each undo must stand being carried out twice.

What could not be put back is returned as sentences, never raised, so that the other undos still
happen. An undo of SQL gives up after `patience_s`; the guardian tries a `lasting` one again. A
statement during which the connection broke is run again: it should stand that.
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

if TYPE_CHECKING:
    import psycopg

    from dbdyno.bench.mariadb.undo import MariaUndo
    from dbdyno.bench.marked_processes import MarkUndo
    from dbdyno.bench.postgres.session import Session
    from dbdyno.cells.iorm_switch import PlanUndo

FORCED_S = 30.0
"""How long a killed server may take to be gone: its memory is given back, its last write ends."""
QUIET_S = 0.5
"""How long no process of a server may be seen before its folder is removed: a start may be under
way.
"""


MARIADB = "mariadbd"
"""The program of MariaDB's server."""

AGAIN = ("08", "53", "57", "25006", "55P03")
"""SQLSTATEs, or their classes, that pass by themselves: connection, resources, shutdown or start-up,
a standby before its promotion, a lock."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """How one try went: what is wrong, how many statements are done for good, and whether another
    try may do better."""

    problems: tuple[str, ...]
    done: int
    again: bool


@dataclass(frozen=True, slots=True)
class SqlUndo:
    """Statements to run on an engine, each on its own and outside a transaction.

    `connection` are libpq's parameters, password included: it travels over a pipe and is never
    printed. `backends` are server processes that may still be carrying out the change; they are
    waited for (and ended) first. `lasting`: the guardian goes on trying for hours. `claimed`: only
    under the lock of the server's settings. `record`: the file that says what is owed; removed when
    it is done.
    """

    label: str
    connection: dict[str, str] = field(repr=False)
    statements: tuple[str, ...]
    backends: tuple[int, ...] = ()
    patience_s: float = 30.0
    lasting: bool = False
    claimed: bool = False
    record: str = ""

    def carry_out(self) -> list[str]:
        """Run the statements; returns what went wrong, nothing if all is well."""
        return list(self.attempt(patience_s=self.patience_s).problems)

    def attempt(self, *, done: int = 0, patience_s: float = 0.0, session: Session | None = None) -> Attempt:
        """Run the statements but the first `done`, which an earlier attempt has run; on `session`
        where one is given."""
        import psycopg

        try:
            if session is not None:
                return self._attempt_on(session, done)
            with contextlib.closing(self._connect(patience_s)) as own:
                return self._attempt_on(own, done)
        except psycopg.Error as error:
            return Attempt((f"{self.label}: {_first_line(error)}",), done, True)

    def _attempt_on(self, session: Session, done: int) -> Attempt:
        from dbdyno.bench.engine.unrestored import forget

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
            forget(self.record)
        return Attempt(tuple(problems), done, again)

    def _connect(self, patience_s: float) -> Session:
        import psycopg

        from dbdyno.bench.postgres.session import open_session

        deadline = time.monotonic() + patience_s
        while True:
            try:
                return open_session({"connect_timeout": "5", **self.connection}, answer_s=None)
            except psycopg.OperationalError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.25)

    def _outlive(self, connection: psycopg.Connection[tuple[Any, ...]]) -> None:
        """Wait until the backends that made the change are gone, so that it cannot land after its
        undo.
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
    """Stop an embedded server by its data folder, and remove its folders unless they are to be
    kept.

    The folders' names are random and ours, so that whatever server process uses one of them is ours
    as well.
    """

    label: str
    data_dir: str
    folders: tuple[str, ...]
    keep: bool = False

    def carry_out(self) -> list[str]:
        """Stop and remove; returns what went wrong."""
        problems = stop_server(Path(self.data_dir))
        if not self.keep:
            for folder in self.folders:
                shutil.rmtree(folder, ignore_errors=True)
                if Path(folder).exists():
                    problems.append(f"{self.label}: {folder} could not be removed")
        return problems


@dataclass(frozen=True, slots=True)
class FolderUndo:
    """Remove a folder of ours, whose name is random."""

    label: str
    folder: str

    def carry_out(self) -> list[str]:
        """Remove it; returns what went wrong."""
        shutil.rmtree(self.folder, ignore_errors=True)
        return [f"{self.label}: {self.folder} could not be removed"] if Path(self.folder).exists() else []


Undo: TypeAlias = "SqlUndo | MariaUndo | ServerUndo | FolderUndo | MarkUndo | PlanUndo"


def to_wire(undo: Undo) -> dict[str, Any]:
    """The undo as plain JSON values."""
    return {"type": type(undo).__name__, **asdict(undo)}


def from_wire(wire: dict[str, object]) -> Undo:
    """The undo that `to_wire` wrote. Raises KeyError or TypeError on anything else."""
    kinds: dict[Any, Any] = {"SqlUndo": SqlUndo, "ServerUndo": ServerUndo, "FolderUndo": FolderUndo}
    if wire["type"] == "PlanUndo":
        from dbdyno.cells.iorm_switch import PlanUndo

        kinds["PlanUndo"] = PlanUndo
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
    """End every server process that uses the data folder: fast, then at once, then by force.

    Returns what went wrong. Returns only after no such process was seen for `QUIET_S`.
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
                number = signal.SIGTERM  # it is deaf to the other
            if number is not None and (pid, number) not in sent:
                sent.add((pid, number))
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, number)
        time.sleep(0.05)
    return [f"server processes still use {data_dir}"]


def server_processes(data_dir: Path) -> Iterator[tuple[int, bool]]:
    """(pid, whether it is a postmaster, initdb or MariaDB's server) of the engine's processes that use this data
    folder.
    """
    proc = Path("/proc/self")
    if not proc.exists():
        yield from _from_pid_file(data_dir)
        return
    for entry in proc.parent.iterdir():
        if not entry.name.isdigit():
            continue
        try:
            if _program(int(entry.name)) not in ("postgres", "initdb", MARIADB):
                continue
            words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
            if str(data_dir) in words or f"--datadir={data_dir}" in words:
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
    """Run SQL that was composed elsewhere, as it stands and in the connection's encoding."""
    composed: Any = sql
    connection.execute(composed)


def _run(session: Session, sql: str) -> Exception | None:
    """What went wrong, or None. The statement itself is not told: it may hold a secret."""
    import psycopg

    try:
        execute(session, sql)
    except psycopg.Error as error:
        return error
    return None


def _passes(error: Exception) -> bool:
    state = getattr(error, "sqlstate", None) or ""
    return state.startswith(AGAIN)


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
