"""A MariaDB server of our own: made, started, used and removed, without an account or a configuration.

It lives in one private folder (0700, random name) under TMPDIR or /var/tmp: on a disk, because a laboratory that
measures commits must not run in memory by accident. The Unix socket in that folder is its only way in; it listens on no
port. Durability is the server's default. The programs are an installed server's (Debian: mariadb-server-core).

When this process dies, the guardian stops the server and removes the folder.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from dbdyno.bench.guardian import Guardian
from dbdyno.bench.host.machine import file_system
from dbdyno.bench.mariadb.address import driver
from dbdyno.bench.mariadb.session import open_session
from dbdyno.bench.postgres.account import Account, bare_environment, engine_account, run_as
from dbdyno.bench.postgres.places import base_folder
from dbdyno.bench.undo import ServerUndo, server_processes, stop_server
from dbdyno.errors import TargetError
from dbdyno.processes import find_program

LABORATORY_SETTINGS = {
    "innodb_buffer_pool_size": "256M",
    "max_connections": "300",
    "performance_schema": "ON",
    "performance_schema_consumer_events_waits_current": "ON",
}
"""Where an embedded server differs from MariaDB's defaults; the caller's settings come after these."""

PLACES = "/usr/sbin:/usr/local/sbin:/usr/local/mysql/bin:/opt/homebrew/bin"
"""Where distributions put the server's programs, beside PATH."""
START_S = 60.0
USER = "root"
DATABASE = "dbdyno_lab"


class EmbeddedMariaDB:
    """A server of our own, as a context manager. `settings`: in effect from the start."""

    def __init__(self, settings: Mapping[str, str] | None = None, *, guardian: Guardian | None = None) -> None:
        self._settings = {**LABORATORY_SETTINGS, **(settings or {})}
        self._own_guardian = guardian is None
        self._guardian = guardian or Guardian()
        self._undo: int | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._account: Account | None = None
        self._log_start = 0
        self.folder = Path()

    @property
    def data_dir(self) -> Path:
        """The data folder."""
        return self.folder / "data"

    @property
    def log_file(self) -> Path:
        """The server's log."""
        return self.folder / "server.log"

    @property
    def running(self) -> bool:
        """Whether the server's process lives."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int | None:
        """The number of the server's process while it runs."""
        return self._process.pid if self._process and self.running else None

    def parameters(self) -> dict[str, Any]:
        """PyMySQL's parameters; the socket asks no password."""
        own = {"host": "localhost", "port": 3306, "user": USER, "database": DATABASE}
        return {**own, "unix_socket": str(self.folder / "s")}

    def facts(self) -> dict[str, str | bool]:
        """On what it stores, and as whom it runs."""
        found = file_system(self.data_dir)
        return {
            "engine_source": "installed",
            "engine_user": self._account.name if self._account else "",
            "data_folder": str(self.data_dir),
            "data_in_memory": bool(found and found.in_memory),
        }

    def __enter__(self) -> Self:
        try:
            self._create()
            self._launch({})
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def restart(self, settings: Mapping[str, str]) -> None:
        """Stops and starts, with these settings after its own. Raises `TargetError` with the log's end."""
        self.stop()
        self._launch(settings)

    def stop(self) -> None:
        """Stops the server: with a clean end, else by force."""
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(60)
        if process.poll() is None:
            process.kill()
        process.wait()

    def log_tail(self) -> str:
        """The last lines that the server logged since its start, indented, each on a line."""
        log = self.log_file.read_bytes()[self._log_start :] if self.log_file.exists() else b""
        lines = log.decode(errors="replace").splitlines()[-8:]
        return "".join(f"\n    {line}" for line in lines) or " (none)"

    def close(self) -> None:
        """Stops and removes everything."""
        try:
            self.stop()
            if self.folder != Path():
                if any(server_processes(self.data_dir)):  # making the data folder was interrupted
                    stop_server(self.data_dir, fast_s=0, immediate_s=2)
                shutil.rmtree(self.folder, ignore_errors=True)
        finally:
            if self._undo is not None:
                self._guardian.discard(self._undo)
                self._undo = None
            if self._own_guardian:
                self._guardian.close()

    def _create(self) -> None:
        account = engine_account()
        install = _program("mariadb-install-db")
        base = base_folder(account, None)
        folder = base / f"dbdyno-{secrets.token_hex(6)}"
        self._undo = self._guardian.push(ServerUndo("embedded server", str(folder / "data"), (str(folder),)))
        self.folder = folder
        try:
            folder.mkdir(mode=0o700)
            if account.other:
                os.chown(folder, account.uid, account.gid)
        except OSError as error:
            raise TargetError(
                f"cannot make a folder for the embedded server: {error}",
                where=str(base),
                next_step="name another folder with TMPDIR",
            ) from error
        self._account = account
        own = ["--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve"]
        done = run_as(account, [install, "--no-defaults", f"--datadir={self.data_dir}", *own], cwd=folder)
        if done.returncode != 0:
            said = "".join(f"\n    {line}" for line in done.stdout.splitlines()[-8:])
            raise TargetError(
                f"mariadb-install-db failed; its last lines:{said}",
                where=str(folder),
                next_step="see that the disk has room, or use a server that runs: --target mariadb://user@host/db",
            )

    def _launch(self, settings: Mapping[str, str]) -> None:
        account = self._account
        assert account is not None
        options = {**self._settings, **settings}
        own = {"datadir": self.data_dir, "socket": self.folder / "s", "pid-file": self.folder / "pid"}
        with self.log_file.open("ab") as log:
            self._log_start = log.tell()
            self._process = subprocess.Popen(
                [
                    str(_program("mariadbd")),
                    "--no-defaults",
                    *(f"--{name.replace('_', '-')}={value}" for name, value in options.items()),
                    *(f"--{name}={value}" for name, value in own.items()),
                    "--skip-networking",
                    "--skip-name-resolve",
                ],
                cwd=self.folder,
                env=bare_environment(self.folder),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                umask=0o077,
                start_new_session=True,
                user=account.uid if account.other else None,
                group=account.gid if account.other else None,
                extra_groups=[] if account.other else None,
            )
        self._await_answer()

    def _await_answer(self) -> None:
        assert self._process is not None
        known = {name: value for name, value in self.parameters().items() if name != "database"}
        deadline = time.monotonic() + START_S
        while True:
            try:
                with contextlib.closing(open_session(known)) as connection, connection.cursor() as cursor:
                    cursor.execute(f"create database if not exists {DATABASE}")
            except driver().OperationalError as error:
                if self._process.poll() is not None:
                    self._process = None
                    raise self._failure("the embedded server did not start") from error
                if time.monotonic() > deadline:
                    raise self._failure(f"the embedded server was not ready after {START_S:.0f} s") from error
                time.sleep(0.02)
            else:
                return

    def _failure(self, message: str) -> TargetError:
        return TargetError(
            f"{message}; the last lines of its log:{self.log_tail()}",
            where=str(self.folder),
            next_step="correct the setting that the log names",
        )


def _program(name: str) -> Path:
    """A program of an installed server. Raises `TargetError` where there is none."""
    found = find_program(name, os.environ.get("PATH", os.defpath) + os.pathsep + PLACES)
    if found is None:
        raise TargetError(
            f"no {name} was found: an embedded MariaDB needs an installed server's programs",
            next_step="install Debian's mariadb-server-core, or use a server that runs: --target mariadb://user@host/db",
        )
    return found
