"""A longer line for a client that is another program: a port on 127.0.0.1 in front of the real server.

The port is there as long as the client's process. It lets in only that process and what it started, and only while its
arm's sessions are open; anybody else on the machine who knocks is turned away. Bytes pass unchanged, so TLS is spoken
from end to end, and passwords are asked by the real server.

Limits: Linux, since who knocks is found in /proc. The server is reached by TCP.
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
    from dbdyno.base.core_types import Line, LineReport

STEP_S = 0.1
_LOOPBACK = ("0100007F", "0000000000000000FFFF00000100007F")
"""127.0.0.1 as /proc/net/tcp writes it, and as an IPv6 socket has it in /proc/net/tcp6."""


class ClientLine:
    """The line of an arm. `environment` says for a port how the client finds the server through it."""

    def __init__(self, spec: Line, host: str, port: int, environment: Callable[[int], Mapping[str, str]]) -> None:
        self.spec, self.host, self.port, self.environment = spec, host, port, environment
        self.own: _core.LinePort | None = None
        self.thread: threading.Thread | None = None
        self.ended, self.let_in, self.failure = threading.Event(), 0, ""
        self.leader: int | None = None

    def open(self) -> Mapping[str, str]:
        """Opens a port, which lets nobody in yet; the environment of the client. Raises `TargetError`."""
        from dbdyno import _core

        self.close()
        self.own = _core.LinePort(_address(self.host, self.port), self.spec["delay_ns"], self.spec["rate_bit_per_s"])
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._serve, args=(self.own, self.ended), name="line", daemon=True)
        self.thread.start()
        return self.environment(self.own.port())

    def admit(self, leader: int | None) -> None:
        """From now on lets in this process and what is in its session; None: nobody."""
        self.leader, self.let_in, self.failure = leader, 0, ""

    def refuse_past(self, sessions: int) -> str | None:
        """Why a client that says its sessions are open cannot have opened them through the line; else None."""
        if self.let_in >= sessions:
            return None
        return self.failure or (
            f"has {sessions} sessions and came {self.let_in} times through the line that its arm's network asks for"
        )

    def late(self, arm: int) -> LineReport:
        """How late the line was since this was last asked."""
        pieces, late, most = self.own.lateness() if self.own is not None else (0, 0, 0)
        return {"arm": arm, "pieces": pieces, "late_ns": late, "late_max_ns": most}

    def close(self) -> None:
        """Closes the port and every connection through it."""
        self.leader = None
        self.ended.set()
        if self.thread is not None:
            self.thread.join(10 * STEP_S)
        self.thread = self.own = None

    def _serve(self, own: _core.LinePort, ended: threading.Event) -> None:
        port = own.port()
        while not ended.is_set():
            ready, _, _ = select.select([own.fileno()], [], [], STEP_S)
            peer = own.accept() if ready else None
            if peer is None:
                continue
            leader = self.leader
            if leader is None or not knocks(leader, peer, port):
                own.turn_away()
                continue
            try:
                own.let_in()
                self.let_in += 1
            except TargetError as error:
                self.failure = f"came to the line, and the server behind it does not answer: {error.message}"


def _address(host: str, port: int) -> str:
    """The server's address in numbers. Raises `TargetError` for a host that is none."""
    try:
        family, *_, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except OSError as error:
        raise TargetError(f"the host {host!r} is not known: {error}", next_step="see that its name is right") from error
    return f"[{place[0]}]:{port}" if family == socket.AF_INET6 else f"{place[0]}:{port}"


def knocks(leader: int, peer: int, port: int) -> bool:
    """Whether the connection from a port of 127.0.0.1 to another is of a process in this session."""
    inode = _inode(peer, port)
    return inode is not None and any(_holds(pid, inode) for pid in _members(leader))


def _inode(peer: int, port: int) -> str | None:
    """The socket of whoever connects from `peer` to `port`."""
    for name in ("tcp", "tcp6"):
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]:
                fields = line.split()
                wanted = [f"{own}:{number:04X}" for own in _LOOPBACK for number in (peer, port)]
                if fields[1] in wanted[::2] and fields[2] in wanted[1::2]:
                    return fields[9]
    return None


def _members(leader: int) -> list[int]:
    """The processes of a session; the leader first, which it mostly is."""
    found = [leader]
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and int(entry.name) != leader:
            with contextlib.suppress(OSError, ValueError, IndexError):
                session = int((entry / "stat").read_text().rpartition(")")[2].split()[3])
                found += [int(entry.name)] if session == leader else []
    return found


def _holds(pid: int, inode: str) -> bool:
    """Whether a process has this socket."""
    with contextlib.suppress(OSError):
        for entry in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                if str(entry.readlink()) == f"socket:[{inode}]":
                    return True
    return False
