"""The process of a client: started without a shell in a clean environment, sent requests, read, and ended.

The client leads a separate process group, so that processes that it starts end with it; those that leave the group are
found by the mark in their environment (`ClientArm`). The last line that it writes to stderr is included in errors,
without the connection's password.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from dbdyno.base.dsn import sql_without_secrets
from dbdyno.base.errors import TargetError
from dbdyno.base.processes import child_environment
from dbdyno.bench.clients import stream
from dbdyno.bench.clients.reader import Records, StreamError, StreamReader
from dbdyno.bench.clients.stderr_tail import StderrTail
from dbdyno.bench.recorder import RepeatBlockError

START_S = 30.0
"""Maximum seconds from the start to the client's first record."""
ANSWER_S = 60.0
"""Seconds of silence after which a client counts as hung."""
END_S = 5.0
"""Maximum seconds between the request to end and the end of the process."""
STEP_S = 0.1
SAID_MOST = 300
RECORDS_MOST = 20_000_000
"""Maximum number of records of one slice; they take 1 GB."""
CODES_MOST = 250
"""Maximum number of errors whose messages are stored."""
WORDS_MOST = 4_000
KEPT_VARIABLES = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "TZ", "USER", "LOGNAME")
"""Environment variables that are passed to a client."""
FailureKey: TypeAlias = tuple[int, str, int]
"""The statement that failed, its SQLSTATE, and the engine's error number."""
_TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")


class ClientError(TargetError):
    """Error for a client that cannot be started, cannot continue, or violates the protocol."""


class ClientLostError(ClientError, RepeatBlockError):
    """Error for a client that died, hangs, or reports doubtful times; the block is run again with a new process.

    `arm` is the number of the client's arm.
    """

    arm: int | None = None


class ClientHungError(ClientLostError):
    """Error for a client that is silent for longer than allowed."""


class ClientProcess:
    """A running client; `name` is used in errors, `secret` is removed from all texts."""

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        name: str,
        *,
        secret: str | None = None,
        stopped: Callable[[], bool] = lambda: False,
        start_s: float = START_S,
        answer_s: float = ANSWER_S,
    ) -> None:
        self.name, self.secret, self.stopped = name, secret, stopped
        self.start_s, self.answer_s = start_s, answer_s
        kept = child_environment({key: os.environ[key] for key in KEPT_VARIABLES if key in os.environ})
        try:
            self.process = subprocess.Popen(
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**kept, **environment},
                start_new_session=True,
            )
        except OSError as error:
            raise self.error(
                f"cannot be started: {error.strerror}", "list the installed clients with `dbdyno client list`"
            ) from error
        assert self.process.stdout is not None and self.process.stdin is not None and self.process.stderr is not None
        self.said = StderrTail(self.process.stderr)
        os.set_blocking(self.process.stdout.fileno(), False)
        os.set_blocking(self.process.stdin.fileno(), False)
        self.reader = StreamReader()
        self.said_errors: dict[FailureKey, str] = {}
        self.about = ""

    def read_greeting(self) -> stream.Record:
        """Read and check the client's first record: its version of the protocol, and its clock.

        Raises:
            ClientError: The client speaks another protocol version, or uses another clock.
        """
        began = time.monotonic_ns()
        record, _ = self.wait_for_record(stream.HELLO, self.start_s)
        if record.statement != stream.VERSION:
            raise self.error(f"speaks version {record.statement} of the protocol; expected version {stream.VERSION}")
        if not began - self.start_s * 1e9 <= record.started_ns <= time.monotonic_ns():
            raise self.error(
                "does not use the same clock as dbdyno",
                "report times of CLOCK_MONOTONIC in nanoseconds, and run the client on the same host as dbdyno",
            )
        self.about = record.text[:SAID_MOST]
        return record

    def send(self, line: bytes) -> None:
        """Send a line to the client.

        Raises:
            ClientError: The client does not read it.
        """
        assert self.process.stdin is not None
        fileno, left, deadline = self.process.stdin.fileno(), memoryview(line), time.monotonic() + self.answer_s
        try:
            while left:
                _, ready, _ = select.select([], [fileno], [], STEP_S)
                if ready:
                    left = left[os.write(fileno, left[: 1 << 16]) :]
                elif self.stopped():
                    return
                elif time.monotonic() > deadline:
                    raise self.error(f"hangs: it has not read a request for {self.answer_s:g} s", kind=ClientHungError)
        except (BrokenPipeError, ConnectionResetError):
            raise self._end_error() from None

    def refuse_unrequested_output(self) -> None:
        """Raise `ClientError` if the client has written since its last answer, although nothing was requested.

        Raises:
            ClientError: The client has written something.
        """
        assert self.process.stdout is not None
        try:
            data = os.read(self.process.stdout.fileno(), 1 << 16)
        except BlockingIOError:
            return
        if data:
            self.reader.buffer += data
            raise self.error(
                f"wrote data that was not requested: {self.reader.describe_leftover()}", "write all text to stderr"
            )

    def wait_for_record(self, kind: int, patience_s: float) -> tuple[stream.Record, list[Records]]:
        """Return the next record of a given kind, and the operations that arrived before it.

        The timeout applies to silence: each byte that arrives restarts it.

        Raises:
            ClientError: The client does not answer, ends, or violates the protocol.
            Stopped: The user requested a stop.
        """
        assert self.process.stdout is not None
        fileno = self.process.stdout.fileno()
        operations: list[Records] = []
        deadline = time.monotonic() + patience_s
        while True:
            if self.stopped():
                raise StopRequested
            ready, _, _ = select.select([fileno], [], [], STEP_S)
            if not ready:
                if time.monotonic() > deadline:
                    raise self.error(
                        f"hangs: it has not answered for {patience_s:g} s",
                        "run `dbdyno client check` with this client; if a statement may take that long, set "
                        "statement_timeout under [load]",
                        ClientHungError,
                    )
                continue
            data = os.read(fileno, 1 << 20)
            if not data:
                raise self._end_error()
            deadline = max(deadline, time.monotonic() + self.answer_s)
            if (answer := self._answer(data, kind, operations)) is not None:
                return answer, operations

    def _answer(self, data: bytes, kind: int, operations: list[Records]) -> stream.Record | None:
        """Return the expected record if it has arrived; operations are appended to `operations`."""
        try:
            for got in self.reader.feed(data):
                if not isinstance(got, stream.Record):
                    operations.append(got)
                elif got.kind == stream.SAID:
                    if len(self.said_errors) < CODES_MOST:
                        words = self.without_secrets(got.text[:WORDS_MOST])
                        self.said_errors.setdefault((got.statement, got.code, got.vendor), words)
                elif got.kind == kind:
                    self._refuse_more()
                    return got
                else:
                    raise self._unexpected_record(got, kind)
        except StreamError as error:
            raise self.error(error.message, error.next_step) from error
        if sum(map(len, operations)) > RECORDS_MOST:
            raise self.error(f"wrote more than {RECORDS_MOST:,} records in one slice")
        return None

    def _refuse_more(self) -> None:
        if rest := self.reader.describe_leftover():
            raise self.error(f"wrote more after its answer: {rest}", "write only the records that were requested")

    def _unexpected_record(self, got: stream.Record, kind: int) -> ClientError:
        if got.kind == stream.FAILED:
            code = f" (SQLSTATE {got.code})" if got.code else ""
            return self.error(f"cannot go on: {self.output_line(got.text)}{code}")
        return self.error(f"wrote a record {stream.KINDS[got.kind]!r} where {stream.KINDS[kind]!r} is expected")

    def _end_error(self) -> ClientError:
        """Return an error that says how the process ended."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(END_S)
        code = self.process.poll()
        how = (
            "closed its stdout"
            if code is None
            else f"ended with exit {code}"
            if code >= 0
            else f"died of signal {-code}"
        )
        rest = self.reader.describe_leftover()
        said = self.last_stderr_line()
        return self.error(
            f"{how}{f', after {rest}' if rest else ''}{f': {said}' if said else ''}", kind=ClientLostError
        )

    def error(self, message: str, step: str | None = None, kind: type[ClientError] = ClientError) -> ClientError:
        """Return an error that names this client."""
        return kind(f"the client {self.name} {message}", next_step=step or "run `dbdyno client check` with this client")

    def last_stderr_line(self) -> str:
        """Return the last line that the client wrote to stderr."""
        lines = self.said.text().strip().splitlines()
        return self.output_line(lines[-1]) if lines else ""

    def output_line(self, text: str) -> str:
        """Return the client's text in one line, without the connection's password."""
        text = self.without_secrets(text)
        return " ".join("".join(char if char.isprintable() else " " for char in text).split())[:SAID_MOST]

    def without_secrets(self, text: str) -> str:
        """Return the client's text without the connection's password."""
        return sql_without_secrets(text.replace(self.secret, "***") if self.secret else text)

    def cpu_ns(self) -> int:
        """Return the CPU time used by the process, its threads, and its children that ended, in ns."""
        try:
            text = Path(f"/proc/{self.process.pid}/stat").read_text()
        except OSError:
            return 0
        fields = text.rpartition(")")[2].split()
        return sum(int(field) for field in fields[11:15]) * _TICK_NS

    def end(self, patience_s: float = END_S) -> bool:
        """End the process by closing its stdin, then by signals, and return True if closing stdin was enough.

        All processes of its process group are ended too.
        """
        stdin = self.process.stdin
        assert stdin is not None and self.process.stdout is not None
        with contextlib.suppress(OSError):
            stdin.close()
        willing = self._wait_for_end(patience_s)
        for number in (signal.SIGTERM, signal.SIGKILL):
            # Also if it ended by itself: processes that it started may still run.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, number)
            if self._wait_for_end(1.0 if number == signal.SIGTERM else END_S):
                continue
        self.process.stdout.close()
        return willing

    def kill(self) -> None:
        """End the process immediately."""
        self.end(0.0)

    def _wait_for_end(self, patience_s: float) -> bool:
        """Return True if the process ends in time; its output is read and discarded, so that it does not block."""
        assert self.process.stdout is not None
        deadline = time.monotonic() + patience_s
        while self.process.poll() is None:
            if time.monotonic() > deadline:
                return False
            with contextlib.suppress(OSError, ValueError):
                ready, _, _ = select.select([self.process.stdout.fileno()], [], [], 0.02)
                if ready and not os.read(self.process.stdout.fileno(), 1 << 20):
                    time.sleep(0.01)
        return True


class StopRequested(Exception):  # noqa: N818
    """Error for a client's work that was interrupted because the user or the system asked to stop."""
