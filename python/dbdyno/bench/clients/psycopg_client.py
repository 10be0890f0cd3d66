"""The client psycopg 3.

`prepared`: the server keeps the statement; `binds`: values are sent separately from the text, which is parsed each
time; `literals`: values are in the text. With a fetch size a query is read through a server-side cursor (DECLARE,
FETCH), in a separate transaction if the script has none; such a query is never prepared.
"""

from __future__ import annotations

import os
from typing import Any

import psycopg
from psycopg import pq
from psycopg.types.numeric import Int8

from dbdyno.bench.clients.harness import Job, serve
from dbdyno.bench.clients.stream import text_of


class PsycopgSession:
    """Session with one psycopg connection."""

    def __init__(self, job: Job) -> None:
        self.connection = psycopg.connect(os.environ["DBDYNO_DSN"], autocommit=True)
        # None: never prepare, whatever a single call says; 0: prepare at the first execution.
        self.connection.prepare_threshold = 0 if job.mode == "prepared" else None
        for sql in job.session_setup():
            self.connection.execute(sql.encode())
        self.job, self.cursor = job, self.connection.cursor()
        self.texts = [_text(own.pieces) for own in job.statements]

    def run(self, number: int, values: list[Any]) -> int:
        """Run a statement, fetch all rows and return their number."""
        statement = self.job.statements[number]
        if self.job.mode == "literals":
            text, given = statement.with_literals([_plain(value) for value in values]).encode(), None
        else:
            text, given = self.texts[number], values or None
        if self.job.fetch_size and statement.query:
            return self._fetch(text, given, self.job.fetch_size)
        cursor = self.cursor
        cursor.execute(text, given)
        return len(cursor.fetchall()) if cursor.description else max(cursor.rowcount, 0)

    def _fetch(self, text: bytes, values: list[Any] | None, size: int) -> int:
        connection, count = self.connection, 0
        inside = connection.info.transaction_status == pq.TransactionStatus.INTRANS
        if not inside:
            connection.execute(b"begin")
        with connection.cursor(name="dbdyno") as cursor:
            cursor.execute(text, values)
            while rows := cursor.fetchmany(size):
                count += len(rows)
                if len(rows) < size:
                    break
        if not inside:
            connection.execute(b"commit")
        return count

    def recover(self) -> bool:
        """Roll back an open transaction and return False if the connection is lost."""
        if self.connection.broken or self.connection.closed:
            return False
        if self.connection.info.transaction_status != pq.TransactionStatus.IDLE:
            self.connection.rollback()
        return True

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()


def _text(pieces: list[str]) -> bytes:
    if len(pieces) == 1:
        return pieces[0].encode()
    return "%s".join(piece.replace("%", "%%") for piece in pieces).encode()


def _values(values: list[Any]) -> list[Any]:
    """Return the values with all integers as 64 bits, so that a statement always has the same parameter types."""
    return [Int8(value) if isinstance(value, int) and not isinstance(value, bool) else value for value in values]


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, Int8) else value


def code_of(error: BaseException) -> str:
    """Return the SQLSTATE of an error; empty if the connection is lost."""
    lost = isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
    return (isinstance(error, psycopg.Error) and error.sqlstate) or ("" if lost else "XX000")


def message_of(error: BaseException) -> str:
    """Return the server's message with the fields that identify the object, otherwise the driver's text."""
    diag = error.diag if isinstance(error, psycopg.Error) else None
    if diag is None or diag.message_primary is None:
        return str(error)
    return text_of(
        diag.message_primary,
        R=diag.source_function,
        s=diag.schema_name,
        t=diag.table_name,
        c=diag.column_name,
        d=diag.datatype_name,
        n=diag.constraint_name,
    )


def main() -> None:
    """Serve as a client until stdin ends."""
    serve(f"psycopg {psycopg.__version__} ({pq.__impl__})", PsycopgSession, code_of, _values, message_of)


if __name__ == "__main__":
    main()
