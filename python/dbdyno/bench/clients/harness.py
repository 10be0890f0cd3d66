"""The client's side of the protocol for clients in Python: reads the job, runs its slices, writes the records.

A client calls `serve` with a function that opens a session. Each session has a thread; records stay in memory while a
slice runs and are written at its end, or once a second. No heavy modules are imported: imports are part of a client's
cost.

Limits: sessions share an interpreter, so with two sessions or more, Python itself is measured.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Protocol

from dbdyno.bench.clients import stream
from dbdyno.bench.clients.messages import JobMessage, Message, SliceMessage
from dbdyno.bench.clients.stream import LAYOUT, MARK, Record, pack

FLUSH_NS = 1_000_000_000
RECONNECT_S = 10.0
clock_ns = time.monotonic_ns


@dataclass(frozen=True)
class Statement:
    """One statement: its SQL, split where values are inserted, and whether it is a query that a cursor may fetch."""

    pieces: list[str]
    query: bool
    kind: str

    def text(self, placeholder: Callable[[int], str]) -> str:
        """Return the SQL with a placeholder for each value, numbered from 1."""
        parts = [self.pieces[0]]
        for number, piece in enumerate(self.pieces[1:], 1):
            parts += [placeholder(number), piece]
        return "".join(parts)

    def with_literals(self, values: Sequence[Any]) -> str:
        """Return the SQL with its values inserted as literals."""
        parts = [self.pieces[0]]
        for value, piece in zip(values, self.pieces[1:], strict=True):
            parts += [literal(value), piece]
        return "".join(parts)


@dataclass(frozen=True)
class Job:
    """Content of the job message."""

    sessions: int
    mode: str
    fetch_size: int | None
    statements: list[Statement]
    single: list[bool]
    session_sql: list[str]
    statement_timeout_ms: int | None

    def session_setup(self) -> list[str]:
        """Return the SQL that each new session runs first."""
        timeout = self.statement_timeout_ms
        return [*self.session_sql, *([f"set statement_timeout = {timeout}"] if timeout else [])]


class Session(Protocol):
    """An open connection that can run the job's statements."""

    def run(self, number: int, values: list[Any]) -> int:
        """Run a statement with its values, fetch all rows and return their number, or -1 if unknown."""

    def recover(self) -> bool:
        """Leave no transaction open after an error, and return False if the connection is lost."""

    def close(self) -> None:
        """Close the connection to the server."""


class FatalClientError(Exception):
    """Raised for an error that would also fail every later operation: the client reports the reason and exits."""


OpenSession = Callable[[Job], Session]
CodeOf = Callable[[BaseException], str]
MessageOf = Callable[[BaseException], str]
"""Function that returns an error's message with identifying fields, as `stream.text_of` expects it."""
ConvertValues = Callable[[list[Any]], list[Any]]


def literal(value: Any) -> str:
    """Return a value as an SQL literal.

    >>> literal("o'clock"), literal(None), literal(-1)
    ("'o''clock'", 'null', '-1')
    """
    if value is None:
        return "null"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return str(value).lower() if isinstance(value, bool) else str(value)


@dataclass
class ClientSession:
    """A session with its drawn transactions and its position in them."""

    session: Session
    number: int
    drawn: list[Any] = field(default_factory=list)
    at: int = 0

    def next(self) -> tuple[int, list[tuple[int | None, list[Any]]]]:
        """Return the session's next transaction, starting again after the last one."""
        script, steps = self.drawn[self.at]
        self.at = (self.at + 1) % len(self.drawn)
        return script, steps


class DueTimes:
    """Due times of an open loop, shared by the sessions: whichever is free takes the next one."""

    def __init__(self, times: list[int], give_up_ns: int) -> None:
        self.times, self.give_up_ns = iter(times), give_up_ns
        self.lock = Lock()

    @classmethod
    def from_message(cls, message: SliceMessage) -> DueTimes | None:
        """Return the due times of a slice, or None in a closed loop."""
        return cls(message["due_ns"], message["give_up_ns"]) if "due_ns" in message else None

    def take(self) -> int | None:
        """Return the next due time, or None if there are no more or the rest is skipped."""
        with self.lock:
            due = next(self.times, None)
        return None if clock_ns() >= self.give_up_ns else due


class ProtocolServer:
    """The client's side of the protocol, for one client.

    Args:
        about: Name and version of the client.
        opened: Opens a session.
        code_of: Returns an error's SQLSTATE; empty if the error does not come from the server.
        taken: Converts drawn values to the driver's types.
        words_of: Returns an error's message.
    """

    def __init__(
        self, about: str, opened: OpenSession, code_of: CodeOf, convert: ConvertValues = list, words_of: MessageOf = str
    ) -> None:
        self.opened, self.code_of, self.taken, self.words_of = opened, code_of, convert, words_of
        self.out, self.lock = sys.stdout.buffer, Lock()
        # Anything that a driver prints goes to stderr: stdout is only for the stream.
        sys.stdout = sys.stderr
        self.write(Record(stream.HELLO, statement=stream.VERSION, started_ns=clock_ns(), text=about))
        self.job: Job | None = None
        self.due: DueTimes | None = None
        self.seats: list[ClientSession] = []
        self.pool: ThreadPoolExecutor | None = None
        self.lost = 0
        self.said: set[tuple[int, str]] = set()

    def write(self, record: Record) -> None:
        """Write one record immediately."""
        self.flush([pack(record)])

    def flush(self, rows: list[bytes]) -> None:
        """Write packed records immediately."""
        with self.lock:
            self.out.write(b"".join(rows))
            self.out.flush()

    def handle(self, message: Message) -> None:
        """Carry out a message of the protocol."""
        began = clock_ns()
        if message["do"] == "job":
            self.connect(message)
            self.write(Record(stream.READY, started_ns=began, elapsed_ns=clock_ns() - began))
        elif message["do"] == "draw":
            for seat, drawn in zip(self.seats, message["transactions"], strict=True):
                seat.at, seat.drawn = 0, [self._ready(one) for one in drawn]
        elif message["do"] == "slice":
            self.slice(message)
        elif message["do"] == "close":
            self.close()
            self.write(Record(stream.CLOSED, started_ns=began, elapsed_ns=clock_ns() - began))

    def connect(self, message: JobMessage) -> None:
        """Store the job and open its sessions."""
        self.job = job = Job(
            sessions=message["sessions"],
            mode=message["mode"],
            fetch_size=message["fetch_size"],
            statements=[Statement(own["pieces"], own["query"], own["kind"]) for own in message["statements"]],
            single=[own["single"] for own in message["scripts"]],
            session_sql=message["session_sql"],
            statement_timeout_ms=message["statement_timeout_ms"],
        )
        self.seats = []
        for number in range(job.sessions):
            self.seats.append(ClientSession(self.opened(job), number))
        self.pool = ThreadPoolExecutor(job.sessions - 1) if job.sessions > 1 else None

    def close(self) -> None:
        """Close the sessions."""
        for seat in self.seats:
            seat.session.close()
        self.seats = []
        if self.pool is not None:
            self.pool.shutdown()
            self.pool = None

    def slice(self, message: SliceMessage) -> None:
        """Run one slice, and write the record of its end."""
        began = clock_ns()
        self.due = DueTimes.from_message(message)
        calls = self.shares(message, began)
        others = [self.pool.submit(self.turn, *call) for call in calls[1:]] if self.pool is not None else []
        done = self.turn(*calls[0]) + sum(other.result() for other in others)
        self.end_slice(message, began, done)

    def shares(self, message: SliceMessage, began: int) -> list[tuple[ClientSession, int, int | None, int | None]]:
        """Return each session's part of a slice: (session, slice, end time or None, transactions or None)."""
        count, sessions = message["transactions"] if self.due is None else None, len(self.seats)
        until = None if count is not None else began + (message["length_ns"] or 0)

        def share(number: int) -> int | None:
            return None if count is None else count // sessions + (number < count % sessions)

        return [(seat, message["slice"], until, share(seat.number)) for seat in self.seats]

    def end_slice(self, message: SliceMessage, began: int, done: int) -> None:
        """Write the record of a slice's end."""
        lost, self.lost = self.lost, 0
        elapsed = clock_ns() - began
        self.write(Record(stream.END, 0, message["slice"], lost, began, elapsed, done))

    def turn(self, seat: ClientSession, number: int, until_ns: int | None, limit: int | None) -> int:
        """Run one session's part of a slice and return the number of its transactions."""
        assert self.job is not None
        rows: list[bytes] = []
        now = flushed = clock_ns()
        count = 0
        while (now := self.next_start(now, until_ns, limit, count)) >= 0:
            script, steps = seat.next()
            count += 1
            now = self.transaction(seat, number, script, steps, now, rows)
            if now - flushed > FLUSH_NS:
                self.flush(rows)
                rows, flushed = [], clock_ns()
                now = flushed
        self.flush(rows)
        return count

    def next_start(self, now: int, until_ns: int | None, limit: int | None, count: int) -> int:
        """Return the start time of a session's next transaction, after `count` of them [ns]; -1 if the slice is over.

        In a closed loop the start time is now; in an open loop the call waits until the transaction is due.
        """
        if self.due is None:
            over = now >= until_ns if until_ns is not None else count >= (limit or 0)
            return -1 if over else now
        if (due := self.due.take()) is None:
            return -1
        if due > now:
            time.sleep(max(0, due - clock_ns()) / 1e9)
        return clock_ns()

    def transaction(
        self, seat: ClientSession, number: int, script: int, steps: list[Any], now: int, rows: list[bytes]
    ) -> int:
        """Run one transaction, append its records to `rows`, and return the time at its end in ns."""
        assert self.job is not None
        single, began, got, code, own = self.job.single[script], now, -1, b"", seat.number
        for statement, values in steps:
            if statement is None:
                time.sleep(values[0] / 1e6)
                now = clock_ns()
                continue
            begun = now
            try:
                got = seat.session.run(statement, values)
            except FatalClientError:
                raise
            except Exception as error:
                now = clock_ns()
                got, code = -1, self.report_failure(seat, number, statement, error)
            else:
                now = clock_ns()
            if not single:
                rows.append(
                    LAYOUT.pack(stream.STATEMENT, MARK, own, number, statement, 0, begun, now - begun, got, code)
                )
            if code:
                break
        took = now - began
        only = got if single else -1
        rows.append(LAYOUT.pack(stream.TRANSACTION, MARK, own, number, script, 0, began, took, only, code))
        if code:
            self.recover(seat)
            now = clock_ns()
        return now

    def report_failure(self, seat: ClientSession, number: int, statement: int, error: BaseException) -> bytes:
        """Return an error's code; its message is sent only once per statement."""
        code = self.code_of(error) or stream.LOST
        if (statement, code) not in self.said:
            self.said.add((statement, code))
            text = self.words_of(error)
            self.write(Record(stream.SAID, seat.number, number, statement, clock_ns(), code=code, text=text))
        return code.encode()

    def recover(self, seat: ClientSession) -> None:
        """Leave no transaction open after an error, and reconnect if the connection is lost."""
        assert self.job is not None
        if seat.session.recover():
            return
        deadline = time.monotonic() + RECONNECT_S
        while True:
            try:
                seat.session = self.opened(self.job)
            except Exception:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)
            else:
                self.lost += 1
                return

    def _ready(self, one: list[Any]) -> tuple[int, list[tuple[int | None, list[Any]]]]:
        """Return a drawn transaction with values in the driver's types."""
        script, steps = one
        return script, [(step[0], step[1:] if step[0] is None else self.taken(step[1:])) for step in steps]


def serve(
    about: str, opened: OpenSession, code_of: CodeOf, convert: ConvertValues = list, words_of: MessageOf = str
) -> None:
    """Serve the protocol until stdin ends; see `ProtocolServer` for the arguments."""
    serve_with(ProtocolServer(about, opened, code_of, convert, words_of), code_of)


def serve_with(serving: ProtocolServer, code_of: CodeOf) -> None:
    """Serve the protocol until stdin ends; an error that ends the client is written to the stream first."""
    try:
        for line in sys.stdin.buffer:
            serving.handle(json.loads(line))
        serving.close()
    except BrokenPipeError:
        os._exit(1)  # nobody reads the stream any more
    except Exception as error:
        text = str(error) if isinstance(error, FatalClientError) else f"{type(error).__name__}: {error}"
        serving.write(Record(stream.FAILED, started_ns=clock_ns(), code=code_of(error), text=text))
        os._exit(1)
