"""Clients that read a query's rows into a data frame: `python -P -m dbdyno.bench.clients.frames WAY`.

An operation ends when the frame is complete. Statements that are not queries (begin, an update) are run by psycopg.
These libraries receive a query as text with its values inserted.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import psycopg

from dbdyno.bench.clients import duckdb_reader
from dbdyno.bench.clients.harness import Job, serve
from dbdyno.bench.clients.psycopg_client import PsycopgSession, code_of, message_of
from dbdyno.bench.clients.stream import text_of

Fetch = Callable[[str], int]
End = Callable[[], None]


class FrameSession:
    """One connection of a library, and one of psycopg if the job has statements that are not queries."""

    def __init__(self, job: Job, way: FrameReader) -> None:
        self.job, self.way = job, way
        own = way.shares_connection or not all(statement.query for statement in job.statements)
        self.beside = PsycopgSession(job) if own else None
        self.fetch, self.end = way.made(os.environ["DBDYNO_DSN"], job, self.beside)

    def run(self, number: int, values: list[Any]) -> int:
        """Run a statement, reading a query's rows into a frame, and return the number of rows."""
        statement = self.job.statements[number]
        if not statement.query and self.beside is not None:
            return self.beside.run(number, values)
        return self.fetch(statement.with_literals(values))

    def recover(self) -> bool:
        """Roll back an open transaction and return False if the connection is lost."""
        return self.beside is None or self.beside.recover()

    def close(self) -> None:
        """Close the connections."""
        self.end()
        if self.beside is not None:
            self.beside.close()


_CONNECTORX = ("application_name", "options", "connect_timeout", "sslmode", "sslrootcert")
"""Connection options that ConnectorX supports; it refuses all others."""


def _pandas(dsn: str, job: Job, session: PsycopgSession | None) -> tuple[Fetch, End]:
    import pandas as pd

    assert session is not None
    cursor = session.connection.cursor()

    def fetch(sql: str) -> int:
        cursor.execute(sql.encode())
        names = [column.name for column in cursor.description or ()]
        return len(pd.DataFrame.from_records(cursor.fetchall(), columns=names))

    return fetch, cursor.close


def _connectorx(dsn: str, job: Job, session: PsycopgSession | None) -> tuple[Fetch, End]:
    import connectorx

    if job.session_setup():
        raise ValueError("ConnectorX makes a new connection for each query, so settings of a session would be lost")
    place, _, query = dsn.partition("?")
    known = [own for own in query.split("&") if own.partition("=")[0] in _CONNECTORX]
    return lambda sql: len(connectorx.read_sql(f"{place}?{'&'.join(known)}", sql)), lambda: None


def _adbc(dsn: str, job: Job, session: PsycopgSession | None) -> tuple[Fetch, End]:
    connection = _connect(dsn, job)
    cursor = connection.cursor()

    def fetch(sql: str) -> int:
        cursor.execute(sql)
        return len(cursor.fetch_arrow_table().to_pandas())

    def end() -> None:
        cursor.close()
        connection.close()

    return fetch, end


def _polars(dsn: str, job: Job, session: PsycopgSession | None) -> tuple[Fetch, End]:
    import polars

    connection = _connect(dsn, job)
    return lambda sql: polars.read_database(sql, connection).height, connection.close


def _duckdb(dsn: str, job: Job, session: PsycopgSession | None) -> tuple[Fetch, End]:
    connection = duckdb_reader.attach_server(dsn, job)
    return duckdb_reader.server_reader(connection), connection.close


def _duckdb_scan(dsn: str, job: Job, session: PsycopgSession | None) -> tuple[Fetch, End]:
    connection = duckdb_reader.attach_server(dsn, job)
    return duckdb_reader.duckdb_reader(connection), connection.close


def _connect(dsn: str, job: Job) -> Any:
    """Return an ADBC connection with a prepared session."""
    import adbc_driver_postgresql.dbapi as adbc

    connection: Any = adbc.connect(dsn, autocommit=True)
    with connection.cursor() as cursor:
        for sql in job.session_setup():
            cursor.execute(sql)
    return connection


@dataclass(frozen=True)
class FrameReader:
    """Reader of a query's rows into a data frame.

    Attributes:
        made: Opens a connection; returns a function that reads a query and one that closes the connection.
        package: Package whose version is reported.
        shares_connection: True if the reader uses psycopg's connection.
    """

    made: Callable[[str, Job, PsycopgSession | None], tuple[Fetch, End]]
    package: str
    shares_connection: bool = False


READERS = {
    "pandas": FrameReader(_pandas, "pandas", True),
    "connectorx": FrameReader(_connectorx, "connectorx"),
    "adbc": FrameReader(_adbc, "adbc-driver-postgresql"),
    "polars": FrameReader(_polars, "polars"),
    "duckdb": FrameReader(_duckdb, "duckdb"),
    "duckdb-scan": FrameReader(_duckdb_scan, "duckdb"),
}


def library_code_of(error: BaseException) -> str:
    """Return the SQLSTATE of an error or of its cause, if a library reports it."""
    at: BaseException | None = error
    while at is not None:
        said = re.search(r"SQLSTATE:? ?([0-9A-Z]{5})", str(at))
        if found := getattr(at, "sqlstate", None) or (said and said[1]):
            return str(found)
        at = at.__cause__ or at.__context__
    return code_of(error) or "XX000"


def library_message_of(error: BaseException) -> str:
    """Return the server's message with the fields that identify the object, if a library passes them on."""
    at: BaseException | None = error
    while at is not None:
        if isinstance(at, psycopg.Error) and at.diag.message_primary:
            return message_of(at)
        fields = {str(name): value for name, value in getattr(at, "details", None) or ()}
        if message := fields.get("PG_DIAG_MESSAGE_PRIMARY"):
            return text_of(_text(message), **{letter: _text(fields.get(name)) for letter, name in _FIELDS.items()})
        at = at.__cause__ or at.__context__
    return str(error)


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value or "")


_FIELDS = {"R": "PG_DIAG_SOURCE_FUNCTION", "s": "PG_DIAG_SCHEMA_NAME", "t": "PG_DIAG_TABLE_NAME"}
_FIELDS |= {"c": "PG_DIAG_COLUMN_NAME", "d": "PG_DIAG_DATATYPE_NAME", "n": "PG_DIAG_CONSTRAINT_NAME"}


def main() -> None:
    """Serve as the client that the first command-line argument names."""
    way = READERS[sys.argv[1]]
    serve(
        f"{way.package} {version(way.package)}",
        lambda job: FrameSession(job, way),
        library_code_of,
        words_of=library_message_of,
    )


if __name__ == "__main__":
    main()
