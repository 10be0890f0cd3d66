"""One side of a rehearsal: a server that executes statements and rolls back every transaction.

Statements are sent by the extended protocol with the captured values in the captured formats, so that values never
become part of a text. Captured simple queries are sent in this way, too, because the server then refuses several
commands in one message: a COMMIT after an INSERT would make its rows permanent. Results are kept as bytes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from operator import methodcaller
from typing import Any

import psycopg
from psycopg import generators, pq

from dbdyno.base.errors import TargetError
from dbdyno.bench.postgres.server import Postgres
from dbdyno.bench.postgres.session import StopRequested
from dbdyno.rehearse.answer import Answer, answer_of
from dbdyno.rehearse.pipeline import Send, run_pipeline
from dbdyno.rehearse.privacy import hidden_message, hidden_plan, without_values
from dbdyno.rehearse.quiet_session import disable_logging
from dbdyno.rehearse.run_queue import Stopwatch, is_local, run_queue_of
from dbdyno.rehearse.statement import Parameters, Statement

NAME = "dbdyno rehearse"
LOCK_TIMEOUT_MS = 5_000
_LEAST_NS = 1_000
"""Minimum time of an execution [ns] after the longer network path to the farther server is subtracted."""
_ENDING = (b"FATAL", b"PANIC")
"""Error severities that end a session."""
_UNDO = "rollback to rehearsed"
_HAS_WRITTEN = "select pg_catalog.txid_current_if_assigned() is not null"
_SETTINGS_SINCE, _WAL_SINCE = 120_000, 130_000
"""Server versions since which EXPLAIN has the options SETTINGS and WAL."""


class ExecutionError(Exception):
    """Raised when the server refuses an execution, with the server's `sqlstate` and message."""

    def __init__(self, sqlstate: str, message: str, *, is_raised: bool = False) -> None:
        super().__init__(message)
        self.sqlstate = sqlstate
        self.is_raised = is_raised


@dataclass
class Side:
    """A server of a rehearsal.

    Attributes:
        name: `old` or `new`.
        server: The server.
        timeout_ms: Time limit for each statement [ms].
        settings: Statements that are run at the beginning of each transaction, such as a setting under test.
        stop: Function that is called while a statement runs; the statement is cancelled when it returns True.
        notes: Sentences on how the side was made.
        private: True to return messages and plans without the values of the load.
        without_waits: True to subtract the time in which the server's process or this one waited for a processor.
        waits: Time of all executions by the clock, and what was subtracted from it as waits [ns].
        farther_ns: Time by which a round trip takes longer than to the other side [ns]; subtracted from all times.
    """

    name: str
    server: Postgres
    timeout_ms: int = 30_000
    settings: tuple[str, ...] = ()
    stop: Any = None
    notes: tuple[str, ...] = ()
    private: bool = False
    without_waits: bool = False
    waits: tuple[int, int] = (0, 0)
    farther_ns: int = 0
    _connection: Any = field(default=None, repr=False)
    _watch: Stopwatch = field(default_factory=lambda: Stopwatch(None), repr=False)
    _prepared: dict[tuple[str, tuple[int, ...]], bytes] = field(default_factory=dict, repr=False)
    """Names of the connection's prepared statements, by text and types."""

    def _open(self) -> None:
        """Open the connection if there is none; only between transactions, so that every write is inside one.

        Raises:
            TargetError: The server does not answer.
        """
        if self._connection is None or self._connection.closed:
            self._prepared.clear()
            self._connection = self.server.connect(
                statement_timeout_ms=self.timeout_ms,
                lock_timeout_ms=LOCK_TIMEOUT_MS,
                application_name=NAME,
                stop=self.stop,
            )
            disable_logging(self._connection)
            queue = run_queue_of(self._connection.info.backend_pid) if self.without_waits else None
            self._replace_watch(Stopwatch(queue))

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            with contextlib.suppress(psycopg.Error):
                self._connection.close()
        self._connection = None
        self._replace_watch(Stopwatch(None))

    def _replace_watch(self, watch: Stopwatch) -> None:
        """Replace the stopwatch after a reconnection, and add the times of the old one to the totals."""
        self.waits = (self.waits[0] + self._watch.elapsed_ns, self.waits[1] + self._watch.waited_ns)
        self._watch.close()
        self._watch = watch

    def subtract_waits(self) -> bool:
        """Subtract waits of the server process for a processor from now on; return False if they cannot be measured.

        Raises:
            TargetError: The server does not answer.
        """
        self.close()
        self.without_waits = True
        self._open()
        self.without_waits = is_local(self.server.libpq_parameters()) and self._watch.is_counting
        return self.without_waits

    @contextlib.contextmanager
    def transaction(self, statement: Statement, *more: str) -> Iterator[None]:
        """Return a context manager for a transaction with the session's settings, which is rolled back at the end.

        `more` are settings only for this transaction.

        Raises:
            ExecutionError: A setting is not accepted.
            TargetError: The connection was lost.
        """
        self._open()
        with self._in_words():
            try:
                self._commands(
                    "begin", *statement.settings, *self.settings, *more, self._limits(), "savepoint rehearsed"
                )
                yield
            finally:
                if self._connection is not None and not self._connection.closed:
                    self._command("rollback")

    def ping(self) -> None:
        """Send an empty query and wait for its answer.

        Raises:
            TargetError: The server does not answer.
        """
        self._open()
        with self._in_words():
            pgconn = self._connection.pgconn
            pgconn.send_query(b"")
            self._connection.wait(generators.execute(pgconn))

    def execute(self, parameters: Parameters, *, undo: bool = True) -> int:
        """Execute a statement once, undo its changes, and return the time until its last row [ns].

        With `undo=False`, changes are undone only at the end of the transaction; this is for read-only statements.

        Raises:
            ExecutionError: The server refused the statement.
        """
        pgconn = self._connection.pgconn
        send = _send_execution(parameters, self._prepare(parameters) if parameters.is_prepared else None)
        self._watch.start()
        send(pgconn)
        results = self._connection.wait(generators.execute(pgconn))
        elapsed = max(self._watch.stop() - self.farther_ns, _LEAST_NS)
        self._refuse_ended_transaction()
        if undo:
            self._undo()
        self._refuse(results, parameters.text)
        return elapsed

    def execute_together(self, executions: Sequence[Parameters]) -> int:
        """Execute read-only statements in one pipeline and return the time until the last row of the last one [ns].

        Raises:
            ExecutionError: The server refused one of the statements.
        """
        names = [self._prepare(one) if one.is_prepared else None for one in executions]
        sends = [_send_execution(one, name) for one, name in zip(executions, names, strict=True)]
        self._watch.start()
        results = run_pipeline(self._connection, sends)
        elapsed = max(self._watch.stop() - self.farther_ns, _LEAST_NS)
        self._refuse_ended_transaction()
        for parameters, found in zip(executions, results, strict=True):
            self._refuse(found, parameters.text)
        return elapsed

    def answer(self, parameters: Parameters) -> Answer:
        """Execute a statement once, undo its changes, and return its answer or error."""
        found, undone = run_pipeline(self._connection, [_send_execution(parameters), _send_command(_UNDO)], apart=True)
        self._refuse_ended_transaction()
        self._refuse(undone, _UNDO)
        try:
            self._refuse(found, parameters.text)
        except ExecutionError as error:
            return Answer(sqlstate=error.sqlstate, message=str(error))
        return _answer(found[-1])

    def has_written(self) -> bool:
        """Return True if the transaction has changed or locked rows, even if the changes were undone."""
        (results,) = run_pipeline(self._connection, [_send_command(_HAS_WRITTEN)])
        self._refuse(results, _HAS_WRITTEN)
        return bool(results[-1].get_value(0, 0) == b"t")

    def explain(self, parameters: Parameters, *, run: bool = False) -> str:
        """Return the plan as JSON; with `run`, execute the statement so that the plan has times and buffers.

        Raises:
            ExecutionError: The server refused the statement.
        """
        text = f"{self._explain(run=run)} {parameters.text.rstrip().rstrip(';')}"
        return self._query_value(replace(parameters, text=text))

    def explain_prepared(self, parameters: Parameters, *, run: bool = False) -> str:
        """Return the current plan of a prepared statement in this session as JSON: generic if it contains `$1`.

        Raises:
            ExecutionError: The server refused the statement.
        """
        name = self._prepare(parameters)
        values = self._literals(name, parameters)
        text = b"%s execute %s%s" % (self._explain(run=run).encode(), name, values)
        return self._query_value(Parameters(text.decode("utf-8", "surrogateescape"), is_simple=True))

    def use_up_custom_plans(self, executions: Sequence[Parameters]) -> None:
        """Use up the custom plans of a prepared statement by EXPLAIN; execute the statement only if EXPLAIN fails.

        Raises:
            ExecutionError: The server refused the statement.
        """
        for parameters in executions:
            try:
                self.explain_prepared(parameters)
            except ExecutionError:
                self._undo()
                self.execute(parameters)

    def _explain(self, *, run: bool) -> str:
        return explain_command(self._connection.info.server_version, run=run)

    def _query_value(self, question: Parameters) -> str:
        pgconn = self._connection.pgconn
        _send_execution(question)(pgconn)
        results = self._connection.wait(generators.execute(pgconn))
        self._refuse_ended_transaction()
        self._undo()
        self._refuse(results, question.text)
        plan = b"\n".join(results[-1].get_value(at, 0) or b"" for at in range(results[-1].ntuples)).decode()
        return hidden_plan(plan) if self.private else plan

    def _prepare(self, parameters: Parameters) -> bytes:
        """Prepare a statement in this session if necessary, and return its name, which survives the transaction."""
        key = (parameters.text, parameters.types)
        if key not in self._prepared:
            pgconn, name = self._connection.pgconn, b"dbdyno_%d" % len(self._prepared)
            types = _pad_types(parameters.types, len(parameters.values))
            pgconn.send_prepare(name, parameters.text.encode("utf-8", "surrogateescape"), param_types=types)
            self._refuse(self._connection.wait(generators.execute(pgconn)), parameters.text)
            self._prepared[key] = name
        return self._prepared[key]

    def _literals(self, name: bytes, parameters: Parameters) -> bytes:
        """Return the values as literals in parentheses; the server converts those in binary format."""
        pgconn = self._connection.pgconn
        pgconn.send_describe_prepared(name)
        (described,) = self._connection.wait(generators.execute(pgconn))
        self._refuse([described], parameters.text)
        types = [described.param_type(at) for at in range(described.nparams)]
        written = ", ".join(f"${at + 1}::text" for at in range(len(types)))
        asked = Parameters(f"select {written}", parameters.values, parameters.binary, tuple(types))
        _send_execution(asked)(pgconn)
        results = self._connection.wait(generators.execute(pgconn))
        self._refuse(results, parameters.text)
        values = [results[-1].get_value(0, at) for at in range(len(types))]
        escaping = pq.Escaping(pgconn)
        if not values:
            return b""
        return b"(%s)" % b", ".join(b"null" if one is None else escaping.escape_literal(one) for one in values)

    def _limits(self) -> str:
        """Return the command that sets this transaction's statement timeout, overriding earlier settings."""
        values = {"statement_timeout": self.timeout_ms, "lock_timeout": LOCK_TIMEOUT_MS}
        values |= {"idle_in_transaction_session_timeout": 0}
        called = (f"pg_catalog.set_config('{name}', '{value}', true)" for name, value in values.items())
        return f"select {', '.join(called)}"

    def _refuse_ended_transaction(self) -> None:
        """Raise an error if an execution ended the transaction, because later changes could not be undone.

        Raises:
            TargetError: The session is in no transaction.
        """
        status = self._connection.pgconn.transaction_status
        if status == pq.TransactionStatus.IDLE:
            raise TargetError(
                f"a statement ended its transaction on the {self.name} server, and its changes may be committed",
                where=self.server.safe_dsn,
                next_step="restore the copy, and report the statement as a bug: dbdyno must not rehearse it",
            )

    def _undo(self) -> None:
        self._command(_UNDO)

    def _command(self, text: str) -> None:
        pgconn = self._connection.pgconn
        _send_command(text)(pgconn)
        self._refuse(self._connection.wait(generators.execute(pgconn)), text)

    def _commands(self, *texts: str) -> None:
        """Send commands in one pipeline; each text must be one command.

        Raises:
            ExecutionError: The server refused a command; it has executed the commands before it.
        """
        for text, results in zip(texts, run_pipeline(self._connection, [*map(_send_command, texts)]), strict=True):
            self._refuse(results, text)

    def _refuse(self, results: Sequence[Any], sent: str) -> None:
        """Raise the server's error, if it returned one.

        Raises:
            ExecutionError: The server refused what was sent.
        """
        try:
            _refuse(results)
        except ExecutionError as error:
            if self.private:
                said = hidden_message(error.sqlstate, str(error), is_raised=error.is_raised, sent=sent)
            else:
                said = without_values(error.sqlstate, str(error), sent)
            raise ExecutionError(error.sqlstate, said) from None

    @contextlib.contextmanager
    def _in_words(self) -> Iterator[None]:
        try:
            yield
        except (psycopg.OperationalError, psycopg.InterfaceError) as error:
            if isinstance(error, StopRequested):
                raise
            raise TargetError(
                f"the {self.name} server closed the connection: {str(error).splitlines()[0]}",
                where=self.server.safe_dsn,
                next_step="check in the server's log why it ended the session",
            ) from None


def explain_command(version: int, *, run: bool) -> str:
    """Return EXPLAIN with the options that a server of this version supports.

    >>> explain_command(120_000, run=True), explain_command(110_000, run=False)
    ('explain (format json, verbose, settings, analyze, buffers)', 'explain (format json, verbose)')
    """
    options = ["format json", "verbose", *(["settings"] if version >= _SETTINGS_SINCE else [])]
    if run:
        options += ["analyze", "buffers", *(["wal"] if version >= _WAL_SINCE else [])]
    return f"explain ({', '.join(options)})"


def _send_execution(parameters: Parameters, name: bytes | None = None) -> Send:
    """Return the function that sends an execution, as a prepared statement if it has a name."""
    if name is not None:
        return methodcaller("send_query_prepared", name, list(parameters.values), param_formats=_formats(parameters))
    return methodcaller(
        "send_query_params",
        parameters.text.encode("utf-8", "surrogateescape"),
        list(parameters.values),
        param_types=_pad_types(parameters.types, len(parameters.values)),
        param_formats=_formats(parameters),
    )


def _send_command(text: str) -> Send:
    return methodcaller("send_query_params", text.encode("utf-8", "surrogateescape"), None)


def _formats(parameters: Parameters) -> list[int] | None:
    return [int(pq.Format.BINARY if binary else pq.Format.TEXT) for binary in parameters.binary] or None


def _pad_types(types: Sequence[int], count: int) -> list[int] | None:
    return [*types, *[0] * (count - len(types))] if types else None


def _refuse(results: Sequence[Any]) -> None:
    for result in results:
        if result.status == pq.ExecStatus.FATAL_ERROR:
            state = result.error_field(pq.DiagnosticField.SQLSTATE) or b"XX000"
            said = result.error_field(pq.DiagnosticField.MESSAGE_PRIMARY) or result.error_message or b""
            words = said.decode("utf-8", "replace")
            if result.error_field(pq.DiagnosticField.SEVERITY_NONLOCALIZED) in _ENDING:
                raise psycopg.OperationalError(words)
            source = result.error_field(pq.DiagnosticField.SOURCE_FUNCTION) or b""
            raise ExecutionError(state.decode(), words, is_raised=source == b"exec_stmt_raise")


def _answer(result: Any) -> Answer:
    width = result.nfields
    rows = [tuple(result.get_value(row, at) for at in range(width)) for row in range(result.ntuples)]
    columns = [(result.fname(at) or b"").decode("utf-8", "replace") for at in range(width)]
    types = [result.ftype(at) for at in range(width)]
    changed = result.command_tuples if not width else None
    return answer_of(rows, columns, types, changed)
