"""The client asyncpg, with one coroutine per session in one event loop.

`prepared` prepares each statement once, `binds` prepares it for each execution, and `literals` sends it as text. With a
fetch size a query is read through a cursor in a transaction.
"""

from __future__ import annotations

import asyncio
import os
from typing import Any

import asyncpg

from dbdyno.base.json_types import JsonObject
from dbdyno.bench.clients import stream
from dbdyno.bench.clients.harness import (
    FLUSH_NS,
    ClientSession,
    DueTimes,
    Job,
    ProtocolServer,
    Statement,
    clock_ns,
    serve_with,
)
from dbdyno.bench.clients.messages import SliceMessage
from dbdyno.bench.clients.stream import LAYOUT, MARK, text_of


class AsyncpgSession:
    """One connection; because its methods are coroutines, this file's own server class drives it."""

    def __init__(self, job: Job, connection: Any) -> None:
        self.job, self.connection = job, connection
        self.kept: dict[int, Any] = {}

    async def query(self, number: int, values: list[Any]) -> int:
        """Run a statement, fetch all rows and return their number."""
        statement, connection = self.job.statements[number], self.connection
        if self.job.mode == "literals":
            text, values = statement.with_literals(values), []
            if not (self.job.fetch_size and statement.query):
                return await self._text(statement, text)
            return await self._fetch(await connection.prepare(text), values)
        ready = self.kept.get(number)
        if ready is None:
            ready = await connection.prepare(
                _number_parameters(statement), name="" if self.job.mode == "binds" else None
            )
            if self.job.mode == "prepared":
                self.kept[number] = ready
        values = _convert_values(ready, values)
        if self.job.fetch_size and statement.query:
            return await self._fetch(ready, values)
        rows = await ready.fetch(*values)
        return len(rows) if statement.query else _changed_rows(ready.get_statusmsg())

    async def _text(self, statement: Statement, text: str) -> int:
        """Run SQL text without bind values and return the number of rows that it returned or changed."""
        if statement.query:
            return len(await self.connection.fetch(text))
        return _changed_rows(await self.connection.execute(text))

    async def _fetch(self, ready: Any, values: list[Any]) -> int:
        size, count = self.job.fetch_size or 1, 0
        inside = self.connection.is_in_transaction()
        if not inside:
            await self.connection.execute("begin")
        cursor = await ready.cursor(*values)
        while rows := await cursor.fetch(size):
            count += len(rows)
            if len(rows) < size:
                break
        if not inside:
            await self.connection.execute("commit")
        return count

    async def recover(self) -> bool:
        """Roll back an open transaction and return False if the connection is lost."""
        if self.connection.is_closed():
            return False
        if self.connection.is_in_transaction():
            await self.connection.execute("rollback")
        return True


def _number_parameters(statement: Statement) -> str:
    return statement.text(lambda number: f"${number}")


def _convert_values(ready: Any, values: list[Any]) -> list[Any]:
    """Return the values in the Python types that asyncpg requires: str for text parameters, others unchanged."""
    return [
        str(value) if value is not None and parameter.kind == "scalar" and parameter.name in _TEXTS else value
        for value, parameter in zip(values, ready.get_parameters(), strict=True)
    ]


_TEXTS = ("text", "varchar", "bpchar", "name", "unknown")


def _changed_rows(status: str) -> int:
    """Return the number of rows in a command's status, such as 'UPDATE 3'."""
    last = (status or "").rpartition(" ")[2]
    return int(last) if last.isdigit() else 0


class AsyncProtocolServer(ProtocolServer):
    """The client's side of the protocol, with coroutines instead of threads."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        opened: Any = self.open_blocking
        super().__init__(f"asyncpg {asyncpg.__version__}", opened, code_of, words_of=message_of)

    def open_blocking(self, job: Job) -> AsyncpgSession:
        """Open a session, and wait until it is open."""
        return self.loop.run_until_complete(self.open_session(job))

    async def open_session(self, job: Job) -> AsyncpgSession:
        """Connect with libpq's environment variables and prepare the session."""
        kept = 0 if job.mode != "prepared" else 100
        connection = await asyncpg.connect(statement_cache_size=kept, **_connection())
        for sql in job.session_setup():
            await connection.execute(sql)
        return AsyncpgSession(job, connection)

    def close(self) -> None:
        """Close the sessions."""
        for seat in self.seats:
            self.loop.run_until_complete(seat.session.connection.close())  # type: ignore[attr-defined]
        self.seats = []
        super().close()

    def slice(self, message: SliceMessage) -> None:
        """Run one slice and write its end record."""
        began = clock_ns()
        self.due = DueTimes.from_message(message)
        calls = self.shares(message, began)
        done = self.loop.run_until_complete(self.run_concurrently([self.turn_async(*call) for call in calls]))
        self.end_slice(message, began, done)

    async def run_concurrently(self, turns: list[Any]) -> int:
        """Run all sessions' turns concurrently and return the number of transactions that they ran."""
        return sum(await asyncio.gather(*turns))

    async def turn_async(self, seat: ClientSession, number: int, until_ns: int | None, limit: int | None) -> int:
        """Run one session's part of a slice and return the number of its transactions."""
        rows: list[bytes] = []
        now = flushed = clock_ns()
        count = 0
        while (now := await self.await_next_start(now, until_ns, limit, count)) >= 0:
            script, steps = seat.next()
            count += 1
            now = await self.transaction_async(seat, number, script, steps, now, rows)
            if now - flushed > FLUSH_NS:
                self.flush(rows)
                rows, flushed = [], clock_ns()
                now = flushed
        self.flush(rows)
        return count

    async def await_next_start(self, now: int, until_ns: int | None, limit: int | None, count: int) -> int:
        """Return the same as `next_start`, but let other sessions run while this one waits."""
        if self.due is None:
            return self.next_start(now, until_ns, limit, count)
        if (due := self.due.take()) is None:
            return -1
        # The event loop's clock is coarser than ours and may wake up early.
        while (now := clock_ns()) < due:
            await asyncio.sleep((due - now) / 1e9)
        return now

    async def transaction_async(
        self, seat: ClientSession, number: int, script: int, steps: list[Any], now: int, rows: list[bytes]
    ) -> int:
        """Run one transaction, append its records to `rows`, and return the time at its end in ns."""
        assert self.job is not None
        single, began, got, code, own = self.job.single[script], now, -1, b"", seat.number
        for statement, values in steps:
            if statement is None:
                await asyncio.sleep(values[0] / 1e6)
                now = clock_ns()
                continue
            begun = now
            try:
                got = await seat.session.query(statement, values)  # type: ignore[attr-defined]
                now = clock_ns()
            except Exception as error:
                now = clock_ns()
                got, code = -1, self.report_failure(seat, number, statement, error)
            if not single:
                rows.append(
                    LAYOUT.pack(stream.STATEMENT, MARK, own, number, statement, 0, begun, now - begun, got, code)
                )
            if code:
                break
        only = got if single else -1
        rows.append(LAYOUT.pack(stream.TRANSACTION, MARK, own, number, script, 0, began, now - began, only, code))
        if code:
            if not await seat.session.recover():  # type: ignore[misc]
                seat.session = await self.open_session(self.job)  # type: ignore[assignment]
                self.lost += 1
            now = clock_ns()
        return now


def _connection() -> JsonObject:
    """Return the connection arguments that asyncpg does not read from libpq's environment variables itself."""
    own: dict[str, str] = {"application_name": os.environ.get("PGAPPNAME", "")}
    for word in os.environ.get("PGOPTIONS", "").replace("-c ", "-c").split():
        name, _, value = word.removeprefix("-c").partition("=")
        if name and value:
            own[name] = value
    return {"server_settings": {name: value for name, value in own.items() if value}}


def code_of(error: BaseException) -> str:
    """Return the SQLSTATE of an error; empty if the connection is lost."""
    lost = isinstance(error, OSError | asyncpg.InterfaceError)
    return getattr(error, "sqlstate", None) or ("" if lost else "XX000")


def message_of(error: BaseException) -> str:
    """Return the server's message with the fields that identify the object, otherwise the driver's text."""
    if not isinstance(error, asyncpg.PostgresError) or not getattr(error, "message", None):
        return str(error)
    names = {"R": "server_source_function", "s": "schema_name", "t": "table_name", "c": "column_name"}
    names |= {"d": "data_type_name", "n": "constraint_name"}
    return text_of(str(error.message), **{letter: getattr(error, name, None) for letter, name in names.items()})


if __name__ == "__main__":
    serve_with(AsyncProtocolServer(), code_of)
