"""One command on every cell at once, over SSH; a cell that fails affects only its own answer.

Host keys are checked against known_hosts: an unknown or changed key is refused, without asking. Keys come from the
agent, the named files, or the user's SSH configuration; there are no passwords. At most `parallel` connections are open
at once. A cell that hangs is abandoned after `timeout_s`, which includes the time to connect. Output beyond
`MOST_BYTES` is cut, and the answer says so.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from dbdyno.base.errors import CellsError
from dbdyno.cells.access import Access, HostAccess
from dbdyno.cells.failures import FailureText, describe_failure
from dbdyno.cells.hosts import Host

if TYPE_CHECKING:
    import asyncssh

__all__ = ["MOST_BYTES", "Access", "Answer", "Fleet", "JumpError", "run_everywhere"]

T = TypeVar("T")

MOST_BYTES = 64 << 20
FIRST_PAUSE_S = 0.2
LONGEST_PAUSE_S = 2.0


@dataclass
class Answer:
    """Answer of one cell.

    `problem` says why the output is missing or incomplete; `code` is the exit code of the command, None if it did not
    end.
    """

    host: Host
    output: str = ""
    errors: str = ""
    code: int | None = None
    problem: str | None = None
    next_step: str | None = None
    seconds: float = 0.0
    asked_ns: int = 0


class JumpError(Exception):
    """Raised when a jump host cannot be reached."""

    def __init__(self, reach: HostAccess, cause: Exception) -> None:
        super().__init__(str(cause))
        self.reach = reach
        self.cause = cause

    def describe(self) -> FailureText:
        """Return what failed, and the next step."""
        words, next_step = describe_failure(self.cause, self.reach)
        return f"the jump host {self.reach.host.name}: {words}", next_step


@dataclass
class _Jump:
    """Connection through jump hosts, shared by all cells, because sshd limits simultaneous logins (MaxStartups).

    A failed connection is remembered, and not tried again for each cell.
    """

    access: Access
    hosts: Sequence[Host]
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    open: list[asyncssh.SSHClientConnection] = field(default_factory=list)
    failure: JumpError | None = None

    async def reached(self) -> asyncssh.SSHClientConnection:
        """Return the connection to the last jump host.

        Raises:
            JumpError: A jump host cannot be reached.
        """
        async with self.lock:
            if self.failure:
                raise self.failure
            if self.open and any(connection.is_closed() for connection in self.open):
                self.open.clear()
            for host in self.hosts[len(self.open) :]:
                reach = HostAccess(self.access, host)
                try:
                    tunnel = self.open[-1] if self.open else None
                    self.open.append(await _connect(reach, tunnel))
                except Exception as error:
                    self.failure = JumpError(reach, error)
                    raise self.failure from error
            return self.open[-1]


@dataclass
class Fleet:
    """Connections to cells that stay open between commands; an async context manager.

    Raises:
        CellsError: The named known_hosts file does not exist.
    """

    hosts: Sequence[Host]
    access: Access
    _open: dict[Host, asyncssh.SSHClientConnection] = field(default_factory=dict)
    _room: asyncio.Semaphore | None = None
    _jumps: dict[tuple[Host, ...], _Jump] = field(default_factory=dict)

    async def __aenter__(self) -> Fleet:
        known = self.access.known_hosts
        if known is not None and not known.is_file():
            raise CellsError(
                "the file of known hosts does not exist",
                where=str(known),
                next_step="create the file with `dbdyno cells setup-keys`, which shows each key first",
            )
        self._room = asyncio.Semaphore(self.access.parallel)
        return self

    async def __aexit__(self, *_: object) -> None:
        for connection in self._open.values():
            connection.close()
        closing = [connection.wait_closed() for connection in self._open.values()]
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.gather(*closing, return_exceptions=True), 2.0)
        self._open.clear()
        for jump in self._jumps.values():
            for connection in reversed(jump.open):
                connection.close()

    async def run(
        self,
        command: str | Mapping[Host, str],
        *,
        serial: bool = False,
        on_answer: Callable[[Answer], None] | None = None,
        only: Sequence[Host] | None = None,
        data: bytes = b"",
    ) -> list[Answer]:
        """Run a command on all cells and return their answers, in the order of the hosts.

        Args:
            command: One command for all, or one for each host.
            serial: Run one cell after the other instead of in parallel.
            on_answer: Called with each answer as it arrives.
            only: The hosts to use, or None for all.
            data: Input for the command.
        """
        hosts = self.hosts if only is None else only
        answers: list[Answer] = []
        for jump in self._jumps.values():
            jump.failure = None
        texts = dict.fromkeys(hosts, command) if isinstance(command, str) else command
        if serial:
            for host in hosts:
                answers.append(await self._ask_host(host, texts[host], data))
                if on_answer:
                    on_answer(answers[-1])
            return answers

        async def one(host: Host) -> Answer:
            assert self._room is not None
            async with self._room:
                answer = await self._ask_host(host, texts[host], data)
            if on_answer:
                on_answer(answer)
            return answer

        return list(await asyncio.gather(*(one(host) for host in hosts)))

    async def host_key(self, reach: HostAccess) -> asyncssh.SSHKey | None:
        """Return the host key that a cell shows, logging in only to jump hosts; connection errors are raised unchanged.

        Raises:
            JumpError: A jump host cannot be reached.
        """
        import asyncssh

        tunnel = await self._tunnel(reach)
        return await _retry(
            lambda: asyncssh.get_server_host_key(
                reach.host.address,
                reach.host.port or (),
                tunnel=tunnel,
                server_host_key_algs=reach.host_key_kinds(),
                **reach.config,
            ),
            self.access.timeout_s,
        )

    async def own_names(self, only: Sequence[Host] | None = None) -> dict[Host, str]:
        """Return the names that the cells report, without domain; cells that do not report one are left out."""
        answers = await self.run("hostname", only=only)
        said = {answer.host: answer.output.strip().split(".")[0] for answer in answers if answer.code == 0}
        return {host: name for host, name in said.items() if re.fullmatch(r"[\w-]{1,64}", name)}

    async def _ask_host(self, host: Host, command: str, data: bytes = b"") -> Answer:
        answer = Answer(host, asked_ns=time.time_ns())
        started = time.perf_counter()
        try:
            await asyncio.wait_for(self._ask(host, command, answer, data), self.access.timeout_s)
        except TimeoutError:
            self._drop(host)
            answer.problem = f"no answer within {self.access.timeout_s:g} s"
            answer.next_step = "--timeout gives it longer"
        except JumpError as error:
            answer.problem, answer.next_step = error.describe()
        except Exception as error:
            self._drop(host)
            answer.problem, answer.next_step = self._words(error, host)
        answer.seconds = time.perf_counter() - started
        return answer

    def _drop(self, host: Host) -> None:
        connection = self._open.pop(host, None)
        if connection is not None:
            connection.abort()

    async def _ask(self, host: Host, command: str, answer: Answer, data: bytes) -> None:
        process = await self._process(host, command)
        try:
            _give(process, data)
            output, errors = await asyncio.gather(_read_all(process.stdout, answer), _read_all(process.stderr, answer))
            answer.output, answer.errors = _text(output), _text(errors)
            await process.wait_closed()
        finally:
            # Not waited for, because sshd closes a session only when its command has ended.
            process.close()
        answer.code = process.returncode
        if process.exit_signal:
            answer.problem = f"the command was ended by the signal {process.exit_signal[0]}"
        elif answer.code is None or answer.code < 0:
            answer.problem = "the connection ended before the command did"

    async def _process(self, host: Host, command: str) -> asyncssh.SSHClientProcess[bytes]:
        """Start the command, if necessary on a new connection.

        An existing connection may be closed, or may allow only one session at a time (MaxSessions) and not yet have
        noticed the end of the previous session.
        """
        import asyncssh

        kept = host in self._open
        connection = await self._connection(host)
        try:
            return await connection.create_process(command, encoding=None)
        except asyncssh.ChannelOpenError:
            if not kept:
                raise
            self._drop(host)
            connection = await self._connection(host)
            return await connection.create_process(command, encoding=None)

    async def _connection(self, host: Host) -> asyncssh.SSHClientConnection:
        connection = self._open.get(host)
        if connection is not None and not connection.is_closed():
            return connection
        reach = HostAccess(self.access, host)
        self._open[host] = await _connect(reach, await self._tunnel(reach))
        return self._open[host]

    async def _tunnel(self, reach: HostAccess) -> asyncssh.SSHClientConnection | None:
        access, hosts = reach.jump_hosts()
        if not hosts:
            return None
        return await self._jumps.setdefault(hosts, _Jump(access, hosts)).reached()

    def _words(self, error: Exception, host: Host) -> FailureText:
        try:
            return describe_failure(error, HostAccess(self.access, host))
        except CellsError as unreadable:
            return unreadable.message, unreadable.next_step


def _give(process: asyncssh.SSHClientProcess[bytes], data: bytes) -> None:
    """Send the command's input; a command that has already ended reads none, and its output and exit code show why."""
    with contextlib.suppress(BrokenPipeError):
        if data:
            process.stdin.write(data)
        process.stdin.write_eof()


async def _connect(reach: HostAccess, tunnel: asyncssh.SSHClientConnection | None) -> asyncssh.SSHClientConnection:
    import asyncssh

    return await _retry(
        lambda: asyncssh.connect(reach.host.address, tunnel=tunnel, **reach.options()),
        reach.access.timeout_s,
    )


async def _retry(attempt: Callable[[], Awaitable[T]], timeout_s: float) -> T:
    """Return the result of an attempt to connect, retried for half of the timeout if the server disconnects early.

    sshd drops some connections if many begin at once (MaxStartups).
    """
    import asyncssh

    end_s = time.monotonic() + timeout_s / 2
    pause_s = FIRST_PAUSE_S
    while True:
        try:
            return await attempt()
        except (asyncssh.ConnectionLost, ConnectionResetError):
            if time.monotonic() + pause_s > end_s:
                raise
        await asyncio.sleep(pause_s * random.uniform(0.5, 1.5))
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)


def run_everywhere(
    hosts: Sequence[Host],
    access: Access,
    command: str,
    *,
    serial: bool = False,
    on_answer: Callable[[Answer], None] | None = None,
) -> list[Answer]:
    """Run one command on every cell, from synchronous code."""

    async def work() -> list[Answer]:
        async with Fleet(hosts, access) as fleet:
            return await fleet.run(command, serial=serial, on_answer=on_answer)

    return asyncio.run(work())


async def _read_all(stream: Any, answer: Answer) -> bytes:
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
