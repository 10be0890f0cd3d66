"""Common parts of servers that tests launch: a private folder, an unprivileged account, and an end with the tests.

    class SomeServer(Launched):
        def create(self) -> None: ...   # makes the folder
        def start(self) -> None: ...    # self.launch(["program", "--option"]) and self.wait_for(answer, OSError, 60)

A server dies with the thread that started it (`setpriv --pdeathsig`), however the thread ends.
"""

from __future__ import annotations

import secrets
import shutil
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Self

import folders_again
from dbdyno.bench.engine.os_user import bare_environment, engine_account
from dbdyno.bench.engine.server_paths import base_folder

LOG = "server.log"
SHOWN = 4_000
"""Number of characters shown from the end of the log if a server does not start."""


class Launched(ABC):
    """One server, as a context manager; `name` is part of its folder's name."""

    def __init__(self, name: str) -> None:
        self.account = engine_account()
        self.folder = base_folder(self.account, None) / f"dbdyno-{name}-{secrets.token_hex(6)}"
        self.process: subprocess.Popen[bytes] | None = None

    @abstractmethod
    def create(self) -> None:
        """Create the folder and its content."""

    @abstractmethod
    def start(self) -> None:
        """Start the server and wait until it answers."""

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

    def launch(self, words: list[str]) -> None:
        """Run a program as the server's account, with its output in the server's log."""
        command = [str(shutil.which("setpriv")), "--pdeathsig", "KILL"]
        if self.account.other:
            command += [f"--reuid={self.account.uid}", f"--regid={self.account.gid}", "--clear-groups"]
        with (self.folder / LOG).open("ab") as log:
            self.process = subprocess.Popen(
                [*command, "--", *words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                env=bare_environment(self.folder),
            )

    def wait_for(self, answer: Callable[[], None], not_yet: type[Exception], limit_s: float) -> None:
        """Repeat `answer` until it succeeds; fail with the server's log if the server has ended or the time is up."""
        assert self.process is not None
        until = time.monotonic() + limit_s
        while True:
            try:
                answer()
            except not_yet:
                log = (self.folder / LOG).read_text(errors="replace")[-SHOWN:]
                assert self.process.poll() is None, log
                assert time.monotonic() < until, log
                time.sleep(0.05)
            else:
                return

    def kill(self) -> None:
        """Kill the server with SIGKILL, like a crash."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()
        self.process = None

    def close(self) -> None:
        """Kill the server and remove its folder; nobody needs its data, so nothing is flushed."""
        if self.process is not None:
            self.kill()
        folders_again.remove(self.folder, ignore_errors=True)
