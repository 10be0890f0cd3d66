"""One command on every cell at once, over SSH; what one cell does to us costs only its own answer.

Host keys are checked against known_hosts: an unknown or changed key is a refusal, never a question
answered with yes. Keys come from the agent, the files named, or the user's SSH configuration;
there are no passwords. At most `parallel` connections are open at once. A cell that hangs is given
up after `timeout_s`, connecting included. Output beyond `MOST_BYTES` is cut, and said so.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbdyno.cells.hosts import Host, hosts_of
from dbdyno.errors import CellsError

if TYPE_CHECKING:
    import asyncssh

MOST_BYTES = 64 << 20


@dataclass(frozen=True)
class Access:
    """How cells are reached. `keys` are private key files; `known_hosts` None: the user's own;
    `jump` are hosts to go through, with commas, reached with the same keys and host keys; `config`
    says whether the user's SSH configuration counts, or which file instead of it."""

    keys: tuple[Path, ...] = ()
    known_hosts: Path | None = None
    jump: str | None = None
    timeout_s: float = 30.0
    parallel: int = 64
    config: bool | Path = True


@dataclass
class Answer:
    """What one cell answered. `problem` says why there is nothing, or not all; `code` is the exit
    code of the command, None where it did not end."""

    host: Host
    output: str = ""
    errors: str = ""
    code: int | None = None
    problem: str | None = None
    next_step: str | None = None
    seconds: float = 0.0
    asked_ns: int = 0


class JumpError(Exception):
    """A host to go through was not reached."""

    def __init__(self, host: Host, cause: Exception) -> None:
        super().__init__(str(cause))
        self.host = host
        self.cause = cause

    def in_words(self) -> tuple[str, str | None]:
        """What failed, and what to do."""
        words, next_step = _in_words(self.cause, self.host)
        return f"the jump host {self.host.name}: {words}", next_step


@dataclass
class _Jump:
    """The way through other hosts: one connection for all cells, since a server lets in but few at
    a time (sshd's MaxStartups). What failed once is not tried again for each cell."""

    hosts: Sequence[Host]
    lock: asyncio.Lock
    open: list[asyncssh.SSHClientConnection] = field(default_factory=list)
    failure: JumpError | None = None

    async def reached(
        self, options: Callable[[Host], dict[str, Any]]
    ) -> asyncssh.SSHClientConnection:
        """The connection to the last of the hosts; raises `JumpError`."""
        import asyncssh

        async with self.lock:
            if self.failure:
                raise self.failure
            if self.open and any(connection.is_closed() for connection in self.open):
                self.open.clear()
            for host in self.hosts[len(self.open) :]:
                through = {"tunnel": self.open[-1]} if self.open else {}
                try:
                    connection = await asyncssh.connect(host.address, **through, **options(host))
                except Exception as error:
                    self.failure = JumpError(host, error)
                    raise self.failure from error
                self.open.append(connection)
            return self.open[-1]


@dataclass
class Fleet:
    """Open connections to cells, kept between commands. Use as an async context manager; raises
    `CellsError` where the file of known hosts is not there."""

    hosts: Sequence[Host]
    access: Access
    _open: dict[Host, asyncssh.SSHClientConnection] = field(default_factory=dict)
    _room: asyncio.Semaphore | None = None
    _jump: _Jump | None = None

    async def __aenter__(self) -> Fleet:
        known = self.access.known_hosts
        if known is not None and not known.is_file():
            raise CellsError(
                "there is no such file of known hosts",
                where=str(known),
                next_step="`dbdyno cells setup-keys` makes one, showing each key before",
            )
        self._room = asyncio.Semaphore(self.access.parallel)
        if self.access.jump:
            self._jump = _Jump(hosts_of([self.access.jump]), asyncio.Lock())
        return self

    async def __aexit__(self, *_: object) -> None:
        for connection in self._open.values():
            connection.close()
        closing = [connection.wait_closed() for connection in self._open.values()]
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.gather(*closing, return_exceptions=True), 2.0)
        self._open.clear()
        for connection in reversed(self._jump.open if self._jump else []):
            connection.close()

    async def run(
        self,
        command: str | Mapping[Host, str],
        *,
        serial: bool = False,
        told: Callable[[Answer], None] | None = None,
        only: Sequence[Host] | None = None,
    ) -> list[Answer]:
        """The answers of all cells (or of these only), in the order of the hosts; `told` hears of
        each as it comes. The command is one for all, or one for each."""
        hosts = self.hosts if only is None else only
        answers: list[Answer] = []
        if self._jump:
            self._jump.failure = None
        texts = dict.fromkeys(hosts, command) if isinstance(command, str) else command
        if serial:
            for host in hosts:
                answers.append(await self._one(host, texts[host]))
                if told:
                    told(answers[-1])
            return answers

        async def one(host: Host) -> Answer:
            assert self._room is not None
            async with self._room:
                answer = await self._one(host, texts[host])
            if told:
                told(answer)
            return answer

        return list(await asyncio.gather(*(one(host) for host in hosts)))

    def resolved(self, host: Host) -> tuple[str, int]:
        """Address and port of a cell as the SSH configuration has them: what known_hosts names."""
        import asyncssh

        options = asyncssh.SSHClientConnectionOptions(
            host=host.address, port=host.port or (), **self._config()
        )
        return options.host, int(options.port or 22)

    async def host_key(self, host: Host) -> asyncssh.SSHKey | None:
        """The key that a cell shows; logs in nowhere but on the hosts in between. Raises what the
        connection does, `JumpError` for a host in between."""
        import asyncssh

        tunnel = await self._jump.reached(self._options) if self._jump else None
        return await asyncssh.get_server_host_key(
            host.address, host.port or (), tunnel=tunnel or (), **self._config()
        )

    async def own_names(self) -> dict[Host, str]:
        """What the cells call themselves, without their domain; those that do not say are not in
        it."""
        answers = await self.run("hostname")
        said = {answer.host: answer.output.strip().split(".")[0] for answer in answers}
        return {host: name for host, name in said.items() if re.fullmatch(r"[\w-]{1,64}", name)}

    async def _one(self, host: Host, command: str) -> Answer:
        answer = Answer(host, asked_ns=time.time_ns())
        started = time.perf_counter()
        try:
            await asyncio.wait_for(self._ask(host, command, answer), self.access.timeout_s)
        except TimeoutError:
            self._drop(host)
            answer.problem = f"no answer within {self.access.timeout_s:g} s"
            answer.next_step = "--timeout gives it longer"
        except JumpError as error:
            answer.problem, answer.next_step = error.in_words()
        except Exception as error:
            self._drop(host)
            answer.problem, answer.next_step = _in_words(error, host)
        answer.seconds = time.perf_counter() - started
        return answer

    def _drop(self, host: Host) -> None:
        connection = self._open.pop(host, None)
        if connection is not None:
            connection.abort()

    async def _ask(self, host: Host, command: str, answer: Answer) -> None:
        connection = await self._connection(host)
        process = await connection.create_process(command, encoding=None)
        try:
            process.stdin.write_eof()
            output, errors = await asyncio.gather(
                _all(process.stdout, answer), _all(process.stderr, answer)
            )
            answer.output, answer.errors = _text(output), _text(errors)
            await process.wait_closed()
        finally:
            # Not waited for: sshd closes a session only when its command has ended.
            process.close()
        answer.code = process.returncode
        if process.exit_signal:
            answer.problem = f"the command was ended by the signal {process.exit_signal[0]}"
        elif answer.code is None or answer.code < 0:
            answer.problem = "the connection ended before the command did"

    async def _connection(self, host: Host) -> asyncssh.SSHClientConnection:
        connection = self._open.get(host)
        if connection is not None and not connection.is_closed():
            return connection
        import asyncssh

        tunnel = await self._jump.reached(self._options) if self._jump else ()
        self._open[host] = await asyncssh.connect(
            host.address, **({"tunnel": tunnel} if tunnel else {}), **self._options(host)
        )
        return self._open[host]

    def _config(self) -> dict[str, Any]:
        config = self.access.config
        if isinstance(config, Path):
            return {"config": [str(config)]}
        return {} if config else {"config": None}

    def _options(self, host: Host) -> dict[str, Any]:
        access = self.access
        options: dict[str, Any] = {
            "password_auth": False,
            "kbdint_auth": False,
            "connect_timeout": access.timeout_s,
            "keepalive_interval": 15,
        }
        if host.port:
            options["port"] = host.port
        if host.user:
            options["username"] = host.user
        if access.keys:
            options["client_keys"] = [str(path) for path in access.keys]
        if access.known_hosts is not None:
            options["known_hosts"] = str(access.known_hosts)
        options |= self._config()
        if not access.config:
            options["agent_path"] = None
        return options


def run_everywhere(
    hosts: Sequence[Host],
    access: Access,
    command: str,
    *,
    serial: bool = False,
    told: Callable[[Answer], None] | None = None,
) -> list[Answer]:
    """One command on every cell, from code that is not asynchronous."""

    async def work() -> list[Answer]:
        async with Fleet(hosts, access) as fleet:
            return await fleet.run(command, serial=serial, told=told)

    return asyncio.run(work())


async def _all(stream: Any, answer: Answer) -> bytes:
    parts: list[bytes] = []
    size = 0
    async for part in _parts(stream):
        if size < MOST_BYTES:
            parts.append(part[: MOST_BYTES - size])
        size += len(part)
    if size > MOST_BYTES:
        answer.problem = f"the answer was cut at {MOST_BYTES >> 20} MiB"
    return b"".join(parts)


async def _parts(stream: Any) -> AsyncIterator[bytes]:
    while part := await stream.read(1 << 16):
        yield part


def _text(data: bytes) -> str:
    return data.decode("utf-8", errors="replace")


def _in_words(error: Exception, host: Host) -> tuple[str, str | None]:
    """A failure to connect as a sentence and what to do."""
    import asyncssh

    if isinstance(error, asyncssh.HostKeyNotVerifiable):
        return (
            f"its host key is not known, or not the one that is known ({error.reason})",
            "compare the key by another way, then add it: ssh-keyscan "
            f"{f'-p {host.port} ' if host.port else ''}{host.address}",
        )
    if isinstance(error, asyncssh.PermissionDenied):
        return (
            "it refused the key",
            "`dbdyno cells setup-keys` puts a key there; --key names another, --user another user",
        )
    if isinstance(error, asyncssh.ConnectionLost | asyncssh.DisconnectError):
        return f"the connection was lost: {error.reason}", None
    if isinstance(error, asyncssh.Error):
        return f"SSH failed: {error.reason}", None
    if isinstance(error, OSError):
        return f"cannot be reached: {error.strerror or error}", "is the name right, is it up?"
    return f"failed: {type(error).__name__}: {error}", None
