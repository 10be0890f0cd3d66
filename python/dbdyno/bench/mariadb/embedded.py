"""A MariaDB server that dbdyno creates, starts, uses and removes, without an account or a configuration.

The Unix socket in its folder is the only way to connect, unless a program other than dbdyno needs to. In that case the
server also listens on 127.0.0.1, for one user with a password created for this server; users without a password can
connect only through the socket. Durability is the server's default. The programs are those of an installed server
(Debian: mariadb-server-core) unless other programs are specified.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dbdyno.base.errors import TargetError
from dbdyno.bench.engine.embedded_server import EmbeddedServer, indent_log
from dbdyno.bench.engine.os_user import engine_account, run_as
from dbdyno.bench.engine.server_paths import free_port
from dbdyno.bench.engine.volumes import DATA, Volume
from dbdyno.bench.mariadb.address import Parameters, driver
from dbdyno.bench.mariadb.binaries import Programs, check_reachable, find_programs
from dbdyno.bench.mariadb.session import open_session

if TYPE_CHECKING:
    from dbdyno.bench.guardian import Guardian

LABORATORY_SETTINGS = {
    "innodb_buffer_pool_size": "256M",
    "max_connections": "300",
    "performance_schema": "ON",
    "performance_schema_consumer_events_waits_current": "ON",
    "innodb_buffer_pool_load_at_startup": "OFF",
}
"""Settings of an embedded server that differ from MariaDB's defaults; the caller's settings override these."""

USER = "root"
DATABASE = "dbdyno_lab"
TCP_USER = "dbdyno_lab"


class EmbeddedMariaDB(EmbeddedServer):
    """A MariaDB server started by dbdyno, as a context manager.

    Args:
        settings: Server settings that are in effect from the server's start.
        guardian: A guardian to share; None starts a private one.
        tcp: Also listen on a TCP port.
        workdir: Folder in which the private folder is created; None means TMPDIR or /var/tmp.
        install: Further options of mariadb-install-db.
        programs: The server to start; None searches for one.
        number: Distinguishes this server from other embedded servers of a run.
        volumes: Modelled devices for its data, its log or both.
    """

    source = "installed"

    def __init__(
        self,
        settings: Mapping[str, str] | None = None,
        *,
        guardian: Guardian | None = None,
        tcp: bool = False,
        workdir: Path | None = None,
        install: Sequence[str] = (),
        programs: Programs | None = None,
        number: int = 1,
        volumes: Sequence[Volume] = (),
    ) -> None:
        super().__init__(guardian, volumes)
        self.number, self._workdir, self._install = number, workdir, tuple(install)
        self._given = programs
        self.tcp, self._port, self._password = tcp, 0, ""
        self._settings = {**LABORATORY_SETTINGS, **(settings or {})}

    def parameters(self) -> Parameters:
        """Return PyMySQL's parameters for the Unix socket, which requires no password."""
        own: Parameters = {"host": "localhost", "port": 3306, "user": USER, "database": DATABASE}
        return {**own, "unix_socket": str(self.folder / "s")}

    def tcp_parameters(self) -> Parameters:
        """Return PyMySQL's parameters for TCP, including the password."""
        own: Parameters = {"host": "127.0.0.1", "port": self._port, "user": TCP_USER, "password": self._password}
        return {**own, "database": DATABASE}

    def start(self, settings: Mapping[str, str] | None = None) -> None:
        """Create the data folder if there is none yet, and start the server; `settings` override its own.

        Raises:
            TargetError: The server did not start; the error includes the end of its log.
        """
        if self._account is None:
            self._create()
            if self.tcp:
                # Users without a password must be removed from TCP before the port is opened.
                self._start_with({})
                self._close_to_strangers()
                self.stop()
                self._port = free_port()
        self._start_with(settings or {})

    def _close_to_strangers(self) -> None:
        self._password = secrets.token_urlsafe(24)
        with contextlib.closing(open_session(self.parameters())) as connection, connection.cursor() as cursor:
            cursor.execute("select user, host from mysql.global_priv where host <> 'localhost'")
            for user, host in cursor.fetchall():
                cursor.execute("drop user %s@%s", [user, host])
            cursor.execute(f"create user {TCP_USER}@127.0.0.1 identified by %s", [self._password])
            cursor.execute(f"grant all on *.* to {TCP_USER}@127.0.0.1")

    def restart(self, settings: Mapping[str, str]) -> None:
        """Stop the server and start it again; `settings` override its own.

        Raises:
            TargetError: The server did not start; the error includes the end of its log.
        """
        self.stop()
        self.start(settings)

    def _create(self) -> None:
        account = engine_account()
        self._programs = self._given or find_programs()
        check_reachable(account, self._programs)

        def own(folder: Path) -> None:
            if account.other:
                os.chown(folder, account.uid, account.gid)

        def fill() -> None:
            own(self.folder)
            self.volumes.make_folders(self.folder, own)

        self._make_folder(account, self._workdir, fill)
        options = ["--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve"]
        done = run_as(
            account,
            [
                self._programs.install,
                "--no-defaults",
                *self._programs.options,
                f"--datadir={self.data_dir}",
                f"--tmpdir={self.folder}",
                *options,
                *self._install,
            ],
            cwd=self.folder,
        )
        if done.returncode != 0:
            raise TargetError(
                f"mariadb-install-db failed; its last lines:{indent_log(done.stdout)}",
                where=str(self.folder),
                next_step="check that the disk has room, or use a running server: --target mariadb://user@host/db",
            )
        if (log := self.volumes.log_folder(self.folder)) is not None:
            for file in self.data_dir.glob("ib_logfile*"):
                file.rename(log / file.name)
        self.volumes.mount(self.folder)

    def _start_with(self, settings: Mapping[str, str]) -> None:
        # A starting server removes files from tmpdir that look like temporary tables, including those of other servers.
        options = {"tmpdir": str(self._temporary()), **self._settings, **settings}
        own = {"datadir": self.data_dir, "socket": self.folder / "s", "pid-file": self.folder / "pid"}
        if (log := self.volumes.log_folder(self.folder)) is not None:
            own["innodb-log-group-home-dir"] = log
        command = [
            str(self._programs.server),
            "--no-defaults",
            *self._programs.options,
            *(f"--{name.replace('_', '-')}={value}" for name, value in options.items()),
            *(f"--{name}={value}" for name, value in own.items()),
            *([f"--port={self._port}", "--bind-address=127.0.0.1"] if self._port else ["--skip-networking"]),
            "--skip-name-resolve",
        ]
        self._launch(command, self._ready)

    def _temporary(self) -> Path:
        """Return the folder for temporary files, which is on the data's device if there is such a device."""
        mount = self.volumes.mount_of(DATA)
        if mount is None:
            return self.folder
        made = self.folder / mount / "tmp"
        if not made.exists():
            made.mkdir(mode=0o700)
            above = made.parent.stat()
            os.chown(made, above.st_uid, above.st_gid)
        return made

    def _ready(self) -> bool:
        known = {name: value for name, value in self.parameters().items() if name != "database"}
        try:
            with contextlib.closing(open_session(known)) as connection, connection.cursor() as cursor:
                cursor.execute(f"create database if not exists {DATABASE}")
        except driver().OperationalError:
            return False
        return True
