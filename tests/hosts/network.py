"""Hosts in network namespaces of this machine, with delays and cuts between them (switch.c).

    with Network(folder, 3) as network:          # host 0 is the desk
        network.delay(1, 0.010)                  # each frame from or to host 1 takes 10 ms longer: 20 ms a round trip
        with network.inside(1):
            subprocess.Popen(...)                # a process of host 1

The kernel's own delay (`tc netem`) is missing in many kernels, so a program between the hosts adds the delay.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import shutil
import struct
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

import pytest

PORTS = 16
CUT = 0xFFFFFFFF
SOURCE = Path(__file__).with_name("switch.c")


def skip_without_namespaces() -> None:
    """Skip the test if this process cannot make networks."""
    missing = {
        "root": os.geteuid() != 0,
        "/dev/net/tun": not Path("/dev/net/tun").exists(),
        "a C compiler": shutil.which("cc") is None,
        "network namespaces": subprocess.run(["unshare", "--net", "true"], capture_output=True, check=False).returncode,
    }
    if lacks := [name for name, lack in missing.items() if lack]:
        pytest.skip(f"hosts on networks of their own need {', '.join(lacks)}; run as root on a Linux machine")


class Network:
    """Network of hosts 192.0.2.1 (the desk), 192.0.2.2 and so on, which is removed at the end of the context."""

    def __init__(self, folder: Path, hosts: int) -> None:
        self.folder, self.hosts = folder, hosts
        self.held = contextlib.ExitStack()
        self.pids: list[int] = []

    def __enter__(self) -> Network:
        skip_without_namespaces()
        subprocess.run(["cc", "-O2", str(SOURCE), "-o", str(self.folder / "switch")], check=True)
        control = self.folder / "control"
        control.write_bytes(bytes(4 * PORTS))
        file = self.held.enter_context(control.open("r+b"))
        self.control = self.held.enter_context(mmap.mmap(file.fileno(), 4 * PORTS))
        self.pids = [self._namespace() for _ in range(self.hosts)]
        places = [f"{pid}:{self.address(host)}" for host, pid in enumerate(self.pids)]
        switch = self._started([str(self.folder / "switch"), str(control), *places])
        assert switch.stdout is not None and switch.stdout.readline() == b"ready\n"
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.held.close()

    def address(self, host: int) -> str:
        return f"192.0.2.{1 + host}"

    def delay(self, host: int, seconds: float) -> None:
        """Delay each frame from or to a host."""
        struct.pack_into("I", self.control, 4 * host, round(seconds * 1e6))

    def cut(self, host: int) -> None:
        """Drop each frame from or to a host."""
        struct.pack_into("I", self.control, 4 * host, CUT)

    @contextlib.contextmanager
    def inside(self, host: int) -> Iterator[None]:
        """Put what this thread starts and connects to in the meantime on the network of a host."""
        with Path("/proc/thread-self/ns/net").open() as ours, Path(f"/proc/{self.pids[host]}/ns/net").open() as theirs:
            _enter(theirs.fileno())
            try:
                yield
            finally:
                _enter(ours.fileno())

    def _namespace(self) -> int:
        """Return a process with a network namespace of its own, which ends with this one."""
        process, ours = self._started(["unshare", "--net", "cat"]), Path("/proc/self/ns/net").readlink()
        theirs = Path(f"/proc/{process.pid}/ns/net")
        while theirs.readlink() == ours:
            assert process.poll() is None
            time.sleep(0.01)
        return process.pid

    def _started(self, words: list[str]) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.held.enter_context(process)
        self.held.callback(process.kill)
        return process


def _enter(namespace: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(namespace, os.CLONE_NEWNET if hasattr(os, "CLONE_NEWNET") else 0x40000000):
        raise OSError(ctypes.get_errno(), "setns")
