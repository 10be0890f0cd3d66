"""Determination of the process to record: from a process id, a data folder, or a connection string.

A server reached by a connection string may be on another machine, where a local process with the same number would be
unrelated. So the local process must have the title of a backend and run in the data folder that the server reports.
"""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass
from pathlib import Path

from dbdyno.base.dsn import MARIADB_URLS, without_secrets
from dbdyno.base.errors import TraceError

_ASK = """
select pg_backend_pid(),
       case when pg_has_role('pg_read_all_settings', 'usage') then current_setting('data_directory') end
"""
QUERY_OPTIONS = "-c statement_timeout=5s -c lock_timeout=1s -c default_transaction_read_only=on"
"""Connection options of sessions that query the server during a recording."""
_TITLE = "postgres: "
_PROGRAMS = ("postgres", "postmaster")
"""Strings that occur in the name of a server's program; distributors put something before or after them."""
_ENGINES = ("mariadb", "mysql")


@dataclass(frozen=True)
class ServerProcess:
    """A process of a server; `only` means this process and its parallel workers instead of the whole server."""

    pid: int
    only: bool = False


def find_process(dsn: str | None, pid: int | None, datadir: Path | None) -> ServerProcess:
    """Return the process that the user named in one of three ways.

    Raises:
        TraceError: not exactly one way was used, or there is no such process on this machine.
    """
    named = [way for way in (dsn, pid, datadir) if way is not None]
    if len(named) != 1:
        raise TraceError(
            "the server is named by several options; expected one of --target, --pid and --datadir"
            if named
            else "no server is named; expected one of --target, --pid and --datadir",
            next_step="give one of --target, --pid, --datadir",
        )
    if datadir is not None:
        return ServerProcess(_of_folder(datadir))
    if pid is not None:
        return _of_process(pid)
    return ServerProcess(_of_connection(str(dsn)))


def _of_folder(folder: Path) -> int:
    path = folder / "postmaster.pid"
    try:
        first = path.read_text().splitlines()[0]
        pid = int(first)
        if not _is_server(pid):
            raise TraceError(
                f"no server runs in this data folder: its process {pid} has ended",
                where=str(path),
                next_step="start the server, or name another one",
            )
        return pid
    except PermissionError as error:
        raise TraceError(
            "the data folder belongs to another user", where=str(path), next_step="run dbdyno as root, or as its owner"
        ) from error
    except (OSError, ValueError, IndexError) as error:
        raise TraceError(
            f"no running server uses this data folder: {error}",
            where=str(path),
            next_step="name the data folder of a running server, or use --pid or --target",
        ) from error


def _of_process(pid: int) -> ServerProcess:
    """Return the process: only this backend, or the whole server if it is the postmaster."""
    try:
        title = _title(pid)
    except OSError as error:
        raise TraceError(
            f"process {pid} cannot be read: {error}", next_step="give the id of a running process of PostgreSQL"
        ) from error
    if not _is_server(pid):
        raise TraceError(
            f"process {pid} ({_program(pid)}) is not PostgreSQL",
            next_step="give the id of a running process of PostgreSQL, or name the server by --target or --datadir",
        )
    return ServerProcess(pid, only=title.startswith(_TITLE))


def _of_connection(dsn: str) -> int:
    import psycopg

    _require_postgres(dsn)
    try:
        with contextlib.closing(
            psycopg.connect(dsn, connect_timeout=10, options=QUERY_OPTIONS, application_name="dbdyno")
        ) as connection:
            pid, folder = connection.execute(_ASK).fetchone() or (0, None)
            _require_local(int(pid), folder, dsn)
            return _parent(int(pid))
    except psycopg.Error as error:
        raise TraceError(
            f"cannot find the server's process: {str(error).strip()}",
            where=without_secrets(dsn),
            next_step="check the connection string, or name the server by --pid or --datadir",
        ) from error


def _require_postgres(dsn: str) -> None:
    """Raise `TraceError` unless this is a connection string of PostgreSQL; the message has no part of a malformed one.

    libpq quotes the string that it cannot parse, with the password.
    """
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    if dsn.startswith(MARIADB_URLS) or dsn in _ENGINES:
        server = without_secrets(dsn) if dsn.startswith(MARIADB_URLS) else "mariadb://user@host/"
        raise TraceError(
            "only the waits of PostgreSQL can be recorded; those of MariaDB are sampled by queries",
            where=without_secrets(dsn),
            next_step=f"dbdyno snap watch --target {server}, or dbdyno snap top --target {server}",
        )
    try:
        conninfo_to_dict(dsn)
    except (psycopg.Error, UnicodeError) as error:
        reason = re.sub(r'".*"', '"..."', str(error).strip(), flags=re.DOTALL)
        raise TraceError(
            f"--target is not a connection string of PostgreSQL: {reason}",
            next_step="write --target postgresql://user@host/database, or name the server by --pid or --datadir",
        ) from None


def _require_local(pid: int, folder: str | None, dsn: str) -> None:
    """Raise `TraceError` unless the backend's process is on this machine."""
    try:
        is_backend = _title(pid).startswith(_TITLE)
        lies_in = str(Path(f"/proc/{pid}/cwd").readlink()) if folder else None
    except PermissionError as error:
        raise TraceError(
            "the server's processes belong to another user",
            where=without_secrets(dsn),
            next_step="run dbdyno as root, or as the server's own user",
        ) from error
    except OSError:
        is_backend, lies_in = False, None
    if not is_backend or (folder and lies_in and not _is_same_folder(folder, lies_in)):
        raise TraceError(
            "the server was not found on this machine: it may run elsewhere, behind a pooler or in its own namespace",
            where=without_secrets(dsn),
            next_step="run this command on the server's machine, where exact waits can be recorded",
        )


def _is_same_folder(folder: str, other: str) -> bool:
    with contextlib.suppress(OSError):
        return Path(folder).resolve().samefile(other)
    return folder == other


def _is_server(pid: int) -> bool:
    """Return True if the process exists and its program is called like PostgreSQL's."""
    return any(name in _program(pid) for name in _PROGRAMS)


def _program(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


def _title(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")


def _parent(pid: int) -> int:
    text = Path(f"/proc/{pid}/stat").read_text()
    return int(text.rsplit(")", 1)[1].split()[1])
