"""A PostgreSQL server of our own: made, started, used and removed, without an account or a
configuration.

    with EmbeddedPostgres() as engine:
        engine.conninfo()      # {'host': '/var/tmp/dbdyno-3f.../s', 'port': '40123', 'user':
        'postgres', ...}

It lives in one private folder (0700, random name) under `workdir`, TMPDIR or /var/tmp: on a disk,
because a laboratory that measures commits must not run in memory by accident; `facts()` says where
it is. Within that folder the Unix socket is open without a password; TCP on 127.0.0.1 asks for a
random one (SCRAM). Durability is PostgreSQL's default: fsync, full page writes, synchronous commit
and the WAL's settings are left alone.

    <workdir>/dbdyno-<random>/        ours; the engine's group may pass through (0710 for root, else
    0700)
        postgresql.conf pg_hba.conf   ours; the engine reads them, includes data/postgresql.conf
        server.log
        data/  s/                     the engine's, 0700: its data, its socket

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
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from dbdyno.bench.guardian import Guardian
from dbdyno.bench.host.machine import file_system
from dbdyno.bench.postgres.account import (
    Account,
    bare_environment,
    engine_account,
    run_as,
    within_reach,
)
from dbdyno.bench.postgres.binaries import Binaries, find_binaries
from dbdyno.bench.postgres.places import base_folder, free_port, socket_folder
from dbdyno.bench.postgres.setting_values import (
    SettingValue,
    as_text,
    configuration_line,
    quoted_element,
)
from dbdyno.bench.undo import ServerUndo, server_processes, stop_server
from dbdyno.errors import TargetError

LABORATORY_SETTINGS: dict[str, SettingValue] = {
    "shared_buffers": "256MB",
    "max_connections": 200,
    "track_io_timing": True,
    "log_checkpoints": True,
    "log_line_prefix": "%m [%p] %a ",
}
"""Where an embedded engine differs from PostgreSQL's defaults; `settings` of the caller come after
these.
"""

START_S = 60.0
USER = "postgres"
DATABASE = "postgres"


class EmbeddedPostgres:
    """A server of our own, as a context manager.

    `workdir`: the folder in which the private folder is made. `settings`: server settings in effect
    from the start; `initdb`: further options of initdb. `guardian`: one to share; its own otherwise.
    `keep`: stop at the end, but leave the folder for a look.
    """

    def __init__(
        self,
        workdir: Path | None = None,
        settings: Mapping[str, SettingValue] | None = None,
        *,
        guardian: Guardian | None = None,
        binaries: Binaries | None = None,
        initdb: Sequence[str] = (),
        keep: bool = False,
    ) -> None:
        self._initdb = tuple(initdb)
        self.keep = keep
        self.port = 0
        self.password = secrets.token_urlsafe(24)
        self._settings = {**LABORATORY_SETTINGS, **(settings or {})}
        self._binaries = binaries
        self._workdir = workdir
        self._own_guardian = guardian is None
        self._guardian = guardian or Guardian()
        self._undo: int | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._account: Account | None = None
        self._has_password = False
        self._log_start = 0
        self.folder = Path()
        self.socket_dir = Path()

    @property
    def binaries(self) -> Binaries:
        """The server's programs in use. Raises `TargetError` before the start."""
        if self._binaries is None:
            raise TargetError("the embedded server was not started")
        return self._binaries

    @property
    def data_dir(self) -> Path:
        """The data folder."""
        return self.folder / "data"

    @property
    def log_file(self) -> Path:
        """The server's log, initdb's output first."""
        return self.folder / "server.log"

    @property
    def running(self) -> bool:
        """Whether the server's first process lives."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int | None:
        """The number of the server's first process while it runs."""
        return self._process.pid if self._process and self.running else None

    def conninfo(self) -> dict[str, str]:
        """libpq's parameters over the private socket (no password is asked there)."""
        return {
            "host": str(self.socket_dir),
            "port": str(self.port),
            "user": USER,
            "dbname": DATABASE,
        }

    def tcp_conninfo(self) -> dict[str, str]:
        """libpq's parameters over 127.0.0.1, with the password."""
        return {**self.conninfo(), "host": "127.0.0.1", "password": self.password}

    def facts(self) -> dict[str, str | bool]:
        """Where the server came from and on what it stores."""
        found = file_system(self.data_dir)
        return {
            "engine_source": self.binaries.source,
            "engine_user": self._account.name if self._account else "",
            "data_folder": str(self.data_dir),
            "data_in_memory": bool(found and found.in_memory),
        }

    def __enter__(self) -> Self:
        try:
            self.start()
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

    def start(self) -> None:
        """Make the data folder if there is none yet, and start the server.

        Raises `TargetError` with the log's end.
        """
        if self.running:
            return
        if self._account is None:
            self._create()
        for attempt in range(3):
            try:
                self._launch()
                break
            except TargetError as error:
                taken = "could not create any TCP/IP sockets" in str(error)
                if not taken or attempt == 2 or self._has_password:
                    raise  # a restart keeps its port: others know it
                self._configure(free_port())
        if not self._has_password:
            self._set_password()
            self._has_password = True

    def stop(self) -> None:
        """Stop the server: fast, then at once. Stopping a stopped server is no error."""
        process = self._process
        if process is None:
            return
        for number, patience_s in ((signal.SIGINT, 30), (signal.SIGQUIT, 10)):
            with contextlib.suppress(subprocess.TimeoutExpired):
                if process.poll() is None:
                    process.send_signal(number)
                    process.wait(patience_s)
        if process.poll() is None or process.returncode != 0:
            stop_server(self.data_dir, fast_s=0, immediate_s=2)
        process.wait()
        self._process = None

    def restart(self) -> None:
        """Stop and start; settings that need it take effect.

        Raises `TargetError` with the log's end.
        """
        self.stop()
        self.start()

    def reload(self) -> None:
        """Have the server read its configuration again (SIGHUP); sessions see it a little later."""
        if self._process is not None:
            self._process.send_signal(signal.SIGHUP)

    def read_auto_conf(self) -> bytes:
        """The content of postgresql.auto.conf, where ALTER SYSTEM writes."""
        path = self.data_dir / "postgresql.auto.conf"
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
            return file.read()

    def write_auto_conf(self, content: bytes) -> None:
        """Put a content of `read_auto_conf` back, whole or not at all."""
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

    def log_tail(self) -> str:
        """The last lines that the server logged since its start, indented, each on a line."""
        log = self.log_file.read_bytes()[self._log_start :] if self.log_file.exists() else b""
        lines = log.decode(errors="replace").splitlines()[-8:]
        return "".join(f"\n    {line}" for line in lines) or " (none)"

    def close(self) -> None:
        """Stop and remove everything (the folder stays with `keep`)."""
        try:
            self.stop()
            if any(server_processes(self.data_dir)):  # an initdb that was interrupted
                stop_server(self.data_dir, fast_s=0, immediate_s=2)
            if not self.keep:
                for folder in {self.folder, self.socket_dir} - {Path()}:
                    shutil.rmtree(folder, ignore_errors=True)
        finally:
            if self._undo is not None:
                self._guardian.discard(self._undo)
                self._undo = None
            if self._own_guardian:
                self._guardian.close()

    def _create(self) -> None:
        account = engine_account()
        self._binaries = within_reach(account, self._binaries or find_binaries())
        base = base_folder(account, self._workdir)
        self.folder = base / f"dbdyno-{secrets.token_hex(6)}"
        self.socket_dir = socket_folder(self.folder)
        self._undo = self._guardian.push(
            ServerUndo(
                "embedded server",
                str(self.data_dir),
                tuple(sorted({str(self.folder), str(self.socket_dir)})),
                self.keep,
            )
        )
        try:
            self.folder.mkdir(mode=0o700)
            if account.other:
                os.chown(self.folder, -1, account.gid)
                self.folder.chmod(0o710)
            for folder in (self.data_dir, self.socket_dir):
                folder.mkdir(mode=0o700)
                os.chown(folder, account.uid, account.gid)
        except OSError as error:
            raise TargetError(
                f"cannot make a folder for the embedded server: {error}",
                where=str(base),
                next_step="name another folder with TMPDIR",
            ) from error
        self._account = account
        self._init_data(account)

    def _init_data(self, account: Account) -> None:
        command: list[str | Path] = [self.binaries.program("initdb"), "-D", self.data_dir]
        command += ["-U", USER, "-E", "UTF8", "--locale=C", "-A", "trust"]
        command += [*self._initdb, "--no-sync"]  # nobody needs the empty cluster after a power cut
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

    def _launch(self) -> None:
        account = self._account
        assert account is not None
        with self.log_file.open("ab") as log:
            self._log_start = log.tell()
            self._process = subprocess.Popen(
                [
                    self.binaries.program("postgres"),
                    *("-D", self.data_dir),
                    *("-c", f"config_file={self.folder / 'postgresql.conf'}"),
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
        deadline = time.monotonic() + START_S
        while not self._ready(self._process.pid):
            if self._process.poll() is not None:
                self._process = None
                raise self._failure("the embedded server did not start")
            if time.monotonic() > deadline:
                raise self._failure(f"the embedded server was not ready after {START_S:.0f} s")
            time.sleep(0.01)

    def _ready(self, pid: int) -> bool:
        try:
            lines = (self.data_dir / "postmaster.pid").read_text().splitlines()
        except OSError:
            return False
        return len(lines) > 7 and lines[0] == str(pid) and lines[7].strip() == "ready"

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
        """A file of ours beside the data; the engine may read it."""
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
            next_step="correct the setting that the log names; or choose another server with"
            " DBDYNO_PG_BIN, another disk with TMPDIR",
        )
