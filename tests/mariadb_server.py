"""A MariaDB server of our own for tests and benches: made, started, killed, started again, removed.

    with MariaServer() as server:
        server.connect().cursor().execute("select 1")

It runs as the unprivileged account that embedded engines run as, on 127.0.0.1 at a port picked at
run time, its data in a private temporary folder, its accounting (performance_schema) switched on.
It dies with the thread that started it (`setpriv --pdeathsig`), however that ends. Without Debian's
package mariadb-server-core, `missing()` says so; DBDYNO_MARIADB_BIN names another server's programs.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from dbdyno.bench.engine.account import bare_environment, engine_account, run_as
from dbdyno.bench.engine.places import base_folder, free_port
from dbdyno.bench.mariadb.binaries import find_programs
from dbdyno.errors import TargetError

OPTIONS = (
    "--bind-address=127.0.0.1",
    "--performance-schema=ON",
    "--innodb-buffer-pool-size=64M",
    "--max-connections=300",
)
"""Where the server differs from its defaults; the caller's options come after these."""

START_S = 240.0  # a machine under load; 11.4 makes a key for TLS at each start
USER = "root"


def missing() -> str | None:
    """Why no server can be started here; None where it can."""
    if shutil.which("setpriv") is None:
        return "setpriv not found; make setup-test"
    try:
        find_programs()
    except TargetError as error:
        return f"{error}; make setup-test"
    return None


class MariaServer:
    """One server, as a context manager. `options`: arguments of mariadbd."""

    def __init__(self, options: Sequence[str] = ()) -> None:
        self.options = tuple(options)
        self.account = engine_account()
        self.programs = find_programs()
        base = base_folder(self.account, None)
        self.folder = base / f"dbdyno-maria-{secrets.token_hex(6)}"
        self.data = self.folder / "data"
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def dsn(self) -> str:
        """What a user would give as a target."""
        return self.dsn_of(USER)

    def dsn_of(self, login: str, options: str = "") -> str:
        """The same for another user, with a password behind a colon."""
        return f"mariadb://{login}@127.0.0.1:{self.port}/test{options}"

    def connect(self, **more: Any) -> Any:
        """A connection that commits by itself."""
        import pymysql

        given = {"host": "127.0.0.1", "port": self.port, "user": USER, "autocommit": True}
        return pymysql.connect(**{**given, **more})

    def __enter__(self) -> Self:
        try:
            self.create()
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

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
        """Starts the server and waits until it answers."""
        account = self.account
        command = [str(shutil.which("setpriv")), "--pdeathsig", "KILL"]
        if account.other:
            command += [f"--reuid={account.uid}", f"--regid={account.gid}", "--clear-groups"]
        command += ["--", str(self.programs.server), "--no-defaults", *self.programs.options, *OPTIONS, *self.options]
        command += [f"--datadir={self.data}", f"--port={self.port}", f"--tmpdir={self.folder}"]
        command += [f"--socket={self.folder}/s", f"--pid-file={self.folder}/pid"]
        with (self.folder / "server.log").open("ab") as log:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                env=bare_environment(self.folder),
            )
        self._wait()

    def stop(self) -> None:
        """A clean end; 30 s later an unclean one."""
        if self.process is None:
            return
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self.process.wait()
        self.process = None

    def kill(self) -> None:
        """SIGKILL: what a crash looks like from outside."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()
        self.process = None

    def close(self) -> None:
        """Ends the server and removes its folder."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _wait(self) -> None:
        import pymysql

        assert self.process is not None
        until = time.monotonic() + START_S
        while True:
            try:
                self.connect().close()
            except pymysql.OperationalError:
                log = Path(self.folder / "server.log").read_text(errors="replace")
                assert self.process.poll() is None, log
                assert time.monotonic() < until, log
                time.sleep(0.05)
            else:
                return
