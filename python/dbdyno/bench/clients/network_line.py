"""An emulated slower network for an external client: a port on 127.0.0.1 that forwards to the real server.

The port exists as long as the client's process. It accepts only that process and the processes that it started, and
only while its arm's sessions are open; every other process on the machine is refused. Bytes pass unchanged, so TLS is
end to end, and the real server asks for passwords.

Limits: Linux only, since the connecting process is looked up in /proc. The server must be reached by TCP.
"""

from __future__ import annotations

import contextlib
import select
import socket
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from dbdyno.base.errors import TargetError

if TYPE_CHECKING:
    from dbdyno import _core
    from dbdyno.base.core_types import LineReport, NetworkLine

STEP_S = 0.1
_LOOPBACK = ("0100007F", "0000000000000000FFFF00000100007F")
"""Address 127.0.0.1 as written in /proc/net/tcp, and as /proc/net/tcp6 shows it for an IPv6 socket."""


class ClientLine:
    """The emulated network of an arm; `environment` returns the variables with which a client connects to a port."""

    def __init__(
        self, spec: NetworkLine, host: str, port: int, environment: Callable[[int], Mapping[str, str]]
    ) -> None:
        self.spec, self.host, self.port, self.environment = spec, host, port, environment
        self.own: _core.LinePort | None = None
        self.thread: threading.Thread | None = None
        self.ended, self.let_in, self.failure = threading.Event(), 0, ""
        self.leader: int | None = None

    def open(self) -> Mapping[str, str]:
        """Open a port that accepts nobody yet, and return the environment of the client.

        Raises:
            TargetError: The server's host is unknown, or the port cannot be opened.
        """
        from dbdyno import _core

        self.close()
        self.own = _core.LinePort(_address(self.host, self.port), self.spec["delay_ns"], self.spec["rate_bit_per_s"])
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._serve, args=(self.own, self.ended), name="line", daemon=True)
        self.thread.start()
        return self.environment(self.own.port())

    def admit(self, leader: int | None) -> None:
        """Accept from now on only connections from this process and its process session; None accepts none."""
        self.leader, self.let_in, self.failure = leader, 0, ""

    def bypass_problem(self, sessions: int) -> str | None:
        """Return why some of a client's open sessions do not use the emulated network, or None if all use it."""
        if self.let_in >= sessions:
            return None
        return self.failure or (
            f"has {sessions} sessions, but connected only {self.let_in} times through its arm's emulated network"
        )

    def lateness(self, arm: int) -> LineReport:
        """Return how late the emulated network delivered data since the last call."""
        pieces, late, most = self.own.lateness() if self.own is not None else (0, 0, 0)
        return {"arm": arm, "pieces": pieces, "late_ns": late, "late_max_ns": most}

    def close(self) -> None:
        """Close the port and every connection through it."""
        self.leader = None
        self.ended.set()
        if self.thread is not None:
            self.thread.join(10 * STEP_S)
        self.thread = self.own = None

    def _serve(self, line_port: _core.LinePort, ended: threading.Event) -> None:
        port = line_port.port()
        while not ended.is_set():
            ready, _, _ = select.select([line_port.fileno()], [], [], STEP_S)
            peer = line_port.accept() if ready else None
            if peer is None:
                continue
            leader = self.leader
            if leader is None or not is_from_session(leader, peer, port):
                line_port.turn_away()
                continue
            try:
                line_port.let_in()
                self.let_in += 1
            except TargetError as error:
                self.failure = f"used the emulated network, but the server behind it does not answer: {error.message}"


def _address(host: str, port: int) -> str:
    """Return the server's address in numeric form.

    Raises:
        TargetError: The host is unknown.
    """
    try:
        family, *_, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except OSError as error:
        raise TargetError(
            f"the host {host!r} cannot be resolved: {error}", next_step="check the name of the host"
        ) from error
    return f"[{place[0]}]:{port}" if family == socket.AF_INET6 else f"{place[0]}:{port}"


def is_from_session(leader: int, peer: int, port: int) -> bool:
    """Return True if a process of the leader's session holds the connection from 127.0.0.1, port `peer`, to `port`."""
    inode = _inode(peer, port)
    return inode is not None and any(_holds(pid, inode) for pid in _members(leader))


def _inode(peer: int, port: int) -> str | None:
    """Return the inode of the socket that is connected from `peer` to `port`, or None."""
    for name in ("tcp", "tcp6"):
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]:
                fields = line.split()
                wanted = [f"{own}:{number:04X}" for own in _LOOPBACK for number in (peer, port)]
                if fields[1] in wanted[::2] and fields[2] in wanted[1::2]:
                    return fields[9]
    return None


def _members(leader: int) -> list[int]:
    """Return the processes of a process session, with the leader first, because usually it is the one that connects."""
    found = [leader]
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and int(entry.name) != leader:
            with contextlib.suppress(OSError, ValueError, IndexError):
                session = int((entry / "stat").read_text().rpartition(")")[2].split()[3])
                found += [int(entry.name)] if session == leader else []
    return found


def _holds(pid: int, inode: str) -> bool:
    """Return True if a process has this socket open."""
    with contextlib.suppress(OSError):
        for entry in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                if str(entry.readlink()) == f"socket:[{inode}]":
                    return True
    return False
