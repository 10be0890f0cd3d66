"""A PostgreSQL server that dbdyno creates, starts, uses and removes, without an account or a configuration.

    with EmbeddedPostgres() as engine:
        engine.conninfo()      # {'host': '/var/tmp/dbdyno-3f.../s', 'port': '40123', 'user': 'postgres', ...}

It uses one private folder (random name) under `workdir`, TMPDIR or /var/tmp: on a disk, because a laboratory that
measures commits must not run in memory by accident; `facts()` says where it is. Connections through the Unix socket in
that folder need no password; TCP on 127.0.0.1 requires a random password (SCRAM). Durability is PostgreSQL's default:
fsync, full page writes, synchronous commit and the WAL's settings are not changed.

    <workdir>/dbdyno-<random>/        this user's; the engine's group may enter (0710 for root, else 0700)
        postgresql.conf pg_hba.conf   this user's; the engine reads them, includes data/postgresql.conf
        server.log
        data/  s/                     owned by the engine's user, 0700: its data, its socket

If this process dies, the guardian stops the server and removes the folder.
"""

from __future__ import annotations

import os
import secrets
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

from dbdyno.base.errors import TargetError
from dbdyno.bench.engine.embedded_server import EmbeddedServer
from dbdyno.bench.engine.os_user import Account, engine_account, reachable_binaries, run_as
from dbdyno.bench.engine.server_paths import free_port, socket_folder
from dbdyno.bench.engine.volumes import Volume
from dbdyno.bench.guardian import Guardian
from dbdyno.bench.postgres.binaries import Binaries, find_binaries
from dbdyno.bench.postgres.setting_values import SettingValue, as_text, configuration_line, quoted_element

LABORATORY_SETTINGS: dict[str, SettingValue] = {
    "shared_buffers": "256MB",
    "max_connections": 200,
    "track_io_timing": True,
    "log_checkpoints": True,
    "log_line_prefix": "%m [%p] %a ",
}
"""Settings of an embedded engine that differ from PostgreSQL's defaults; the caller's `settings` override these."""

USER = "postgres"
DATABASE = "postgres"


class EmbeddedPostgres(EmbeddedServer):
    """A PostgreSQL server started by dbdyno, as a context manager.

    Args:
        workdir: Folder in which the private folder is created; None means TMPDIR or /var/tmp.
        settings: Server settings that are in effect from the server's start.
        guardian: A guardian to share; None starts a private one.
        binaries: The server to start; None searches for one.
        initdb: Further options of initdb.
        keep: True if the folder is kept at the end for inspection.
        volumes: Modelled devices for its data, its log or both.
    """

    signals = ((signal.SIGINT, 30.0), (signal.SIGQUIT, 10.0))
    databases = "base"

    def __init__(
        self,
        workdir: Path | None = None,
        settings: Mapping[str, SettingValue] | None = None,
        *,
        guardian: Guardian | None = None,
        binaries: Binaries | None = None,
        initdb: Sequence[str] = (),
        keep: bool = False,
        volumes: Sequence[Volume] = (),
    ) -> None:
        super().__init__(guardian, volumes)
        self._initdb = tuple(initdb)
        self.keep = keep
        self.port = 0
        self.password = secrets.token_urlsafe(24)
        self._settings = {**LABORATORY_SETTINGS, **(settings or {})}
        self._binaries = binaries
        self._workdir = workdir
        self._has_password = False

    @property
    def binaries(self) -> Binaries:
        """Return the server's programs in use.

        Raises:
            TargetError: The server was not started, and no programs were given.
        """
        if self._binaries is None:
            raise TargetError("the embedded server was not started")
        return self._binaries

    @property
    def source(self) -> str:
        """Return where the server's programs came from."""
        return self.binaries.source

    @property
    def socket_dir(self) -> Path:
        """Return the folder of the server's socket; inside the private folder if the path is short enough."""
        return socket_folder(self.folder) if self.folder != Path() else Path()

    def conninfo(self) -> dict[str, str]:
        """Return the libpq parameters for the private socket, where no password is required."""
        return {
            "host": str(self.socket_dir),
            "port": str(self.port),
            "user": USER,
            "dbname": DATABASE,
        }

    def tcp_conninfo(self) -> dict[str, str]:
        """Return the libpq parameters for 127.0.0.1, including the password."""
        return {**self.conninfo(), "host": "127.0.0.1", "password": self.password}

    def start(self) -> None:
        """Create the data folder if there is none yet, and start the server; a running server is not restarted.

        Raises:
            TargetError: The server did not start; the error includes the end of its log.
        """
        if self.running:
            return
        if self._account is None:
            self._create()
        for attempt in range(3):
            try:
                configuration = f"config_file={self.folder / 'postgresql.conf'}"
                self._launch([self.binaries.program("postgres"), "-D", self.data_dir, "-c", configuration], self._ready)
                break
            except TargetError as error:
                taken = "could not create any TCP/IP sockets" in str(error)
                if not taken or attempt == 2 or self._has_password:
                    raise  # a restart keeps its port: other processes use it
                self._configure(free_port())
        if not self._has_password:
            self._set_password()
            self._has_password = True

    def restart(self) -> None:
        """Stop and start the server, so that settings that need a restart take effect.

        Raises:
            TargetError: The server did not start; the error includes the end of its log.
        """
        self.stop()
        self.start()

    def reload(self) -> None:
        """Make the server reload its configuration (SIGHUP); sessions see the change a little later."""
        if self._process is not None:
            self._process.send_signal(signal.SIGHUP)

    def read_auto_conf(self) -> bytes:
        """Return the content of postgresql.auto.conf, the file that ALTER SYSTEM writes."""
        path = self.data_dir / "postgresql.auto.conf"
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
            return file.read()

    def write_auto_conf(self, content: bytes) -> None:
        """Write back the content that `read_auto_conf` returned, atomically."""
        account = self._account
        assert account is not None
        aside = self.data_dir / "postgresql.auto.conf.dbdyno"
        aside.unlink(missing_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        with os.fdopen(os.open(aside, flags, 0o600), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            os.fchown(file.fileno(), account.uid, account.gid)
        aside.replace(self.data_dir / "postgresql.auto.conf")

    def _create(self) -> None:
        account = engine_account()
        self._binaries = reachable_binaries(account, self._binaries or find_binaries())

        def fill() -> None:
            if account.other:
                os.chown(self.folder, -1, account.gid)
                self.folder.chmod(0o710)
            self.volumes.make_folders(self.folder, own)
            for folder in (self.data_dir, self.socket_dir):
                folder.mkdir(mode=0o700)
                own(folder)

        def own(folder: Path) -> None:
            os.chown(folder, account.uid, account.gid)

        self._make_folder(account, self._workdir, fill)
        self._init_data(account)
        if (log := self.volumes.log_folder(self.folder)) is not None:
            log.rmdir()
            (self.data_dir / "pg_wal").rename(log)
            (self.data_dir / "pg_wal").symlink_to(log)
        self.volumes.mount(self.folder)

    def _init_data(self, account: Account) -> None:
        command: list[str | Path] = [self.binaries.program("initdb"), "-D", self.data_dir]
        command += ["-U", USER, "-E", "UTF8", "--locale=C", "-A", "trust"]
        command += [*self._initdb, "--no-sync"]  # the empty cluster need not survive a power failure
        done = run_as(account, command, cwd=self.folder)
        self._write("server.log", done.stdout)
        if done.returncode != 0:
            raise self._failure("initdb failed")
        self._write("pg_hba.conf", "local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n")
        self._configure(free_port())

    def _configure(self, port: int) -> None:
        self.port = port
        own: dict[str, SettingValue] = {
            "hba_file": str(self.folder / "pg_hba.conf"),
            "listen_addresses": "127.0.0.1",
            "port": port,
            "unix_socket_directories": quoted_element(str(self.socket_dir)),
            "unix_socket_permissions": "0700",
        }
        lines = [configuration_line("include", str(self.data_dir / "postgresql.conf"))]
        for name, value in {**self._settings, **own}.items():
            lines.append(configuration_line(name, as_text(value)))
        self._write("postgresql.conf", "".join(lines))

    def _folders(self) -> set[Path]:
        return {self.folder, self.socket_dir} - {Path()}

    def _ready(self) -> bool:
        try:
            lines = (self.data_dir / "postmaster.pid").read_text().splitlines()
        except OSError:
            return False
        return len(lines) > 7 and lines[0] == str(self.pid) and lines[7].strip() == "ready"

    def _set_password(self) -> None:
        import psycopg
        from psycopg import sql

        try:
            with psycopg.connect(**self.conninfo(), autocommit=True) as connection:  # type: ignore[arg-type]
                verifier = connection.pgconn.encrypt_password(self.password.encode(), USER.encode(), b"scram-sha-256")
                connection.execute(
                    sql.SQL("alter role {} password {}").format(sql.Identifier(USER), sql.Literal(verifier.decode()))
                )
        except psycopg.Error as error:
            raise self._failure(f"the embedded server does not answer ({error})") from error

    def _write(self, name: str, text: str) -> None:
        """Write a file beside the data folder; the engine can read the file but not write it."""
        account = self._account
        assert account is not None
        path = self.folder / name
        path.write_text(text)
        os.chown(path, -1, account.gid)
        path.chmod(0o640 if account.other else 0o600)

    def _failure(self, message: str) -> TargetError:
        return TargetError(
            f"{message}; the last lines of its log:{self.log_tail()}",
            where=str(self.binaries.bindir),
            next_step="correct the setting that the log names, or choose another server with DBDYNO_PG_BIN or "
            "another disk with TMPDIR",
        )
