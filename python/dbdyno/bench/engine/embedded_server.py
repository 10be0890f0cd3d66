"""Servers that dbdyno starts itself, for any engine: a private folder and a process, both removed at the end.

The folder (mode 0700, random name) is created under the caller's folder, TMPDIR or /var/tmp: on a disk, because a
laboratory that measures commits must not run in memory by accident. If this process dies, the guardian stops the server
and removes the folder.
"""

from __future__ import annotations

import secrets
import shutil
import signal
import subprocess
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Self

from dbdyno.base.closeable import Closeable
from dbdyno.base.errors import TargetError, errors_as
from dbdyno.bench.engine.mounted_volumes import MountedVolumes
from dbdyno.bench.engine.os_user import Account, bare_environment
from dbdyno.bench.engine.server_paths import base_folder
from dbdyno.bench.engine.volumes import Volume
from dbdyno.bench.guardian import Guardian
from dbdyno.bench.host.machine import file_system
from dbdyno.bench.undo import ServerUndo, server_processes, stop_server

LOG_LINES = 8


class EmbeddedServer(Closeable):
    """A server as a context manager; subclasses create its data and start its program."""

    signals: Sequence[tuple[signal.Signals, float]] = ((signal.SIGTERM, 60.0),)
    """Signals that ask the server to end, each with the number of seconds to wait after it."""
    start_s = 60.0
    """Longest wait for the server to become ready, in seconds."""
    databases = "."
    """Folder of all databases, relative to the data folder."""
    failure_step = "correct the setting that the log names"
    """Next step if the server does not start or answer."""
    keep = False
    """True if the folder is kept at the end for inspection."""

    def __init__(self, guardian: Guardian | None, volumes: Sequence[Volume] = ()) -> None:
        """Create a server that is not started yet.

        Args:
            guardian: A guardian to share; None starts a private one.
            volumes: Modelled devices for its files.

        Raises:
            DeviceError: There are volumes, and this machine cannot mount folders.
        """
        self.volumes = MountedVolumes(volumes)
        self._own_guardian = guardian is None
        self._guardian = guardian or Guardian()
        self._undo: int | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._account: Account | None = None
        self._log_start = 0
        self.folder = Path()

    @property
    def data_dir(self) -> Path:
        """Return the data folder."""
        return self.volumes.data_folder(self.folder)

    def data_files(self) -> Iterator[Path]:
        """Yield the files of all databases."""
        return files_below(self.data_dir / self.databases)

    @property
    def log_file(self) -> Path:
        """Return the path of the server's log."""
        return self.folder / "server.log"

    @property
    def running(self) -> bool:
        """Return True if the server's main process is alive."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int | None:
        """Return the ID of the server's main process while it runs, otherwise None."""
        return self._process.pid if self._process and self.running else None

    @property
    @abstractmethod
    def source(self) -> str:
        """Return where the server's programs came from."""

    @abstractmethod
    def start(self) -> None:
        """Create the data folder if there is none yet, and start the server.

        Raises:
            TargetError: The server did not start; the error includes the end of its log.
        """

    def _failure(self, message: str) -> TargetError:
        """Return an error that includes the end of the log and the next step."""
        words = f"{message}; the last lines of its log:{self.log_tail()}"
        return TargetError(words, where=str(self.folder), next_step=self.failure_step)

    def facts(self) -> dict[str, str | bool]:
        """Return the origin of the server's programs, its user, its data folder, and whether that is in memory.

        Data on a modelled device count as not in memory: requests take the device's time, whatever storage is below it.
        """
        found = None if self.volumes else file_system(self.data_dir)
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

    def stop(self) -> None:
        """Stop the server, cleanly if possible, otherwise by force; stopping a stopped server is not an error."""
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

    def log_since_start(self) -> str:
        """Return what the server logged since its start."""
        log = self.log_file.read_bytes()[self._log_start :] if self.log_file.exists() else b""
        return log.decode(errors="replace")

    def log_tail(self) -> str:
        """Return the last lines that the server logged since its start, indented, each on a separate line."""
        return indent_log(self.log_since_start()) or " (none)"

    def close(self) -> None:
        """Stop the server, remove its folders unless `keep` is set, and close the guardian if it is not shared."""
        try:
            if self.volumes and not self.keep and self.running:  # a checkpoint on a slow device would take minutes
                stop_server(self.data_dir, fast_s=0, immediate_s=2)
            self.stop()
            if self.folder != Path():
                if any(server_processes(self.data_dir)):  # creation of the data folder was interrupted
                    stop_server(self.data_dir, fast_s=0, immediate_s=2)
                self.volumes.unmount()
                for folder in () if self.keep else self._folders():
                    shutil.rmtree(folder, ignore_errors=True)
        finally:
            if self._undo is not None:
                self._guardian.discard(self._undo)
                self._undo = None
            if self._own_guardian:
                self._guardian.close()

    def _folders(self) -> set[Path]:
        """Return the folders to remove at the end."""
        return {self.folder}

    def _make_folder(self, account: Account, workdir: Path | None, fill: Callable[[], None]) -> None:
        """Create the server's folder after registering it with the guardian; `fill` sets its owner and content.

        Raises:
            TargetError: The folder cannot be created.
        """
        base = base_folder(account, workdir)
        self.folder = base / f"dbdyno-{secrets.token_hex(6)}"
        folders = tuple(sorted(map(str, self._folders())))
        mounts = tuple(map(str, self.volumes.folders(self.folder)))
        self._undo = self._guardian.push(ServerUndo("embedded server", str(self.data_dir), folders, self.keep, mounts))
        problem, step = "cannot make a folder for the embedded server", "name another folder with TMPDIR"
        with errors_as(TargetError, OSError, problem, str(base), step):
            self.folder.mkdir(mode=0o700)
            fill()
        self._account = account

    def _launch(self, command: Sequence[str | Path], ready: Callable[[], bool]) -> None:
        """Start the server's program and wait until `ready` returns True.

        Raises:
            TargetError: The program ended, or was not ready after `start_s` seconds.
        """
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
        deadline = time.monotonic() + self.start_s
        while not ready():
            if process.poll() is not None:
                self._process = None
                raise self._failure("the embedded server did not start")
            if time.monotonic() > deadline:
                raise self._failure(f"the embedded server was not ready after {self.start_s:.0f} s")
            time.sleep(0.01)


def files_below(folder: Path) -> Iterator[Path]:
    """Yield the regular files in a folder and its subfolders, sorted by path, without symbolic links."""
    yield from (path for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink())


def _end(process: subprocess.Popen[bytes], number: signal.Signals, patience_s: float) -> None:
    if process.poll() is not None:
        return
    process.send_signal(number)
    try:
        process.wait(patience_s)
    except subprocess.TimeoutExpired:
        return


def indent_log(text: str) -> str:
    """Return the last `LOG_LINES` lines of a program's output, each on a separate indented line."""
    return "".join(f"\n    {line}" for line in text.splitlines()[-LOG_LINES:])
