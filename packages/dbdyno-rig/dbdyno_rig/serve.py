"""The SSH servers of a modelled rack: one per cell, each with a separate host key; login by public key only.

    session with a command -----------> shell line -----------------> output, errors, exit code
    no command, or bare cellcli -----> line by line, at a prompt if there is a terminal

No line ever reaches a real shell: `shell` defines what is understood. Files, forwarding and SFTP are refused.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbdyno.base.errors import CellsError
from dbdyno_rig.cell import Cell
from dbdyno_rig.cellcli import BadOptionError, Conversation, StartOptions, parse_options
from dbdyno_rig.shell import USER, NotUnderstoodError, shell, words_of

if TYPE_CHECKING:
    import asyncssh

INTERRUPT = "\x03"


@dataclass(frozen=True)
class RackAccess:
    """How the cells can be reached.

    Attributes:
        listen: Address.
        ports: Port of each cell.
        known_hosts: File with the cells' host keys.
        key: Private key for login, or None if the user's own keys are accepted.
        config: Configuration file of `ssh` that knows the cells by their names.
    """

    listen: str
    ports: list[int]
    known_hosts: Path
    key: Path | None
    config: Path

    @property
    def hosts(self) -> str:
        """Return the cells as a value for the option `--hosts`."""
        host = f"[{self.listen}]" if ":" in self.listen else self.listen
        return ",".join(f"{host}:{port}" for port in self.ports)

    @property
    def reach(self) -> str:
        """Return the options with which `dbdyno cells` reaches the cells."""
        key = f" --key {shlex.quote(str(self.key))}" if self.key else ""
        known = shlex.quote(str(self.known_hosts))
        return f"--hosts {self.hosts} --user {USER} --known-hosts {known}{key}"


def _write_new(path: Path, data: bytes, mode: int) -> None:
    """Replace a file by a new one that has its access mode from the first byte on.

    If somebody else creates the path meanwhile, for example as a link, nothing is written to it or through it.

    Raises:
        CellsError: Somebody else has created the path.
    """
    path.unlink(missing_ok=True)
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
    except FileExistsError as error:
        raise CellsError(
            "was created by another process just now",
            where=str(path),
            next_step="use --folder to name a folder that no other user may write to",
        ) from error
    with os.fdopen(handle, "wb") as file:
        file.write(data)


async def _session(cell: Cell, process: asyncssh.SSHServerProcess[str]) -> None:
    """Run one session: its command, or its input lines until the input ends."""
    # The client may disconnect at any time.
    with contextlib.suppress(BrokenPipeError, ConnectionError):
        process.exit(await _Session(cell, process).run())


class _Session:
    """One user's session; lines are read as they arrive, so that an answer follows each line."""

    def __init__(self, cell: Cell, process: asyncssh.SSHServerProcess[str]) -> None:
        self.cell = cell
        self.process = process
        self.user = str(process.get_extra_info("username") or USER)
        self.terminal = process.term_type is not None

    async def run(self) -> int:
        """Run the session until it ends and return its exit code."""
        command = self.process.command
        if command is None:
            return await self._lines()
        options = _talks(command)
        return await (self._run_line(command) if options is None else self._talk(options))

    async def _run_line(self, line: str) -> int:
        said = await asyncio.to_thread(shell, self.cell, line, user=self.user)
        self.process.stdout.write(said.output)
        self.process.stderr.write(said.errors)
        return said.code

    async def _lines(self) -> int:
        code = 0
        prompt = f"[{self.user}@{self.cell.name} ~]$ " if self.terminal else ""
        while True:
            line = await self._read(prompt)
            if line is None or line.strip() in ("exit", "logout"):
                return code
            if line == INTERRUPT:
                continue
            options = _talks(line)
            code = await (self._run_line(line) if options is None else self._talk(options))

    async def _talk(self, options: StartOptions) -> int:
        talk = Conversation(self.cell, options)
        self.process.stdout.write(talk.begin())
        while not talk.ended:
            line = await self._read(talk.prompt)
            if line is None:
                self.process.stdout.write(talk.end())
            elif line == INTERRUPT:
                talk.held = ""
            else:
                self.process.stdout.write(await asyncio.to_thread(talk.answer, line))
        return talk.code

    async def _read(self, prompt: str) -> str | None:
        """Return the next line, None at the end, or `INTERRUPT` after Ctrl-C; resizing the terminal has no effect."""
        import asyncssh

        self.process.stdout.write(prompt)
        while True:
            try:
                line = await self.process.stdin.readline()
            except asyncssh.TerminalSizeChanged:
                continue
            except (asyncssh.BreakReceived, asyncssh.SignalReceived):
                channel = self.process.channel
                if isinstance(channel, asyncssh.SSHLineEditorChannel):
                    channel.clear_input()
                    self.process.stdout.write("^C\n")
                return INTERRUPT
            return line.rstrip("\r\n") if line else None


def _talks(line: str) -> StartOptions | None:
    """Return cellcli's options if the line only starts an interactive cellcli, or None for any other line."""
    try:
        words = words_of(line)
        if [word.text for word in words[:1]] != ["cellcli"] or any(word.joins for word in words):
            return None
        options = parse_options([word.text for word in words[1:]])
    except (NotUnderstoodError, BadOptionError):
        return None
    return options if options.command is None else None


class Servers:
    """The servers of a rack's cells, as an async context manager whose value is a `RackAccess`."""

    def __init__(
        self,
        cells: Sequence[Cell],
        folder: Path,
        *,
        listen: str = "127.0.0.1",
        port: int = 0,
        keys: Path | None = None,
    ) -> None:
        self.cells = cells
        self.folder = folder
        self.listen = listen
        self.port = port
        self.keys = keys
        self._open: list[asyncssh.SSHAcceptor] = []

    async def __aenter__(self) -> RackAccess:
        import asyncssh

        key, let_in = None, self.keys
        if let_in is None:
            key = self.folder / "id_ed25519"
            pair = asyncssh.generate_private_key("ssh-ed25519", comment="dbdyno modelled cells")
            _write_new(key, pair.export_private_key(), 0o600)
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
        config = self.folder / "ssh_config"
        config.write_text(self._configuration(ports, known, key))
        return RackAccess(self.listen, ports, known, key, config)

    def _configuration(self, ports: Sequence[int], path: Path, key: Path | None) -> str:
        """Return a configuration for `ssh -F` that knows the cells by their names."""
        lines = []
        for cell, port in zip(self.cells, ports, strict=True):
            lines += [f"Host {cell.name}", f"  HostName {self.listen}", f"  Port {port}"]
        lines += ["Host *", f"  User {USER}", f'  UserKnownHostsFile "{path.absolute()}"']
        if key is not None:
            lines += [f'  IdentityFile "{key.absolute()}"', "  IdentitiesOnly yes"]
        return "".join(f"{line}\n" for line in lines)

    async def _server(self, cell: Cell, host_key: Any, keys: Path, at: int) -> Any:
        import asyncssh

        async def session(process: asyncssh.SSHServerProcess[str]) -> None:
            await _session(cell, process)

        port = self.port + at if self.port else 0
        try:
            return await asyncssh.listen(
                self.listen,
                port,
                server_host_keys=[host_key],
                authorized_client_keys=str(keys),
                process_factory=session,
                encoding="utf-8",
                errors="replace",
                password_auth=False,
                kbdint_auth=False,
                host_based_auth=False,
                gss_auth=False,
                allow_scp=False,
                agent_forwarding=False,
                x11_forwarding=False,
            )
        except (OSError, ValueError, asyncssh.Error) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise CellsError(
                f"no cell can be served at this address: {reason}",
                where=f"{self.listen}:{port}",
                next_step="name a free port with --port (the other cells use the ports after it), and a file of public"
                " keys with --keys",
            ) from error

    async def __aexit__(self, *_: object) -> None:
        for server in self._open:
            server.close()
        await asyncio.gather(*(server.wait_closed() for server in self._open))
        self._open.clear()
