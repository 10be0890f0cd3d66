"""The client's side of the protocol, for clients in Python: reads the job, runs its slices, writes the records.

A client gives `serve` a function that opens a session. Each session has a thread; records stay in memory while a slice
runs and are written at its end, or once a second. Nothing heavy is imported: what is, is part of a client's cost.

Limits: sessions share an interpreter, so from about two sessions on Python itself is what is measured.
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
from dbdyno.bench.clients.messages import JobLine, Message, SliceLine
from dbdyno.bench.clients.stream import LAYOUT, MARK, Record, packed

FLUSH_NS = 1_000_000_000
RECONNECT_S = 10.0
clock_ns = time.monotonic_ns


@dataclass(frozen=True)
class Statement:
    """One statement: its SQL between its values, and whether it is a query that a cursor may fetch."""

    pieces: list[str]
    query: bool
    kind: str

    def text(self, placeholder: Callable[[int], str]) -> str:
        """The SQL with a placeholder for each value, counted from 1."""
        parts = [self.pieces[0]]
        for number, piece in enumerate(self.pieces[1:], 1):
            parts += [placeholder(number), piece]
        return "".join(parts)

    def literal(self, values: Sequence[Any]) -> str:
        """The SQL with its values written into it."""
        parts = [self.pieces[0]]
        for value, piece in zip(values, self.pieces[1:], strict=True):
            parts += [literal(value), piece]
        return "".join(parts)


@dataclass(frozen=True)
class Job:
    """What the first line says."""

    sessions: int
    mode: str
    fetch_size: int | None
    statements: list[Statement]
    single: list[bool]
    session_sql: list[str]
    statement_timeout_ms: int | None

    def before(self) -> list[str]:
        """What each new session runs."""
        timeout = self.statement_timeout_ms
        return [*self.session_sql, *([f"set statement_timeout = {timeout}"] if timeout else [])]


class Session(Protocol):
    """A connection at work."""

    def run(self, number: int, values: list[Any]) -> int:
        """Runs a statement with its values and takes all rows; their number, -1 where it is not known."""

    def recover(self) -> bool:
        """After an error: leaves no transaction open. False where the connection is lost."""

    def close(self) -> None:
        """Says goodbye to the server."""


class CannotGoOnError(Exception):
    """What no later operation would do better: the client says why, and ends."""


Open = Callable[[Job], Session]
Code = Callable[[BaseException], str]
Words = Callable[[BaseException], str]
"""The message of an error and whose it is, by `stream.said`."""
Prepare = Callable[[list[Any]], list[Any]]


def literal(value: Any) -> str:
    """A value as SQL has it.

    >>> literal("o'clock"), literal(None), literal(-1)
    ("'o''clock'", 'null', '-1')
    """
    if value is None:
        return "null"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return str(value).lower() if isinstance(value, bool) else str(value)


@dataclass
class Seat:
    """A session with its drawn transactions and its place among them."""

    session: Session
    number: int
    drawn: list[Any] = field(default_factory=list)
    at: int = 0

    def next(self) -> tuple[int, list[tuple[int | None, list[Any]]]]:
        """The next of its transactions, round in circles."""
        script, steps = self.drawn[self.at]
        self.at = (self.at + 1) % len(self.drawn)
        return script, steps


class Due:
    """The due times of an open loop, which the sessions share: whoever is free takes the next one."""

    def __init__(self, times: list[int], give_up_ns: int) -> None:
        self.times, self.give_up_ns = iter(times), give_up_ns
        self.lock = Lock()

    @classmethod
    def of(cls, message: SliceLine) -> Due | None:
        """Those of a slice; None in a closed loop."""
        return cls(message["due_ns"], message["give_up_ns"]) if "due_ns" in message else None

    def take(self) -> int | None:
        """The next time; None where there is none left, or what is left is given up."""
        with self.lock:
            due = next(self.times, None)
        return None if clock_ns() >= self.give_up_ns else due


class Serving:
    """One client at work; `about` is its name and version, `code_of` gives an error's SQLSTATE (empty: not one of the
    server's), `words_of` what it says, `taken` turns drawn values into the driver's own."""

    def __init__(self, about: str, opened: Open, code_of: Code, taken: Prepare = list, words_of: Words = str) -> None:
        self.opened, self.code_of, self.taken, self.words_of = opened, code_of, taken, words_of
        self.out, self.lock = sys.stdout.buffer, Lock()
        # Whatever a driver prints goes to stderr: stdout is for the stream alone.
        sys.stdout = sys.stderr
        self.write(Record(stream.HELLO, statement=stream.VERSION, started_ns=clock_ns(), text=about))
        self.job: Job | None = None
        self.due: Due | None = None
        self.seats: list[Seat] = []
        self.pool: ThreadPoolExecutor | None = None
        self.lost = 0
        self.said: set[tuple[int, str]] = set()

    def write(self, record: Record) -> None:
        """One record, at once."""
        self.flush([packed(record)])

    def flush(self, rows: list[bytes]) -> None:
        """Rows as they are, at once."""
        with self.lock:
            self.out.write(b"".join(rows))
            self.out.flush()

    def answer(self, message: Message) -> None:
        """Does what a line says."""
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

    def connect(self, message: JobLine) -> None:
        """Opens the sessions."""
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
            self.seats.append(Seat(self.opened(job), number))
        self.pool = ThreadPoolExecutor(job.sessions - 1) if job.sessions > 1 else None

    def close(self) -> None:
        """Closes the sessions."""
        for seat in self.seats:
            seat.session.close()
        self.seats = []
        if self.pool is not None:
            self.pool.shutdown()
            self.pool = None

    def slice(self, message: SliceLine) -> None:
        """Runs one slice and writes its end."""
        began = clock_ns()
        self.due = Due.of(message)
        calls = self.shares(message, began)
        others = [self.pool.submit(self.turn, *call) for call in calls[1:]] if self.pool is not None else []
        done = self.turn(*calls[0]) + sum(other.result() for other in others)
        self.end_slice(message, began, done)

    def shares(self, message: SliceLine, began: int) -> list[tuple[Seat, int, int | None, int | None]]:
        """Each session's part of a slice: until when, or how many of the transactions."""
        count, sessions = message["transactions"] if self.due is None else None, len(self.seats)
        until = None if count is not None else began + (message["length_ns"] or 0)

        def share(number: int) -> int | None:
            return None if count is None else count // sessions + (number < count % sessions)

        return [(seat, message["slice"], until, share(seat.number)) for seat in self.seats]

    def end_slice(self, message: SliceLine, began: int, done: int) -> None:
        """Writes a slice's end."""
        lost, self.lost = self.lost, 0
        elapsed = clock_ns() - began
        self.write(Record(stream.END, 0, message["slice"], lost, began, elapsed, done))

    def turn(self, seat: Seat, number: int, until_ns: int | None, most: int | None) -> int:
        """One session's part of a slice; how many transactions it ran."""
        assert self.job is not None
        rows: list[bytes] = []
        now = flushed = clock_ns()
        count = 0
        while (now := self.begins(now, until_ns, most, count)) >= 0:
            script, steps = seat.next()
            count += 1
            now = self.transaction(seat, number, script, steps, now, rows)
            if now - flushed > FLUSH_NS:
                self.flush(rows)
                rows, flushed = [], clock_ns()
                now = flushed
        self.flush(rows)
        return count

    def begins(self, now: int, until_ns: int | None, most: int | None, count: int) -> int:
        """When the next transaction of a session begins, after `count` of them: at once in a closed loop, when it is
        due in an open one; -1 where the slice is over."""
        if self.due is None:
            over = now >= until_ns if until_ns is not None else count >= (most or 0)
            return -1 if over else now
        if (due := self.due.take()) is None:
            return -1
        if due > now:
            time.sleep(max(0, due - clock_ns()) / 1e9)
        return clock_ns()

    def transaction(self, seat: Seat, number: int, script: int, steps: list[Any], now: int, rows: list[bytes]) -> int:
        """Runs one transaction and appends its rows; when it ended."""
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
            except CannotGoOnError:
                raise
            except Exception as error:
                now = clock_ns()
                got, code = -1, self.failed(seat, number, statement, error)
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

    def failed(self, seat: Seat, number: int, statement: int, error: BaseException) -> bytes:
        """An error's code; its words are told once for each statement."""
        code = self.code_of(error) or stream.LOST
        if (statement, code) not in self.said:
            self.said.add((statement, code))
            text = self.words_of(error)
            self.write(Record(stream.SAID, seat.number, number, statement, clock_ns(), code=code, text=text))
        return code.encode()

    def recover(self, seat: Seat) -> None:
        """Leaves no transaction open after an error; connects again where the connection is lost."""
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
        """A drawn transaction with the driver's own values."""
        script, steps = one
        return script, [(step[0], step[1:] if step[0] is None else self.taken(step[1:])) for step in steps]


def serve(about: str, opened: Open, code_of: Code, taken: Prepare = list, words_of: Words = str) -> None:
    """Serves until stdin ends."""
    serve_with(Serving(about, opened, code_of, taken, words_of), code_of)


def serve_with(serving: Serving, code_of: Code) -> None:
    """Serves until stdin ends. What cannot go on is told to whoever started it."""
    try:
        for line in sys.stdin.buffer:
            serving.answer(json.loads(line))
        serving.close()
    except BrokenPipeError:
        os._exit(1)  # nobody reads on, and nothing is left to be said
    except Exception as error:
        text = str(error) if isinstance(error, CannotGoOnError) else f"{type(error).__name__}: {error}"
        serving.write(Record(stream.FAILED, started_ns=clock_ns(), code=code_of(error), text=text))
        os._exit(1)
