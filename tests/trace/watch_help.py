"""Helpers for tests of watchpoints: a server with its own program file, a recorder as its user, registers in use."""

from __future__ import annotations

import contextlib
import ctypes
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from record_help import copied, recorded

from dbdyno.bench.engine.os_user import engine_account
from dbdyno.bench.postgres.binaries import Binaries
from dbdyno.bench.postgres.embedded import EmbeddedPostgres
from dbdyno.trace.record.recording import Recording, RecordingOptions, Texts

_PERF_EVENT_OPEN, _BREAKPOINT, _WRITE = 298, 5, 2
_EXCLUDE_KERNEL, _EXCLUDE_HV = 1 << 5, 1 << 6


@contextlib.contextmanager
def own_server(binaries: Binaries, **settings: Any) -> Iterator[EmbeddedPostgres]:
    """Yield a server whose program file is a copy, so that it has no probes of other tests."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        with EmbeddedPostgres(binaries=copied(binaries, Path(folder)), settings=settings) as running:
            yield running


@contextlib.contextmanager
def watched(engine: EmbeddedPostgres, out: Path, texts: Texts | None = None, **wanted: Any) -> Iterator[Recording]:
    """Record by watchpoints during the block, at any cost."""
    with recorded(engine, out, RecordingOptions(**{"cost_limit": 0, "mode": "watch", **wanted}), texts) as it:
        assert it.core.mode()[0] == "watch"
        yield it


@contextlib.contextmanager
def place_for_server() -> Iterator[Path]:
    """Yield a folder that belongs to the server's user."""
    account = engine_account()
    with tempfile.TemporaryDirectory() as folder:
        if account.other:
            os.chown(folder, account.uid, account.gid)
        yield Path(folder)


def command_as_server(*words: object) -> list[str]:
    """Return the command that runs `trace record` as the server's user, without any capability."""
    account = engine_account()
    program = Path(__file__).parent / "as_server.py"
    user = (str(account.uid), str(account.gid), "none")
    return [sys.executable, str(program), *user, "trace", "record", *map(str, words)]


@contextlib.contextmanager
def as_server(*words: object, cwd: Path) -> Iterator[subprocess.Popen[str]]:
    """Start that command, and enter the block once it records."""
    with subprocess.Popen(
        command_as_server(*words), cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as recorder:
        while not _records(recorder.pid):
            assert recorder.poll() is None, recorder.communicate()
            time.sleep(0.01)
        try:
            yield recorder
        finally:
            recorder.kill()


def _records(pid: int) -> bool:
    """Return True if the recording thread has started."""
    with contextlib.suppress(OSError):
        return any(path.read_text() == "dyno-record\n" for path in Path(f"/proc/{pid}/task").glob("*/comm"))
    return False


class _Attributes(ctypes.Structure):
    _fields_ = (
        ("kind", ctypes.c_uint32),
        ("size", ctypes.c_uint32),
        ("config", ctypes.c_uint64 * 4),
        ("flags", ctypes.c_uint64),
        ("wakeup", ctypes.c_uint32),
        ("breakpoint", ctypes.c_uint32),
        ("address", ctypes.c_uint64),
        ("length", ctypes.c_uint64),
        ("rest", ctypes.c_uint64 * 7),
    )


@contextlib.contextmanager
def registers_taken(pid: int) -> Iterator[None]:
    """Occupy all four debug registers of a process, with unused places in its stack."""
    line = next(line for line in Path(f"/proc/{pid}/maps").read_text().splitlines() if line.endswith("[stack]"))
    begin = int(line.partition("-")[0], 16)
    libc = ctypes.CDLL(None, use_errno=True)
    with contextlib.ExitStack() as stack:
        for number in range(4):
            attributes = _Attributes(
                kind=_BREAKPOINT,
                size=ctypes.sizeof(_Attributes),
                flags=_EXCLUDE_KERNEL | _EXCLUDE_HV,
                breakpoint=_WRITE,
                address=begin + 8 * number,
                length=4,
            )
            fd = libc.syscall(_PERF_EVENT_OPEN, ctypes.byref(attributes), pid, -1, -1, 0)
            assert fd >= 0, os.strerror(ctypes.get_errno())
            stack.callback(os.close, fd)
        yield
