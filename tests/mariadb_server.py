"""A private MariaDB server for tests and benches, which can be created, started, killed, restarted and removed.

    with MariaServer() as server:
        server.connect().cursor().execute("select 1")

It runs as the unprivileged account that embedded engines run as, on 127.0.0.1 at a port chosen at run time; its data
are in a private temporary folder, and performance_schema is on. Without Debian's package mariadb-server-core,
`missing()` says so; DBDYNO_MARIADB_BIN names another server's programs.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from typing import Any

from dbdyno.base.errors import TargetError
from dbdyno.bench.engine.os_user import run_as
from dbdyno.bench.engine.server_paths import free_port
from dbdyno.bench.mariadb.binaries import find_programs
from launched import Launched

OPTIONS = (
    "--bind-address=127.0.0.1",
    "--performance-schema=ON",
    "--innodb-buffer-pool-size=64M",
    "--max-connections=300",
)
"""Options that differ from the server's defaults; the caller's options come after these."""

START_S = 240.0  # a machine under load; 11.4 makes a key for TLS at each start
USER = "root"


def missing() -> str | None:
    """Return the reason why no server can be started here, or None."""
    if shutil.which("setpriv") is None:
        return "setpriv not found; make setup-test"
    try:
        find_programs()
    except TargetError as error:
        return f"{error}; make setup-test"
    return None


class MariaServer(Launched):
    """One MariaDB server, as a context manager; `options` are arguments of mariadbd."""

    def __init__(self, options: Sequence[str] = ()) -> None:
        super().__init__("maria")
        self.options = tuple(options)
        self.programs = find_programs()
        self.data = self.folder / "data"
        self.port = free_port()

    @property
    def dsn(self) -> str:
        """Return the connection string that a user would enter as the target."""
        return self.dsn_of(USER)

    def dsn_of(self, login: str, options: str = "") -> str:
        """Return the connection string for another login, which can contain a password after a colon."""
        return f"mariadb://{login}@127.0.0.1:{self.port}/test{options}"

    def connect(self, **more: Any) -> Any:
        """Open a connection in autocommit mode, without TLS, because its set-up costs ten times as much as the rest."""
        import pymysql

        given = {"host": "127.0.0.1", "port": self.port, "user": USER, "autocommit": True, "ssl_disabled": True}
        return pymysql.connect(**{**given, **more})

    def create(self) -> None:
        """Makes the data folder."""
        self.folder.mkdir(mode=0o700)
        if self.account.other:
            os.chown(self.folder, self.account.uid, self.account.gid)
        options = [*self.programs.options, f"--datadir={self.data}", "--auth-root-authentication-method=normal"]
        # A server that starts removes all temporary tables of its folder, those of the others, too.
        options += [f"--tmpdir={self.folder}"]
        done = run_as(self.account, [self.programs.install, "--no-defaults", *options], cwd=self.folder)
        assert done.returncode == 0, done.stdout

    def start(self) -> None:
        """Start the server and wait until it answers."""
        import pymysql

        command = [str(self.programs.server), "--no-defaults", *self.programs.options, *OPTIONS, *self.options]
        command += [f"--datadir={self.data}", f"--port={self.port}", f"--tmpdir={self.folder}"]
        command += [f"--socket={self.folder}/s", f"--pid-file={self.folder}/pid"]
        self.launch(command)
        self.wait_for(self._knock, pymysql.OperationalError, START_S)

    def stop(self) -> None:
        """Shut the server down cleanly; kill it if that takes more than 30 s."""
        if self.process is None:
            return
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self.process.wait()
        self.process = None

    def close(self) -> None:
        """Shut the server down cleanly and remove its folder."""
        self.stop()
        super().close()

    def _knock(self) -> None:
        self.connect().close()


def running_server() -> Iterator[MariaServer]:
    """Yield a running server, as a fixture; skip its tests, with the command that installs it, if it is missing."""
    import pytest

    if reason := missing():
        pytest.skip(reason)
    with MariaServer() as server:
        yield server
