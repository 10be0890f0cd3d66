"""A server of our own, whatever its engine: a private folder, a process, an end.

The folder is one (0700, random name) under the caller's, TMPDIR or /var/tmp: on a disk, because a laboratory that
measures commits must not run in memory by accident. When this process dies, the guardian stops the server and removes
the folder.
"""

from __future__ import annotations

import secrets
import shutil
import signal
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from dbdyno.base.errors import TargetError
from dbdyno.bench.engine.os_user import Account, bare_environment
from dbdyno.bench.engine.server_paths import base_folder
from dbdyno.bench.guardian import Guardian
from dbdyno.bench.host.machine import file_system
from dbdyno.bench.undo import ServerUndo, server_processes, stop_server

START_S = 60.0
LOG_LINES = 8


class OwnServer(ABC):
    """A server as a context manager; made concrete by what makes its data and starts its program."""

    signals: Sequence[tuple[signal.Signals, float]] = ((signal.SIGTERM, 60.0),)
    """What asks the server to end, and for how many seconds each is waited."""
    databases = "."
    """The folder of all databases, in the data folder."""
    keep = False
    """Whether the folder stays at the end, for a look."""

    def __init__(self, guardian: Guardian | None) -> None:
        """`guardian`: one to share; its own otherwise."""
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

    def data_files(self) -> Iterator[Path]:
        """The files of all databases."""
        return files_below(self.data_dir / self.databases)

    @property
    def log_file(self) -> Path:
        """The server's log."""
        return self.folder / "server.log"

    @property
    def running(self) -> bool:
        """Whether the server's first process lives."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int | None:
        """The number of the server's first process while it runs."""
        return self._process.pid if self._process and self.running else None

    @property
    @abstractmethod
    def source(self) -> str:
        """Where the server's programs came from."""

    @abstractmethod
    def start(self) -> None:
        """Makes the data folder if there is none yet, and starts the server. Raises `TargetError` with the log's
        end."""

    @abstractmethod
    def _failure(self, message: str) -> TargetError:
        """An error with the end of the log and the next step."""

    def facts(self) -> dict[str, str | bool]:
        """Where the server came from, on what it stores, and as whom it runs."""
        found = file_system(self.data_dir)
        return {
            "engine_source": self.source,
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

    def stop(self) -> None:
        """Stops the server: with a clean end, else by force. Stopping a stopped server is no error."""
        process = self._process
        if process is None:
            return
        for number, patience_s in self.signals:
            _end(process, number, patience_s)
        if process.poll() is None or process.returncode != 0:
            stop_server(self.data_dir, fast_s=0, immediate_s=2)
        if process.poll() is None:
            process.kill()
        process.wait()
        self._process = None

    def log_tail(self) -> str:
        """The last lines that the server logged since its start, indented, each on a line."""
        log = self.log_file.read_bytes()[self._log_start :] if self.log_file.exists() else b""
        return indented(log.decode(errors="replace")) or " (none)"

    def close(self) -> None:
        """Stops and removes everything."""
        try:
            self.stop()
            if self.folder != Path():
                if any(server_processes(self.data_dir)):  # making the data folder was interrupted
                    stop_server(self.data_dir, fast_s=0, immediate_s=2)
                for folder in () if self.keep else self._folders():
                    shutil.rmtree(folder, ignore_errors=True)
        finally:
            if self._undo is not None:
                self._guardian.discard(self._undo)
                self._undo = None
            if self._own_guardian:
                self._guardian.close()

    def _folders(self) -> set[Path]:
        """What is removed at the end."""
        return {self.folder}

    def _make_folder(self, account: Account, workdir: Path | None, fill: Callable[[], None]) -> None:
        """A new folder, known to the guardian before it is made; `fill` sets its owner and makes what it holds.
        Raises `TargetError`."""
        base = base_folder(account, workdir)
        self.folder = base / f"dbdyno-{secrets.token_hex(6)}"
        folders = tuple(sorted(map(str, self._folders())))
        self._undo = self._guardian.push(ServerUndo("embedded server", str(self.data_dir), folders, self.keep))
        try:
            self.folder.mkdir(mode=0o700)
            fill()
        except OSError as error:
            raise TargetError(
                f"cannot make a folder for the embedded server: {error}",
                where=str(base),
                next_step="name another folder with TMPDIR",
            ) from error
        self._account = account

    def _launch(self, command: Sequence[str | Path], ready: Callable[[], bool]) -> None:
        """Starts the server's program and waits until it answers."""
        account = self._account
        assert account is not None
        with self.log_file.open("ab") as log:
            self._log_start = log.tell()
            self._process = process = subprocess.Popen(
                command,
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
        while not ready():
            if process.poll() is not None:
                self._process = None
                raise self._failure("the embedded server did not start")
            if time.monotonic() > deadline:
                raise self._failure(f"the embedded server was not ready after {START_S:.0f} s")
            time.sleep(0.01)


def files_below(folder: Path) -> Iterator[Path]:
    """The regular files in a folder and its folders."""
    yield from (path for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink())


def _end(process: subprocess.Popen[bytes], number: signal.Signals, patience_s: float) -> None:
    if process.poll() is not None:
        return
    process.send_signal(number)
    try:
        process.wait(patience_s)
    except subprocess.TimeoutExpired:
        return


def indented(text: str) -> str:
    """The last lines of a program's words, each on an indented line of its own."""
    return "".join(f"\n    {line}" for line in text.splitlines()[-LOG_LINES:])
