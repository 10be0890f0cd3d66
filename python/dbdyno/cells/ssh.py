"""One command on every cell at once, over SSH; what one cell does to us costs only its own answer.

Host keys are checked against known_hosts: an unknown or changed key is a refusal, never a question
answered with yes. Keys come from the agent, the files named, or the user's SSH configuration;
there are no passwords. At most `parallel` connections are open at once. A cell that hangs is given
up after `timeout_s`, connecting included. Output beyond `MOST_BYTES` is cut, and said so.
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
from dbdyno.cells.access import Access, Reach
from dbdyno.cells.failures import Words, in_words
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

    def __init__(self, reach: Reach, cause: Exception) -> None:
        super().__init__(str(cause))
        self.reach = reach
        self.cause = cause

    def in_words(self) -> Words:
        """What failed, and what to do."""
        words, next_step = in_words(self.cause, self.reach)
        return f"the jump host {self.reach.host.name}: {words}", next_step


@dataclass
class _Jump:
    """The way through other hosts: one connection for all cells, since a server lets in but few at
    a time (sshd's MaxStartups). What failed once is not tried again for each cell."""

    access: Access
    hosts: Sequence[Host]
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    open: list[asyncssh.SSHClientConnection] = field(default_factory=list)
    failure: JumpError | None = None

    async def reached(self) -> asyncssh.SSHClientConnection:
        """The connection to the last of the hosts; raises `JumpError`."""
        async with self.lock:
            if self.failure:
                raise self.failure
            if self.open and any(connection.is_closed() for connection in self.open):
                self.open.clear()
            for host in self.hosts[len(self.open) :]:
                reach = Reach(self.access, host)
                try:
                    tunnel = self.open[-1] if self.open else None
                    self.open.append(await _connected(reach, tunnel))
                except Exception as error:
                    self.failure = JumpError(reach, error)
                    raise self.failure from error
            return self.open[-1]


@dataclass
class Fleet:
    """Open connections to cells, kept between commands. Use as an async context manager; raises
    `CellsError` where the file of known hosts is not there."""

    hosts: Sequence[Host]
    access: Access
    _open: dict[Host, asyncssh.SSHClientConnection] = field(default_factory=dict)
    _room: asyncio.Semaphore | None = None
    _jumps: dict[tuple[Host, ...], _Jump] = field(default_factory=dict)

    async def __aenter__(self) -> Fleet:
        known = self.access.known_hosts
        if known is not None and not known.is_file():
            raise CellsError(
                "there is no such file of known hosts",
                where=str(known),
                next_step="`dbdyno cells setup-keys` makes one, showing each key before",
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
        given: bytes = b"",
    ) -> list[Answer]:
        """The answers of all cells (or of these only), in the order of the hosts; `on_answer` hears of
        each as it comes. The command is one for all, or one for each; it reads what is `given`."""
        hosts = self.hosts if only is None else only
        answers: list[Answer] = []
        for jump in self._jumps.values():
            jump.failure = None
        texts = dict.fromkeys(hosts, command) if isinstance(command, str) else command
        if serial:
            for host in hosts:
                answers.append(await self._ask_host(host, texts[host], given))
                if on_answer:
                    on_answer(answers[-1])
            return answers

        async def one(host: Host) -> Answer:
            assert self._room is not None
            async with self._room:
                answer = await self._ask_host(host, texts[host], given)
            if on_answer:
                on_answer(answer)
            return answer

        return list(await asyncio.gather(*(one(host) for host in hosts)))

    async def host_key(self, reach: Reach) -> asyncssh.SSHKey | None:
        """The key that a cell shows; logs in nowhere but on the hosts in between. Raises what the
        connection does, `JumpError` for a host in between."""
        import asyncssh

        tunnel = await self._tunnel(reach)
        return await _tried(
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
        """What the cells (or these only) call themselves, without their domain; those that do not
        say are not in it."""
        answers = await self.run("hostname", only=only)
        said = {answer.host: answer.output.strip().split(".")[0] for answer in answers if answer.code == 0}
        return {host: name for host, name in said.items() if re.fullmatch(r"[\w-]{1,64}", name)}

    async def _ask_host(self, host: Host, command: str, given: bytes = b"") -> Answer:
        answer = Answer(host, asked_ns=time.time_ns())
        started = time.perf_counter()
        try:
            await asyncio.wait_for(self._ask(host, command, answer, given), self.access.timeout_s)
        except TimeoutError:
            self._drop(host)
            answer.problem = f"no answer within {self.access.timeout_s:g} s"
            answer.next_step = "--timeout gives it longer"
        except JumpError as error:
            answer.problem, answer.next_step = error.in_words()
        except Exception as error:
            self._drop(host)
            answer.problem, answer.next_step = self._words(error, host)
        answer.seconds = time.perf_counter() - started
        return answer

    def _drop(self, host: Host) -> None:
        connection = self._open.pop(host, None)
        if connection is not None:
            connection.abort()

    async def _ask(self, host: Host, command: str, answer: Answer, given: bytes) -> None:
        process = await self._process(host, command)
        try:
            _give(process, given)
            output, errors = await asyncio.gather(_all(process.stdout, answer), _all(process.stderr, answer))
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

    async def _process(self, host: Host, command: str) -> asyncssh.SSHClientProcess[bytes]:
        """The command, begun. A connection that is kept may be at its end, or let in one session at
        a time (MaxSessions) and not have seen the end of the last: then by a new one."""
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
        reach = Reach(self.access, host)
        self._open[host] = await _connected(reach, await self._tunnel(reach))
        return self._open[host]

    async def _tunnel(self, reach: Reach) -> asyncssh.SSHClientConnection | None:
        access, hosts = reach.through()
        if not hosts:
            return None
        return await self._jumps.setdefault(hosts, _Jump(access, hosts)).reached()

    def _words(self, error: Exception, host: Host) -> Words:
        try:
            return in_words(error, Reach(self.access, host))
        except CellsError as unreadable:
            return unreadable.message, unreadable.next_step


def _give(process: asyncssh.SSHClientProcess[bytes], given: bytes) -> None:
    """Its input. A command that has ended takes none: its output and code say why."""
    with contextlib.suppress(BrokenPipeError):
        if given:
            process.stdin.write(given)
        process.stdin.write_eof()


async def _connected(reach: Reach, tunnel: asyncssh.SSHClientConnection | None) -> asyncssh.SSHClientConnection:
    import asyncssh

    return await _tried(
        lambda: asyncssh.connect(reach.host.address, tunnel=tunnel, **reach.options()),
        reach.access.timeout_s,
    )


async def _tried(attempt: Callable[[], Awaitable[T]], timeout_s: float) -> T:
    """What an attempt to connect gives. Where the server closes before anybody is let in it is
    made again after a while, until half of the time is over: sshd drops some where many begin at
    once (MaxStartups)."""
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
    """One command on every cell, from code that is not asynchronous."""

    async def work() -> list[Answer]:
        async with Fleet(hosts, access) as fleet:
            return await fleet.run(command, serial=serial, on_answer=on_answer)

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
