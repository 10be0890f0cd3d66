"""Guardians of tests: forked from a process that has imported their program, instead of each starting an interpreter.

A guardian needs a twentieth of a second of processor time to start, three times that with a database driver, and a test
run starts some three hundred. One process per worker imports the program and the drivers; it creates each guardian with
`CLONE_PARENT`, so that the guardian is a child of the test process, as if that had started it. Everything after the
imports is identical: pipes, signals, environment and end.

Tests of the guardian process itself use `own_interpreters`. A process forked by a test starts its guardians normally.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn
from unittest import mock

import pytest

SYS_CLONE = {"x86_64": 56, "aarch64": 220}
CLONE_PARENT = 0x8000
POLL_S = 0.01

_own = [False]
"""True if the current test needs guardians that are started as users' are."""


class Forked:
    """A guardian as a child process, with the parts of `subprocess.Popen` that its owner uses."""

    def __init__(self, pid: int, stdin: int, stdout: int) -> None:
        self.pid = pid
        self.stdin, self.stdout = os.fdopen(stdin, "wb", 0), os.fdopen(stdout, "rb", 0)
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Return the exit code, negative for a signal, or None while the process runs."""
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self, timeout: float) -> int:
        """Return the exit code; raise `TimeoutExpired` if the process runs longer."""
        until = time.monotonic() + timeout
        while (code := self.poll()) is None:
            if time.monotonic() >= until:
                raise subprocess.TimeoutExpired("guardian", timeout)
            time.sleep(POLL_S)
        return code


class Forks:
    """The process that forks guardians; it starts with the first of them and ends with the test process."""

    def __init__(self) -> None:
        self._owner = os.getpid()
        self._lock = threading.Lock()
        self._line: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, real: Callable[[Path | None], Any], journal: Path | None) -> Any:
        """Return a new guardian."""
        if _own[0] or os.getpid() != self._owner or os.uname().machine not in SYS_CLONE or sys.platform != "linux":
            return real(journal)
        from dbdyno.base.processes import python_environment

        arguments = [str(os.getpid())] + ([] if journal is None else [str(journal.resolve())])
        wanted = {"arguments": arguments, "environment": python_environment(), "folder": str(Path.cwd())}
        theirs_in, ours_in = os.pipe()
        ours_out, theirs_out = os.pipe()
        with self._lock:
            line = self._line or self._begin()
            socket.send_fds(line, [json.dumps(wanted).encode()], [theirs_in, theirs_out, 2])
            os.close(theirs_in)
            os.close(theirs_out)
            pid = int(line.recv(64))
        return Forked(pid, ours_in, ours_out)

    def close(self) -> None:
        """End the forking process; guardians that still run do not need it."""
        if self._line is not None and self._process is not None:
            self._line.close()
            self._process.wait()

    def _begin(self) -> socket.socket:
        """Start this module as a program and return the connection to it."""
        from dbdyno.base.processes import python_environment

        self._line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            command = [sys.executable, "-P", __file__]
            self._process = subprocess.Popen(
                command, stdin=theirs, stdout=subprocess.DEVNULL, env=python_environment(), start_new_session=True
            )
        return self._line


@pytest.fixture
def own_interpreters() -> Iterator[None]:
    """Start each guardian of this test in an interpreter of its own, as `dbdyno` does."""
    _own[:] = [True]
    yield
    _own[:] = [False]


@pytest.fixture(autouse=True, scope="session")
def forked_guardians() -> Iterator[None]:
    """Fork the guardians of the test process."""
    from dbdyno.bench import guardian

    forks, real = Forks(), guardian._spawn
    with mock.patch.object(guardian, "_spawn", lambda journal: forks.start(real, journal)):
        yield
    forks.close()


def _serve() -> NoReturn:
    """Fork a guardian for each message until the test process ends."""
    import psycopg  # noqa: F401
    import pymysql  # noqa: F401

    from dbdyno.bench import guardian

    libc = ctypes.PyDLL(None)
    gc.collect()
    gc.freeze()
    number = SYS_CLONE[os.uname().machine]
    with socket.socket(fileno=0) as line:
        while True:
            text, descriptors, _, _ = socket.recv_fds(line, 1 << 20, 3)
            if not text:
                os._exit(0)
            pid = libc.syscall(number, CLONE_PARENT | signal.SIGCHLD, 0, 0, 0, 0)
            if pid == 0:
                line.detach()
                _become(guardian.main, json.loads(text), descriptors)
            for descriptor in descriptors:
                os.close(descriptor)
            line.send(str(pid).encode())


def _become(main: Callable[[list[str]], int], wanted: dict[str, Any], descriptors: list[int]) -> NoReturn:
    """Run the guardian in this process and end."""
    code = 1
    try:
        for place, descriptor in enumerate(descriptors):
            os.dup2(descriptor, place)
            os.close(descriptor)
        os.setsid()
        os.chdir(wanted["folder"])
        os.environ.clear()
        os.environ.update(wanted["environment"])
        code = main(wanted["arguments"])
    finally:
        os._exit(code)


if __name__ == "__main__":
    _serve()
