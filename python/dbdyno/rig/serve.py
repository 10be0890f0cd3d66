"""The SSH servers of a modelled rack: one a cell, each with a host key of its own, keys only.

What a session may do is ask this cell's CellCLI, `hostname`, `uptime`, `whoami`, `date`, and end.
No line ever reaches a shell: it is cut as a POSIX shell would cut it, and what is not one of these
words is answered as a shell answers to what it does not find.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbdyno.errors import CellsError
from dbdyno.rig.cell import Cell

if TYPE_CHECKING:
    import asyncssh

USER = "celladmin"
_OPERATORS = set("|&;<>()")
Said = tuple[str, str, int]
"""Output, errors, exit code."""


@dataclass(frozen=True)
class Served:
    """Where the cells can be reached: ports in their order, the file of their host keys, and the
    private key that is let in (None where the user's own keys are)."""

    listen: str
    ports: list[int]
    known_hosts: Path
    key: Path | None

    @property
    def hosts(self) -> str:
        """The cells as `--hosts` wants them."""
        host = f"[{self.listen}]" if ":" in self.listen else self.listen
        return ",".join(f"{host}:{port}" for port in self.ports)

    @property
    def reach(self) -> str:
        """The options of `dbdyno cells` that reach them."""
        key = f" --key {shlex.quote(str(self.key))}" if self.key else ""
        known = shlex.quote(str(self.known_hosts))
        return f"--hosts {self.hosts} --user {USER} --known-hosts {known}{key}"


def shell(cell: Cell, line: str) -> Said:
    """What a line of a shell on the cell gives."""
    try:
        lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>()")
        lexer.whitespace_split, lexer.commenters = True, ""
        words = list(lexer)
    except ValueError as error:
        return "", f"-bash: syntax error: {error}\n", 2
    if not words:
        return "", "", 0
    for at in words:
        if at and set(at) <= _OPERATORS:
            return "", f"-bash: `{at}' is not understood by this modelled cell\n", 2
    name, *rest = words
    if name == "cellcli":
        return _cellcli(cell, rest)
    trivial = _TRIVIAL.get(name)
    if trivial is not None:
        return trivial(cell), "", 0
    return "", f"-bash: {name}: command not found\n", 127


def _cellcli(cell: Cell, words: Sequence[str]) -> Said:
    xml = False
    for at, option in enumerate(words):
        if option == "-xml":
            xml = True
        elif option == "-e":
            output, code = cell.answer(" ".join(words[at + 1 :]), xml=xml)
            return output, "", code
        elif option != "-n":
            return "", f"cellcli: unknown option {option}\n", 1
    return "", "cellcli: this modelled cell has no CellCLI to talk to; -e COMMAND asks it\n", 1


def _clock(cell: Cell) -> datetime:
    return datetime.fromtimestamp(cell.rack.clock_ns() // 10**9, UTC)


def _uptime(cell: Cell) -> str:
    minutes = cell.rack.now_ns // (60 * 10**9)
    up = f"{minutes // 1440} days, {minutes // 60 % 24:2}:{minutes % 60:02}"
    return f" {_clock(cell):%H:%M:%S} up {up},  1 user,  load average: 0.00, 0.00, 0.00\n"


_TRIVIAL: dict[str, Callable[[Cell], str]] = {
    "hostname": lambda cell: f"{cell.name}\n",
    "uptime": _uptime,
    "whoami": lambda _: f"{USER}\n",
    "date": lambda cell: f"{_clock(cell):%a %b %d %H:%M:%S UTC %Y}\n",
    "true": lambda _: "",
}


async def _session(cell: Cell, process: asyncssh.SSHServerProcess[bytes]) -> None:
    """One session: the command that it came with, or lines until it ends."""
    try:
        if process.command is not None:
            said = await asyncio.to_thread(shell, cell, process.command)
            _tell(process, said)
            process.exit(said[2])
            return
        code = await _lines(cell, process)
        process.exit(code)
    except (BrokenPipeError, ConnectionError):
        pass  # The other side has gone.


async def _lines(cell: Cell, process: asyncssh.SSHServerProcess[bytes]) -> int:
    code = 0
    prompt = f"[{USER}@{cell.name} ~]$ "
    while True:
        if process.term_type:
            process.stdout.write(prompt.encode())
        line = (await process.stdin.readline()).decode("utf-8", "replace").strip()
        if process.stdin.at_eof() and not line:
            return code
        if line in ("exit", "logout", "quit"):
            return code
        said = await asyncio.to_thread(shell, cell, line)
        _tell(process, said)
        code = said[2]


def _tell(process: asyncssh.SSHServerProcess[bytes], said: Said) -> None:
    end = "\r\n" if process.term_type else "\n"
    for stream, text in ((process.stdout, said[0]), (process.stderr, said[1])):
        if text:
            stream.write(text.replace("\n", end).encode())


class Servers:
    """The servers of a rack's cells; an async context manager whose value says where they are."""

    def __init__(
        self, cells: Sequence[Cell], folder: Path, *, listen: str = "127.0.0.1", port: int = 0,
        keys: Path | None = None,
    ) -> None:  # fmt: skip
        self.cells = cells
        self.folder = folder
        self.listen = listen
        self.port = port
        self.keys = keys
        self._open: list[asyncssh.SSHAcceptor] = []

    async def __aenter__(self) -> Served:
        import asyncssh

        key, let_in = None, self.keys
        if let_in is None:
            key = self.folder / "id_ed25519"
            pair = asyncssh.generate_private_key("ssh-ed25519", comment="dbdyno modelled cells")
            pair.write_private_key(str(key))
            key.chmod(0o600)
            let_in = self.folder / "id_ed25519.pub"
            pair.write_public_key(str(let_in))
        lines, ports = [], []
        try:
            for at, cell in enumerate(self.cells):
                host_key = asyncssh.generate_private_key("ssh-ed25519")
                server = await self._server(cell, host_key, let_in, at)
                self._open.append(server)
                ports.append(server.get_port())
                public = host_key.export_public_key().decode().strip()
                lines.append(f"[{self.listen}]:{ports[-1]} {public}\n")
        except BaseException:
            await self.__aexit__()
            raise
        known = self.folder / "known_hosts"
        known.write_text("".join(lines))
        return Served(self.listen, ports, known, key)

    async def _server(self, cell: Cell, host_key: Any, keys: Path, at: int) -> Any:
        import asyncssh

        async def session(process: asyncssh.SSHServerProcess[bytes]) -> None:
            await _session(cell, process)

        port = self.port + at if self.port else 0
        try:
            return await asyncssh.listen(
                self.listen, port, server_host_keys=[host_key], authorized_client_keys=str(keys),
                process_factory=session, encoding=None, password_auth=False, kbdint_auth=False,
                host_based_auth=False, gss_auth=False, allow_scp=False, agent_forwarding=False,
                x11_forwarding=False,
            )  # fmt: skip
        except (OSError, ValueError, asyncssh.Error) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise CellsError(
                f"no cell can be served there: {reason}",
                where=f"{self.listen}:{port}",
                next_step="--port names the first of the ports, --keys a file of public keys",
            ) from error

    async def __aexit__(self, *_: object) -> None:
        for server in self._open:
            server.close()
        await asyncio.gather(*(server.wait_closed() for server in self._open))
        self._open.clear()
