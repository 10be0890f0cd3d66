"""SSH servers of the tests: cells that answer, are slow, hang, break off or send garbage."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import asyncssh

Behaviour = Callable[[asyncssh.SSHServerProcess], object]


@dataclass
class Keys:
    """SSH keys of a test's servers, in the test's folder."""

    folder: Path

    @property
    def key(self) -> Path:
        """Return the private key that every server accepts."""
        return self.folder / "id_ed25519"

    @property
    def known_hosts(self) -> Path:
        """Return the file with the host keys of all servers."""
        return self.folder / "known_hosts"

    def reach(self, hosts: str, *more: str, timeout_s: float = 5) -> list[str]:
        """Return the options of a command for these hosts, as their user `celladmin`."""
        keys = ("--key", str(self.key), "--known-hosts", str(self.known_hosts))
        return ["-H", hosts, "-l", "celladmin", *keys, "--timeout", str(timeout_s), *more]


@dataclass
class Rig(Keys):
    """Servers in one separate thread, on loopback ports that the system chooses."""

    ports: list[int] = field(default_factory=list)
    jump_port: int = 0
    logins: list[str] = field(default_factory=list)
    jumped_to: list[str] = field(default_factory=list)


class JumpServer(asyncssh.SSHServer):
    """Jump host in front of the cells `behind`, whose ports only it knows."""

    def __init__(self, rig: Rig, behind: Sequence[str]) -> None:
        self.rig = rig
        self.behind = behind

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        """Keep the connection, which is needed for forwarding."""
        self.connection = conn

    def begin_auth(self, username: str) -> bool:
        """Record the user's name."""
        self.rig.logins.append(username)
        return True

    def connection_requested(self, dest_host: str, dest_port: int, *_: object) -> object:
        """Forward to the port of the cell with that name."""
        if dest_host not in self.behind:
            return False
        self.rig.jumped_to.append(dest_host)
        port = self.rig.ports[self.behind.index(dest_host)]
        return self.connection.forward_connection("127.0.0.1", port)


@contextlib.contextmanager
def servers(
    folder: Path, behaviours: list[Behaviour], *, known: bool = True, behind: Sequence[str] = ()
) -> Iterator[Rig]:
    """Start a server for each behaviour, and stop all of them at the end. With `behind`, the names of cells, also start
    a jump host that forwards to them.
    """
    rig = Rig(folder)
    asyncssh.generate_private_key("ssh-ed25519").write_private_key(str(rig.key))
    rig.key.chmod(0o600)
    asyncssh.read_private_key(str(rig.key)).write_public_key(f"{rig.key}.pub")
    host_key = asyncssh.generate_private_key("ssh-ed25519")
    ready, stop = threading.Event(), threading.Event()

    async def serve() -> None:
        opened = [
            await asyncssh.listen(
                "127.0.0.1",
                0,
                server_host_keys=[host_key],
                process_factory=behaviour,
                authorized_client_keys=f"{rig.key}.pub",
                encoding=None,
            )
            for behaviour in behaviours
        ]
        rig.ports += [server.sockets[0].getsockname()[1] for server in opened]
        if behind:
            between = await asyncssh.listen(
                "127.0.0.1",
                0,
                server_host_keys=[host_key],
                authorized_client_keys=f"{rig.key}.pub",
                server_factory=lambda: JumpServer(rig, behind),
            )
            rig.jump_port = between.sockets[0].getsockname()[1]
            opened.append(between)
        lines = (
            []
            if not behind
            else [
                f"{name} {host_key.export_public_key().decode().strip()}"
                for name in (*behind, f"[127.0.0.1]:{rig.jump_port}")
            ]
        )
        lines += [f"[127.0.0.1]:{port} {host_key.export_public_key().decode().strip()}" for port in rig.ports]
        rig.known_hosts.write_text("\n".join(lines if known else []) + "\n")
        ready.set()
        while not stop.is_set():
            await asyncio.sleep(0.02)
        for server in opened:
            server.close()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    assert ready.wait(120)
    try:
        yield rig
    finally:
        stop.set()
        thread.join(5)


def answers(text: str, code: int = 0) -> Behaviour:
    """A cell that answers at once."""

    def behave(process: asyncssh.SSHServerProcess) -> None:
        process.stdout.write(text.encode())
        process.exit(code)

    return behave


def hangs(text: str = "") -> Behaviour:
    """Return a cell that begins an answer and never finishes it."""

    async def behave(process: asyncssh.SSHServerProcess) -> None:
        process.stdout.write(text.encode())
        await asyncio.sleep(600)

    return behave


def breaks_off(text: str) -> Behaviour:
    """Return a cell whose connection breaks in the middle of its answer."""

    async def behave(process: asyncssh.SSHServerProcess) -> None:
        process.stdout.write(text.encode())
        await asyncio.sleep(0.1)
        process.channel.get_connection().abort()

    return behave


def repeats_the_command(process: asyncssh.SSHServerProcess) -> None:
    """Answer with the command itself."""
    process.stdout.write((process.command or "").encode())
    process.exit(3)
